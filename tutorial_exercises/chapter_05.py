"""Exercises of chapter 5: the RNN encoder–decoder, held-out data, and BLEU."""

import math
import random
from collections import Counter

import torch
from torch import nn

from tutorial_exercises import Exercise


@Exercise("5.1", "A split without a leak", axes={"train": "", "test": "", "words": ""})
def split_by_source(pairs, held_out, seed):
    """Hold out some source sentences, each with all its pairs."""
    sources = sorted({source for source, _ in pairs})  # a set has no fixed order
    random.Random(seed).shuffle(sources)
    unseen = set(sources[:held_out])
    train = [pair for pair in pairs if pair[0] not in unseen]
    test = [pair for pair in pairs if pair[0] in unseen]
    return train, test, {word for source, _ in train for word in source}


@split_by_source.oracle
def _(pairs, held_out, seed):
    chosen = random.Random(seed).sample(sorted({s for s, _ in pairs}), held_out)
    train = [pair for pair in pairs if pair[0] not in chosen]
    test = [pair for pair in pairs if pair[0] in chosen]
    return train, test, {word for source, _ in train for word in source}


def forty_sources():
    """Make pairs of 40 sources, each with its own word and two or three targets."""
    pairs = [(("the", f"noun{k % 40}"), (f"mot{k}",)) for k in range(100)]
    return random.sample(pairs, len(pairs))


def salted(pairs, salt):
    """Copy pairs, with words whose hashes are others, as after a restart of Python."""

    class Word(str):
        def __hash__(self):
            return hash((salt, *map(ord, self)))

    def copy(words):
        return tuple(Word(word) for word in words)

    return [(copy(source), copy(target)) for source, target in pairs]


@split_by_source.demand("every pair is in exactly one of train and test")
def _(answer):
    pairs = forty_sources()
    train, test, _ = answer(pairs, 10, 0)
    if not (isinstance(train, list) and isinstance(test, list)):
        return "`train` and `test` must be lists of pairs (source, target)."
    if sorted(train + test) != sorted(pairs):
        return f"{len(pairs)} pairs went in, {len(train)} + {len(test)} came out."


@split_by_source.demand("held_out sources are in test, and none of them in train")
def _(answer):
    train, test, _ = answer(forty_sources(), 10, 0)
    seen = {source for source, _ in train}
    unseen = {source for source, _ in test}
    if seen & unseen:
        return (
            f"{len(seen & unseen)} sources are in both `train` and `test`. Split the "
            "list of different sources, not the list of pairs."
        )
    if len(unseen) != 10:
        return f"{len(unseen)} of the 40 sources are held out in `test`, not 10."


@split_by_source.demand("the vocabulary is that of the training sources")
def _(answer):
    train, test, words = answer(forty_sources(), 10, 0)
    known = {word for source, _ in train for word in source}
    leaked = {word for source, _ in test for word in source if word in words} - known
    if leaked:
        return f"{len(leaked)} of your words are only in `test`: take those of `train`."
    if any(word in words for _, target in train for word in target):
        return "The vocabulary contains words of targets. Take those of sources only."
    if words != known:
        return "`words` must be the set of the single words of the training sources."


@split_by_source.demand("the split depends on the seed, and on nothing else")
def _(answer):
    pairs = forty_sources()
    tests = [sorted(answer(pairs, 10, seed)[1]) for seed in (3, 3, 4, 5, 6)]
    if tests[0] != tests[1]:
        return "The same seed must give the same split: use random.Random(seed)."
    if all(test == tests[0] for test in tests):
        return "Four seeds give the same test set: shuffle the sources first."
    one, other = (sorted(answer(salted(pairs, salt), 10, 3)[1]) for salt in (1, 2))
    if one != other:
        return (
            "The split changes when Python is restarted: a set of strings has another "
            "order then. Sort the different sources before you shuffle them."
        )


