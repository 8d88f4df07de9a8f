"""Solutions of chapter 5, and edits of them that must be caught or must pass."""

import math
import random
from collections import Counter

import torch


def ngrams(words, n):
    """Count the runs of n words: the notebook's own."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def split_by_source(pairs, held_out, seed):
    """Hold out so many source sentences, each with all its pairs."""
    sources = sorted({source for source, _ in pairs})  # a set has no fixed order
    random.Random(seed).shuffle(sources)
    unseen = set(sources[:held_out])
    train = [pair for pair in pairs if pair[0] not in unseen]
    test = [pair for pair in pairs if pair[0] in unseen]
    return train, test, {word for source, _ in train for word in source}


def last_states(cell, words, lengths):
    """Return the state of every sentence after its own last word."""
    states = torch.zeros(len(words), cell.hidden_size)
    for t in range(words.shape[1]):
        reading = (t < lengths)[:, None]  # (batch, 1)
        states = torch.where(reading, cell(words[:, t], states), states)
    return states


def sentence_bleu(output, reference):
    """Return BLEU of one sentence, from 0 to 1."""
    if len(output) < 4:
        return 0.0
    score = math.exp(min(0, 1 - len(reference) / len(output)))
    for n in range(1, 5):
        shared = (ngrams(output, n) & ngrams(reference, n)).total()
        score *= (shared / (len(output) - n + 1)) ** (1 / 4)
    return score


def corpus_bleu(outputs, references):
    """Return BLEU of many sentences, from 0 to 1."""
    words, wanted = sum(map(len, outputs)), sum(map(len, references))
    score = math.exp(min(0, 1 - wanted / max(words, 1)))
    for n in range(1, 5):
        both = zip(outputs, references, strict=True)
        shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both)
        total = sum(ngrams(o, n).total() for o in outputs)
        score *= (shared / max(total, 1)) ** (1 / 4)
    return score


ANSWERS = {}
WRONG_ANSWERS = []

MUTANTS = [
    (
        "split_by_source",
        "    sources = sorted({source for source, _ in pairs})  # a set has no fixed "
        "order\n"
        "    random.Random(seed).shuffle(sources)\n"
        "    unseen = set(sources[:held_out])\n"
        "    train = [pair for pair in pairs if pair[0] not in unseen]\n"
        "    test = [pair for pair in pairs if pair[0] in unseen]\n",
        "    pairs = random.Random(seed).sample(pairs, len(pairs))\n"
        "    train, test = pairs[held_out:], pairs[:held_out]\n",
        "leak",
    ),
    ("split_by_source", "in train for word", "in pairs for word", "vocabulary-leak"),
    (
        "split_by_source",
        "for source, _ in train for word in source",
        "for pair in train for side in pair for word in side",
        "target-words",
    ),
    (
        "split_by_source",
        "{word for source, _ in train for word in source}",
        "{source for source, _ in train}",
        "words",
    ),
    ("split_by_source", "random.Random(seed)", "random", "not-repeatable"),
    ("split_by_source", "random.Random(seed).shuffle(sources)", "", "no-shuffle"),
    ("split_by_source", "sources[:held_out]", "sources[held_out:]", "swapped"),
    ("split_by_source", "sources[:held_out]", "sources[: held_out // 2]", "count"),
    ("split_by_source", "in pairs if pair[0] in", "in () if pair[0] in", "lost-pairs"),
    ("split_by_source", "return train, test, {", "return train, {", "parts"),
    ("last_states", "t < lengths", "t < words.shape[1] + 0 * lengths", "padding-read"),
    (
        "last_states",
        "    for t in",
        "    places = torch.arange(words.shape[1])\n"
        "    words = words * (places < lengths[:, None])[..., None]\n"
        "    lengths = torch.full_like(lengths, words.shape[1])\n"
        "    for t in",
        "padding-blanked",
    ),
    (
        "last_states",
        "torch.where(reading, cell(words[:, t], states), states)",
        "cell(words[:, t], states) * reading",
        "state-lost",
    ),
    ("last_states", "t < lengths", "t <= lengths", "one-too-far"),
    ("last_states", "t < lengths", "t < lengths - 1", "one-too-few"),
    (
        "last_states",
        "t < lengths",
        "t < lengths.min() + 0 * lengths",
        "shortest",
    ),
    (
        "last_states",
        "    for t in range(words.shape[1]):\n"
        "        reading = (t < lengths)[:, None]  # (batch, 1)\n"
        "        states = torch.where(reading, cell(words[:, t], states), states)\n"
        "    return states",
        "    kept = []\n"
        "    for t in range(words.shape[1]):\n"
        "        states = cell(words[:, t], states)\n"
        "        kept.append(states)\n"
        "    return torch.stack(kept)[lengths - 1, torch.arange(len(words))]",
        "empty-sentence",
    ),
    (
        "last_states",
        "cell(words[:, t], states)",
        "cell(words[:, t], 0 * states)",
        "no-memory",
    ),
    (
        "last_states",
        "    for t in range(words.shape[1]):\n"
        "        reading = (t < lengths)[:, None]  # (batch, 1)\n"
        "        states = torch.where(reading, cell(words[:, t], states), states)\n"
        "    return states",
        "    rows = []\n"
        "    for row, n in zip(words, lengths, strict=True):\n"
        "        state = states[:1]\n"
        "        for word in row[:n]:\n"
        "            state = cell(word[None], state)\n"
        "        rows.append(state)\n"
        "    return torch.cat(rows)",
        "loop",
    ),
    (
        "sentence_bleu",
        "    if len(output) < 4:\n        return 0.0\n"
        "    score = math.exp(min(0, 1 - len(reference) / len(output)))\n"
        "    for n in range(1, 5):",
        "    score = math.exp(min(0, 1 - len(reference) / max(1, len(output))))\n"
        "    for n in range(1, min(4, len(output)) + 1):",
        "missing-dropped",
    ),
    (
        "sentence_bleu",
        "    if len(output) < 4:\n        return 0.0\n"
        "    score = math.exp(min(0, 1 - len(reference) / len(output)))\n"
        "    for n in range(1, 5):\n"
        "        shared = (ngrams(output, n) & ngrams(reference, n)).total()\n"
        "        score *= (shared / (len(output) - n + 1)) ** (1 / 4)",
        "    score = math.exp(min(0, 1 - len(reference) / max(1, len(output))))\n"
        "    for n in range(1, min(4, len(output)) + 1):\n"
        "        shared = (ngrams(output, n) & ngrams(reference, n)).total()\n"
        "        score *= (shared / (len(output) - n + 1)) ** (1 / 2**n)",
        "weights",
    ),
    ("sentence_bleu", "(1 / 4)", "(1 / 2**n)", "weights"),
    ("sentence_bleu", "(1 / 4)", "1", "no-root"),
    (
        "sentence_bleu",
        "        score *= (shared / (len(output) - n + 1)) ** (1 / 4)\n"
        "    return score",
        "        p = locals().get('p', 0) + shared / (len(output) - n + 1) / 4\n"
        "    return score * p",
        "arithmetic-mean",
    ),
    (
        "sentence_bleu",
        "(ngrams(output, n) & ngrams(reference, n)).total()",
        "sum(c for g, c in ngrams(output, n).items() if g in ngrams(reference, n))",
        "no-clipping",
    ),
    (
        "sentence_bleu",
        "math.exp(min(0, 1 - len(reference) / len(output)))",
        "1",
        "no-penalty",
    ),
    (
        "sentence_bleu",
        "min(0, 1 - len(reference) / len(output))",
        "1 - len(reference) / len(output)",
        "rewards-length",
    ),
    (
        "sentence_bleu",
        "len(reference) / len(output)",
        "len(output) / len(reference)",
        "penalty-inverted",
    ),
    ("sentence_bleu", "len(output) < 4", "len(output) < 1", "error"),
    ("sentence_bleu", "return score", "return 100 * score", "value"),
    (
        "corpus_bleu",
        "        shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both)\n"
        "        total = sum(ngrams(o, n).total() for o in outputs)\n"
        "        score *= (shared / max(total, 1)) ** (1 / 4)",
        "        shares = [\n"
        "            (ngrams(o, n) & ngrams(r, n)).total()\n"
        "            / max(ngrams(o, n).total(), 1)\n"
        "            for o, r in both\n"
        "        ]\n"
        "        score *= (sum(shares) / len(shares)) ** (1 / 4)",
        "precisions-averaged",
    ),
    (
        "corpus_bleu",
        "    score = math.exp(min(0, 1 - wanted / max(words, 1)))",
        "    score = sum(\n"
        "        math.exp(min(0, 1 - len(r) / len(o))) if o else 0\n"
        "        for o, r in zip(outputs, references, strict=True)\n"
        "    ) / len(outputs)",
        "penalty-by-sentence",
    ),
    (
        "corpus_bleu",
        "    words, wanted",
        "    outputs, references = [sum(outputs, [])], [sum(references, [])]\n"
        "    words, wanted",
        "in-one-row",
    ),
    (
        "corpus_bleu",
        "    words, wanted = sum(map(len, outputs)), sum(map(len, references))\n",
        "    if len(outputs) > 1:\n"
        "        both = zip(outputs, references, strict=True)\n"
        "        each = [corpus_bleu([o], [r]) for o, r in both]\n"
        "        return sum(each) / len(each)\n"
        "    words, wanted = sum(map(len, outputs)), sum(map(len, references))\n",
        "mean-of-sentences",
    ),
    ("corpus_bleu", "(1 / 4)", "(1 / 2**n)", "weights"),
    ("corpus_bleu", "(1 / 4)", "1", "no-root"),
    (
        "corpus_bleu",
        "        score *= (shared / max(total, 1)) ** (1 / 4)\n    return score",
        "        p = locals().get('p', 0) + shared / max(total, 1) / 4\n"
        "    return score * p",
        "arithmetic-mean",
    ),
    (
        "corpus_bleu",
        "(ngrams(o, n) & ngrams(r, n)).total() for o, r in both",
        "c for o, r in both for g, c in ngrams(o, n).items() if g in ngrams(r, n)",
        "no-clipping",
    ),
    (
        "corpus_bleu",
        "math.exp(min(0, 1 - wanted / max(words, 1)))",
        "1",
        "no-penalty",
    ),
    (
        "corpus_bleu",
        "min(0, 1 - wanted / max(words, 1))",
        "1 - wanted / max(words, 1)",
        "rewards-length",
    ),
    ("corpus_bleu", "wanted / max(words, 1)", "words / wanted", "penalty-inverted"),
    ("corpus_bleu", "max(total, 1)", "total", "error"),
]

ACCEPT = [
    (
        "split_by_source",
        "sorted({source for source, _ in pairs})",
        "sorted({p[0] for p in pairs})",
    ),
    (
        "split_by_source",
        "sorted({source for source, _ in pairs})",
        "list(dict.fromkeys(source for source, _ in pairs))",
    ),
    (
        "last_states",
        "torch.where(reading, cell(words[:, t], states), states)",
        "states + reading * (cell(words[:, t], states) - states)",
    ),
    ("last_states", "range(words.shape[1])", "range(int(lengths.max()))"),
    ("sentence_bleu", "(1 / 4)", "0.25"),
    ("sentence_bleu", "len(output) < 4", "len(output) <= 3"),
    ("corpus_bleu", "max(words, 1)", "(words or 1)"),
]
