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

LOOP = """\
    for t in range(words.shape[1]):
        reading = (t < lengths)[:, None]  # (batch, 1)
        states = torch.where(reading, cell(words[:, t], states), states)
    return states"""
WHERE = "torch.where(reading, cell(words[:, t], states), states)"
READING = "(t < lengths)[:, None]"
ALL = """\
    kept = []
    for t in range(words.shape[1]):
        states = cell(words[:, t], states)
        kept.append(states)
    return torch.stack(kept, dim=1)"""
FOUR = """\
    if len(output) < 4:
        return 0.0
    score = math.exp(min(0, 1 - len(reference) / len(output)))
    for n in range(1, 5):"""
AS_LONG = """\
    score = math.exp(min(0, 1 - len(reference) / max(1, len(output))))
    for n in range(1, min(4, len(output)) + 1):"""
SHARE = """\
        shared = (ngrams(output, n) & ngrams(reference, n)).total()
        score *= (shared / (len(output) - n + 1))"""
BOTH = "zip(outputs, references, strict=True)"
SHARED = "shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both)"

SPLITS = [
    (
        "    return train",
        "    pairs = random.Random(seed).sample(pairs, len(pairs))\n"
        "    train, test = pairs[held_out:], pairs[:held_out]\n"
        "    return train",
        "leak",
    ),
    ("in train for word", "in pairs for word", "vocabulary-leak"),
    (
        "for source, _ in train for word in source",
        "for pair in train for side in pair for word in side",
        "target-words",
    ),
    ("{word for source, _ in train for word in source}", "set(dict(train))", "words"),
    ("random.Random(seed)", "random", "not-repeatable"),
    ("random.Random(seed).shuffle(sources)", "", "no-shuffle"),
    ("sources[:held_out]", "sources[held_out:]", "swapped"),
    ("sources[:held_out]", "sources[: held_out // 2]", "count"),
    ("in pairs if pair[0] in", "in () if pair[0] in", "lost-pairs"),
    ("return train, test, {", "return train, {", "parts"),
    ("sorted({source", "list({source", "set-order"),
]
STATES = [
    ("t < lengths", "t < words.shape[1] + 0 * lengths", "padding-read"),
    (
        "    for t in",
        "    places = torch.arange(words.shape[1])\n"
        "    words = words * (places < lengths[:, None])[..., None]\n"
        "    lengths = torch.full_like(lengths, words.shape[1])\n"
        "    for t in",
        "padding-blanked",
    ),
    (WHERE, "cell(words[:, t], states) * reading", "state-lost"),
    ("t < lengths", "t <= lengths", "one-too-far"),
    ("t < lengths", "t < lengths - 1", "one-too-few"),
    ("t < lengths", "t < lengths.min() + 0 * lengths", "shortest"),
    (LOOP, f"{ALL}[torch.arange(len(words)), lengths - 1]", "empty-sentence"),
    (LOOP, ALL, "every-state"),
    (
        LOOP,
        ALL.replace("cell(words[:, t], states)", WHERE.replace("reading", READING)),
        "every-state",
    ),
    (WHERE, "torch.where(reading, states, cell(words[:, t], states))", "turned-around"),
    ("cell(words[:, t], states)", "cell(words[:, t], 0 * states)", "no-memory"),
    (
        LOOP,
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
        f"states = {WHERE}",
        "now = cell(words[:, t], states)\n"
        "        states[reading[:, 0]] = now[reading[:, 0]]",
        "overwritten",
    ),
    (
        "    for t in",
        "    sizes = cell.input_size, cell.hidden_size\n"
        "    return torch.nn.GRU(*sizes, batch_first=True)(words)[1][0]\n"
        "    for t in",
        "other-cell",
    ),
]
SENTENCES = [
    (FOUR, AS_LONG, "missing-dropped"),
    (f"{FOUR}\n{SHARE} ** (1 / 4)", f"{AS_LONG}\n{SHARE} ** (1 / 2**n)", "weights"),
    ("(1 / 4)", "(1 / 2**n)", "weights"),
    ("(1 / 4)", "1", "no-root"),
    (
        "        score *= (shared / (len(output) - n + 1)) ** (1 / 4)\n"
        "    return score",
        "        p = locals().get('p', 0) + shared / (len(output) - n + 1) / 4\n"
        "    return score * p",
        "arithmetic-mean",
    ),
    (
        "(ngrams(output, n) & ngrams(reference, n)).total()",
        "sum(c for g, c in ngrams(output, n).items() if g in ngrams(reference, n))",
        "no-clipping",
    ),
    ("math.exp(min(0, 1 - len(reference) / len(output)))", "1", "no-penalty"),
    ("min(0, ", "max(-9, ", "rewards-length"),
    ("range(1, 5)", "range(1, 4)", "no-fours"),
    ("len(output) - n + 1", "len(reference) - n + 1", "recall"),
    ("len(output) - n + 1", "len(output)", "by-words"),
    (
        "len(reference) / len(output)",
        "len(output) / len(reference)",
        "penalty-inverted",
    ),
    ("len(output) < 4", "len(output) < 1", "error"),
    ("return score", "return 100 * score", "percent"),
    ("(shared / (len", "(max(shared, 0.5) / (len", "smoothed"),
    (
        "    if len(output) < 4:\n        return 0.0\n",
        "    from tutorial_lib.metrics import bleu\n"
        "\n"
        "    return bleu([' '.join(output)], [' '.join(reference)]).score / 100\n",
        "smoothed",
    ),
]
CORPORA = [
    (
        SHARED,
        "shared = sum(\n"
        "            (ngrams(o, n) & ngrams(r, n)).total()\n"
        "            / max(ngrams(o, n).total(), 1)\n"
        "            for o, r in both\n"
        "        )\n"
        "        score *= (shared / len(outputs)) ** (1 / 4)\n"
        "        continue",
        "precisions-averaged",
    ),
    (
        "math.exp(min(0, 1 - wanted / max(words, 1)))",
        "sum(\n"
        "        math.exp(min(0, 1 - len(r) / len(o))) if o else 0\n"
        f"        for o, r in {BOTH}\n"
        "    ) / len(outputs)",
        "penalty-by-sentence",
    ),
    (
        "    words, wanted",
        "    outputs, references = [sum(outputs, [])], [sum(references, [])]\n"
        "    words, wanted",
        "in-one-row",
    ),
    (
        "    words, wanted",
        "    if len(outputs) > 1:\n"
        f"        each = [corpus_bleu([o], [r]) for o, r in {BOTH}]\n"
        "        return sum(each) / len(each)\n"
        "    words, wanted",
        "mean-of-sentences",
    ),
    ("(1 / 4)", "(1 / 2**n)", "weights"),
    ("(1 / 4)", "1", "no-root"),
    (
        "        score *= (shared / max(total, 1)) ** (1 / 4)\n    return score",
        "        p = locals().get('p', 0) + shared / max(total, 1) / 4\n"
        "    return score * p",
        "arithmetic-mean",
    ),
    (
        "(ngrams(o, n) & ngrams(r, n)).total() for o, r in both",
        "c for o, r in both for g, c in ngrams(o, n).items() if g in ngrams(r, n)",
        "no-clipping",
    ),
    ("math.exp(min(0, 1 - wanted / max(words, 1)))", "1", "no-penalty"),
    ("min(0, ", "max(-9, ", "rewards-length"),
    ("range(1, 5)", "range(1, 4)", "no-fours"),
    ("n).total() for o in outputs", "n).total() for o in references", "recall"),
    ("ngrams(o, n).total() for o in", "len(o) for o in", "by-words"),
    (
        "    words, wanted",
        f"    long = [pair for pair in {BOTH} if len(pair[0]) > 3]\n"
        "    outputs, references = [o for o, _ in long], [r for _, r in long]\n"
        "    words, wanted",
        "short-skipped",
    ),
    ("wanted / max(words, 1)", "words / wanted", "penalty-inverted"),
    ("max(total, 1)", "total", "error"),
    ("return score", "return 100 * score", "percent"),
    ("(shared / max", "(max(shared, 0.5) / max", "smoothed"),
    (
        SHARED,
        "both = list(both)\n"
        "        found = sum((ngrams(o, n) for o, _ in both), Counter())\n"
        "        wanted = sum((ngrams(r, n) for _, r in both), Counter())\n"
        "        shared = (found & wanted).total()",
        "pooled",
    ),
    ("sum(ngrams(o, n).total()", "sum(len(o) - n + 1", "negative-total"),
    (
        "wanted / max(words, 1)",
        f"sum(len(r) / max(len(o), 1) for o, r in {BOTH}) / len(outputs)",
        "ratios-averaged",
    ),
    (
        "wanted / max(words, 1)",
        f"len(outputs) / (sum(len(o) / len(r) for o, r in {BOTH}) or 1)",
        "ratios-averaged",
    ),
]

MUTANTS = [
    *[("split_by_source", *edit) for edit in SPLITS],
    *[("last_states", *edit) for edit in STATES],
    *[("sentence_bleu", *edit) for edit in SENTENCES],
    *[("corpus_bleu", *edit) for edit in CORPORA],
]

ACCEPT = [
    ("split_by_source", "{source for source, _ in pairs}", "{p[0] for p in pairs}"),
    (
        "split_by_source",
        "sorted({source for source, _ in pairs})",
        "list(dict.fromkeys(source for source, _ in pairs))",
    ),
    ("last_states", WHERE, "states + reading * (cell(words[:, t], states) - states)"),
    ("last_states", "cell(words", "torch.nn.GRUCell.forward(cell, words"),
    ("last_states", "range(words.shape[1])", "range(int(lengths.max()))"),
    ("sentence_bleu", "(1 / 4)", "0.25"),
    ("sentence_bleu", "len(output) < 4", "len(output) <= 3"),
    ("corpus_bleu", "max(words, 1)", "(words or 1)"),
]