split_by_source.hints = """
- Shuffle and split the list of different source sentences, not the pairs.
- A set has no fixed order. Sort it, `sorted({source for source, _ in pairs})`, and then
  use `random.Random(seed).shuffle(...)`.
- The first `held_out` of them are the test sources. Every pair goes with its source,
  and the vocabulary is made of the words of the training sources.
"""

split_by_source.mistakes = """
You split the pairs, so a source can be in both sets. Split the different sources.
    train = [pair for pair in pairs if pair[0] not in unseen] → pairs = sorted(pairs)
    and test = [pair for pair in pairs if pair[0] in unseen] → random.Random(seed).shuffle(pairs)
        train, test = pairs[held_out:], pairs[:held_out]
The vocabulary contains words that occur only in `test`: take those of `train`.
    in train for word → in pairs for word
right:
    sources = sorted({source for source, _ in pairs})  # → sources = list(dict.fromkeys(source for source, _ in pairs))  #
"""


@Exercise("5.2", "Stop at the end", axes="batch d_hidden")
def last_states(cell, words, lengths):
    """Return the hidden state of every sentence after its own last word."""
    states = torch.zeros(len(words), cell.hidden_size)
    for t in range(words.shape[1]):
        reading = (t < lengths)[:, None]  # (batch, 1)
        states = torch.where(reading, cell(words[:, t], states), states)
    return states


@last_states.oracle
def _(cell, words, lengths):
    after = [torch.zeros(len(words), cell.hidden_size)]  # after so many words
    for t in range(words.shape[1]):
        after.append(cell(words[:, t], after[-1]))
    return torch.stack([after[length][i] for i, length in enumerate(lengths)])


def batch(*lengths):
    """Make a cell, and a batch of sentences of these lengths for it."""
    cell = nn.GRUCell(3, 5)
    return cell, torch.randn(len(lengths), max(lengths), 3), torch.tensor(lengths)


@last_states.demand("the cell takes one word of every sentence per call")
def _(answer):
    cell, *sentences = batch(6, 4, 5, 6, 2, 3, 6, 1)
    calls = []
    cell.register_forward_hook(lambda *call: calls.append(call))
    answer(cell, *sentences)
    count = len(calls)  # before the oracle calls the cell as well
    wrong = answer.same()
    if wrong and count == 0:
        return "The given `cell` is never called. Call `cell(words[:, t], states)`."
    if wrong or count <= 6:
        return wrong
    return (
        f"The states are right, but the cell is called {count} times for six words. "
        "Process one word of every sentence per call."
    )


@last_states.cases
def _():
    yield "each sentence stops at its own end", *batch(2, 5, 3, 1)
    yield "an empty sentence keeps the initial state, 0", *batch(3, 0, 2)


@last_states.demand("gradients reach the words, and no padding")
def _(answer):
    cell, words, lengths = batch(4, 2)
    words.requires_grad_()
    answer(cell, words, lengths)
    [gradient] = answer.gradients(words)
    if gradient[1, 2:].any():
        return "The states depend on padding: its gradient must be exactly 0."


last_states.hints = """
- Start with `torch.zeros(len(words), cell.hidden_size)` and loop over the positions:
  `words[:, t]` is one word of each sentence.
- At position t a sentence is still being read if `t < lengths`.
- `torch.where((t < lengths)[:, None], cell(words[:, t], states), states)`.
"""

last_states.mistakes = """
The cell reads the padding. Keep the old state where t is not less than the length.
    torch.where(reading, cell(words[:, t], states), states) → cell(words[:, t], states)
You set the padding to 0, but reading zeros changes the state, too: keep the old one.
    torch.where(reading, cell(words[:, t], states), states) → cell(words[:, t] * reading, states)
You set the state to 0 after the end: use `torch.where(reading, new, states)`.
    torch.where(reading, cell(words[:, t], states), states) → cell(words[:, t], states) * reading
You read one step of padding: t runs from 0, so the last word is at t = length − 1.
    t < lengths → t <= lengths
The last word of each sentence is not read: t runs from 0, so read while t < length.
    (t < lengths) → (t < lengths - 1)
All sentences stop where the shortest one ends. Each has its own length.
    (t < lengths) → (t < lengths.min() + 0 * lengths)
An empty sentence gets the state at length − 1 = −1, after its padding. It must be 0.
    reading = (t < lengths)[:, None] → reading = (t < lengths.where(lengths > 0, words.shape[1]))[:, None]
You return the states at every position. Return only one state for each sentence.
    return states → states = torch.zeros_like(states)
        return torch.stack([states := cell(word, states) for word in words.unbind(1)], dim=1)
    return states → states = torch.zeros_like(states)
        return torch.stack([states := torch.where((t < lengths)[:, None], cell(words[:, t], states), states) for t in range(words.shape[1])], dim=1)
The new and the old states are swapped: yours change on padding only.
    cell(words[:, t], states), states → states, cell(words[:, t], states)
Your states depend on the last word only: pass the previous states to the cell.
    (reading, cell(words[:, t], states), states) → (reading, cell(words[:, t], 0 * states), states)
You read each sentence backwards. Let t run from 0 upward.
    in range(words.shape[1]) → in reversed(range(words.shape[1]))
right:
    states = torch.where(reading, cell(words[:, t], states), states) → states = states + reading * (cell(words[:, t], states) - states)
    states = torch.where(reading, cell(words[:, t], states), states) → states = torch.where(reading, torch.nn.GRUCell.forward(cell, words[:, t], states), states)
"""


def ngrams(words, n):
    """Count the n-grams of a sentence, as the notebook does."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


@Exercise("5.3", "Corpus BLEU", tolerance=1e-6)
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


@corpus_bleu.oracle
def _(outputs, references):
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="none", smooth_method="none")
    texts, wanted = ([*map(" ".join, part)] for part in (outputs, references))
    return metric.corpus_score(texts, [wanted]).score / 100


REFERENCE = ["la", "petite", "fille", "ne", "garde", "pas", "le", "chat"]


@corpus_bleu.cases
def _():
    without_petite = [REFERENCE[0], *REFERENCE[2:]]
    mixed = ["le", "le", "garde", "pas", "le", "chat", "la", "petite"]
    for output in [*REFERENCE, "et", "dort"], without_petite, mixed, REFERENCE[:4]:
        yield "one sentence has the score of the formula", [output], [REFERENCE]
    # n = 1: 2 + 7 + 4 of 2 + 7 + 6; n = 2: 1 + 5 + 3 of 1 + 6 + 5;
    # n = 3: 0 + 4 + 2 of 0 + 5 + 4; n = 4: 0 + 3 + 1 of 0 + 4 + 3; 15 words for 14.
    short = ["elle", "dort"]
    tree = ["il", "voit", "un", "arbre"]
    outputs = [short, without_petite, [*tree, "et", "dort"]]
    label = "three sentences have the score 0.705, worked out by hand"
    yield label, outputs, [short, REFERENCE, tree]
    # 5 words for 8 and 6 for 4 make 11 for 12; no mean of the ratios comes to that
    label = "the brevity penalty compares total lengths"
    yield label, [REFERENCE[:5], outputs[2]], [REFERENCE, tree]
    label = "counts are clipped per sentence, and an output may be empty"
    yield label, [REFERENCE * 2, [], ["le"]], [REFERENCE] * 3
    sentences = [random.choices("abc", k=random.randint(4, 11)) for _ in range(16)]
    yield "agrees with sacrebleu", sentences[:8], sentences[8:]


@corpus_bleu.demand("no 4-gram in common, or no words at all, give the score 0")
def _(answer):
    short = ["elle", "dort"]
    for outputs in [["chat", "pas", "le", "la"], short], [["un", "deux"], []], [[], []]:
        score = answer(outputs, [REFERENCE, short])
        if answer.same():
            return (
                "No 4-gram is shared here, so its precision is 0, and so is the score; "
                f"yours is {score:.3f}. A small number in place of 0 is smoothing: "
                "sacrebleu does it by default (smooth:exp), the formula does not."
            )


corpus_bleu.hints = """
- Do not divide before all sentences are counted.
- For each n, sum `(ngrams(o, n) & ngrams(r, n)).total()` and `ngrams(o, n).total()`
  over all pairs o, r of an output and its reference.
- The brevity penalty compares the total length of the outputs with that of the
  references.
"""

corpus_bleu.mistakes = """
Your score is in percent. It should lie between 0 and 1: leave out the factor 100.
    return score → return 100 * score
You average the sentences' scores. Sum the counts of all sentences, then divide once.
    return score → return score if len(outputs) < 2 else sum(corpus_bleu([o], [r]) for o, r in zip(outputs, references, strict=True)) / len(outputs)
You average the sentences' precisions. Sum the counts of all sentences, then divide.
    & ngrams(r, n)).total() → & ngrams(r, n)).total() / max(ngrams(o, n).total(), 1)
    and total = sum(ngrams(o, n).total() for o in outputs) → total = len(outputs)
You compute a brevity penalty for each sentence. Compare the total lengths instead.
    math.exp(min(0, 1 - wanted / max(words, 1))) → sum(math.exp(min(0, 1 - len(r) / len(o))) for o, r in zip(outputs, references, strict=True) if o) / len(outputs)
You leave out sentences of fewer than four words. Their shorter n-grams count, too.
    words, wanted = → outputs, references = zip(*[pair for pair in zip(outputs, references, strict=True) if len(pair[0]) > 3], strict=True)
        words, wanted =
You join all sentences into one, so that n-grams reach across the ends of sentences.
    words, wanted = → outputs, references = [sum(outputs, [])], [sum(references, [])]
        words, wanted =
You sum the counts before you clip them. Take & sentence by sentence, then sum.
    sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both) → (sum((ngrams(o, n) for o in outputs), Counter()) & sum((ngrams(r, n) for r in references), Counter())).total()
`len(o) - n + 1` can be negative: a sentence of two words has 0 4-grams, not −1.
    ngrams(o, n).total() → len(o) - n + 1
Your brevity penalty averages ratios of lengths. Sum the lengths, then divide once.
    - wanted / max(words, 1) → - sum(len(r) / max(len(o), 1) for o, r in zip(outputs, references, strict=True)) / len(outputs)
    1 - wanted / max(words, 1) → 1 - len(outputs) / (sum(len(o) / len(r) for o, r in zip(outputs, references, strict=True)) or 1)
The 4-grams are missing: `range(1, 4)` ends with 3.
    range(1, 5): → range(1, 4):
    range(1, 5): → range(1, 4):
    and (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 3)
You divide by the n-grams of the reference, which gives recall. Divide by the output's.
    (ngrams(o, n).total() for o in outputs) → (ngrams(o, n).total() for o in references)
You divide by the number of words for every n. Seven words have only six 2-grams.
    total = sum(ngrams(o, n).total() for o in outputs) → total = sum(len(o) for o in outputs)
Your exponents are ½, ¼, ⅛ and 1/16. Each precision has the exponent ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 2**n)
You multiply the precisions without the fourth root: each has the exponent ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** 1
You take the arithmetic mean of the precisions. BLEU takes the geometric mean.
    score *= (shared / max(total, 1)) ** (1 / 4) → p = locals().get('p', 0) + shared / max(total, 1) / 4
    and return score → … * p
Your counts are not clipped to those of the reference: take the & of two Counters.
    (ngrams(o, n) & ngrams(r, n)).total() for o, r in both → c for o, r in both for g, c in ngrams(o, n).items() if g in ngrams(r, n)
The brevity penalty is missing, or always 1: leaving words out costs nothing.
    math.exp(min(0, 1 - wanted / max(words, 1))) → 1
Your brevity penalty is above 1 where outputs are longer. It is at most 1.
    score = math.exp(min(0, 1 - wanted / max(words, 1))) → score = math.exp(max(-9, 1 - wanted / max(words, 1)))
You penalize long outputs, not short ones: r/o has the reference's length on top.
    wanted / max(words, 1) → words / wanted
right:
    wanted / max(words, 1) → wanted / (words or 1)
"""


@Exercise("5.4", "Quantize the context vector")
def quantize(context, bits):
    """Keep ``bits`` bits of every entry of a context vector."""
    count = 2**bits  # of intervals between −1 and 1
    indices = ((context + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0
    return (indices + 0.5) / count * 2 - 1


@quantize.oracle
def _(context, bits):
    count = 2**bits
    middles = torch.linspace(-1, 1, 2 * count + 1, dtype=context.dtype)[1::2]
    gaps = (context.unsqueeze(-1) - middles).abs()  # (batch, d_encoder, interval)
    return middles[gaps.argmin(dim=-1)]


@quantize.cases
def _():
    context = torch.tensor([[-0.9, -0.1, 0.2, 0.8]])
    yield "two bits allow the values −0.75, −0.25, 0.25 and 0.75", context, 2
    for bits in (1, 3, 5):
        yield "each extra bit halves the intervals", 2 * torch.rand(3, 8) - 1, bits
    context = torch.tensor([[-1.0, 1.0, 0.99]])
    yield "−1 is in the first interval, and 1 in the last", context, 2
    yield "a batch of one, or no batch axis", 2 * torch.rand(1, 5) - 1, 3
    yield "a batch of one, or no batch axis", 2 * torch.rand(5) - 1, 3


quantize.hints = """
- Number the intervals from the left, starting with 0. An entry x lies at the fraction
  (x + 1) / 2 of the way from −1 to 1.
- `((context + 1) / 2 * 2**bits).floor()` is the index of the interval. An entry of exactly
  1 would get an index beyond the last: `.clamp(max=2**bits - 1)`.
- The middle of interval i lies at the fraction (i + 0.5) / 2**bits of the way.
"""

quantize.mistakes = """
You use as many intervals as there are bits. Each bit doubles their number: 2**bits.
    count = 2**bits  # → count = bits  #
You return the lower end of each interval. Its middle lies half an interval higher.
    (indices + 0.5) → indices
You return the upper end of each interval. Its middle lies half an interval lower.
    (indices + 0.5) / count → (indices + 1) / count
You return the index of each interval. Return its middle, between −1 and 1.
    (indices + 0.5) / count * 2 - 1 → indices
Your middles lie between 0 and 1. For −1 to 1 multiply by 2 and subtract 1.
    count * 2 - 1 → count
Your intervals cover 0 to 1 only. For −1 to 1 add 1 and divide by 2 first.
    ((context + 1) / 2 * count).floor().clamp(max=count - 1) → (context * count).floor().clamp(0, count - 1)
You round to values that include −1 and 1. Round to the middles of 2**bits intervals.
    (indices + 0.5) / count * 2 - 1 → ((context + 1) / 2 * (count - 1)).round() / (count - 1) * 2 - 1
    (indices + 0.5) / count * 2 - 1 → ((context + 1) / 2 * count).round() / count * 2 - 1
Your intervals reach from the smallest to the largest entry. They always cover −1 to 1.
    (context + 1) / 2 → (context - context.min()) / (context.max() - context.min())
    and (indices + 0.5) / count * 2 - 1 → (indices + 0.5) / count * (context.max() - context.min()) + context.min()
An entry of 1 gets an interval beyond the last. It lies in the last: clamp the indices.
    .clamp(max=count - 1) →
right:
    floor().clamp(max=count - 1)  # from 0 → int().clamp(max=count - 1)
    (indices + 0.5) → (torch.bucketize(context, torch.linspace(-1, 1, count + 1)[1:-1], right=True) + 0.5)
"""
