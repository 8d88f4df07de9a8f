"""Exercises of chapter 5: the RNN encoder–decoder, held-out data, and BLEU."""

import math
import random
from collections import Counter

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.compare import difference


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
    left, chosen = sorted({source for source, _ in pairs}), []
    generator = torch.Generator().manual_seed(seed)
    while len(chosen) < held_out:
        index = int(torch.randint(len(left), (1,), generator=generator))
        chosen.append(left.pop(index))
    train = [pair for pair in pairs if pair[0] not in chosen]
    test = [pair for pair in pairs if pair[0] in chosen]
    return train, test, {word for source, _ in train for word in source}


def forty_sources():
    """Make pairs of 40 sources, each with its own words and one to four targets."""
    sources = [("the", f"noun{i}", f"verb{i}") for i in range(40)]
    numbers = [i for i in range(40) for _ in range(1 + i % 4)]
    pairs = [(sources[i], (f"mot{i}", f"{k}")) for k, i in enumerate(numbers)]
    return [pairs[k] for k in torch.randperm(len(pairs)).tolist()]


class Word(str):
    """A word whose hash depends on a salt, as if Python had been started anew."""

    def __hash__(self):
        return hash((self.salt, *map(ord, self)))


def salted(value, salt):
    """Copy pairs of sentences, with words whose hashes depend on the salt."""
    if not isinstance(value, str):
        return type(value)(salted(part, salt) for part in value)
    word = Word(value)
    word.salt = salt
    return word


def sources_of(pairs):
    """Return the different sources of some pairs."""
    return {source for source, _ in pairs}


@split_by_source.demand("every pair is in exactly one of train and test")
def _(answer):
    pairs = forty_sources()
    train, test, _ = answer(pairs, 10, 0)
    if not (isinstance(train, list) and isinstance(test, list)):
        return "`train` and `test` must be lists of pairs (source, target)."
    if sorted(train + test) != sorted(pairs):
        return (
            f"{len(pairs)} pairs went in, and {len(train)} + {len(test)} came out. Every "
            "pair must be in exactly one of `train` and `test`."
        )


@split_by_source.demand("no source is in both train and test")
def _(answer):
    train, test, _ = answer(forty_sources(), 10, 0)
    shared = sources_of(train) & sources_of(test)
    if shared:
        return (
            f"{len(shared)} source sentences are in both `train` and `test`. All pairs of "
            "a source must stay together: split the list of different sources, not the "
            "list of pairs."
        )


@split_by_source.demand("the test set has held_out different sources")
def _(answer):
    train, test, _ = answer(forty_sources(), 10, 0)
    count = len(sources_of(test))
    if count == 30 and len(sources_of(train)) == 10:
        return (
            "`train` and `test` are swapped: 30 of the 40 sources are held out, not 10."
        )
    if count != 10:
        return f"With held_out=10, your test set has {count} different sources."


@split_by_source.demand("the vocabulary is that of the training sources")
def _(answer):
    train, test, words = answer(forty_sources(), 10, 0)
    if not isinstance(words, (set, frozenset)):
        return "Return a set of words."
    known = {word for source in sources_of(train) for word in source}
    leaked = words & {word for source in sources_of(test) for word in source} - known
    if leaked:
        return (
            f"The vocabulary contains {len(leaked)} words that occur only in the test "
            "set: build it from the training pairs."
        )
    if words & {word for _, target in train for word in target}:
        return "The vocabulary contains words of the targets. Take those of the sources only."
    if words != known:
        return "This is not the set of the single words of the training sources."


@split_by_source.demand("the split depends on the seed, and on nothing else")
def _(answer):
    pairs = forty_sources()
    tests = [sorted(answer(pairs, 10, seed)[1]) for seed in (3, 3, 4, 5, 6)]
    if tests[0] != tests[1]:
        return "The same seed must give the same split: use random.Random(seed)."
    if all(test == tests[0] for test in tests):
        return (
            "Four different seeds give the same test set. Shuffle the sources before you "
            "split them: the first sources of a list are not a random sample."
        )
    one, other = (sorted(answer(salted(pairs, salt), 10, 3)[1]) for salt in (1, 2))
    if one != other:
        return (
            "With the same seed, the split changes when Python is restarted: the order "
            "of a set of strings is different each time. Sort the different sources, "
            "then shuffle them."
        )


split_by_source.hints = """
- Shuffle and split the list of different source sentences, not the pairs.
- A set has no fixed order. Sort it, `sorted({source for source, _ in pairs})`, and then
  use `random.Random(seed).shuffle(...)`.
- The first `held_out` of them are the test sources. Every pair goes with its source,
  and the vocabulary is made of the words of the training sources.
"""

split_by_source.mistakes = """
You shuffle and split the pairs, so a source with several translations can end up in
both sets. Split the list of different sources.
    train = [pair for pair in pairs if pair[0] not in unseen] → pairs = sorted(pairs)
    and test = [pair for pair in pairs if pair[0] in unseen] → random.Random(seed).shuffle(pairs)
        train, test = pairs[held_out:], pairs[:held_out]
The vocabulary contains words that occur only in the test set: build it from the
training pairs.
    in train for word → in pairs for word
right:
    source for source, _ → p[0] for p
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
    after = [
        torch.zeros(len(words), cell.hidden_size)
    ]  # index: words read, padding too
    for t in range(words.shape[1]):
        after.append(cell(words[:, t], after[-1]))
    return torch.stack([after[length][i] for i, length in enumerate(lengths)])


def batch(*lengths):
    """Make a cell, and a batch of sentences of these lengths for it."""
    cell = nn.GRUCell(3, 5)
    return cell, torch.randn(len(lengths), max(lengths), 3), torch.tensor(lengths)


def calls_of(cell):
    """Return a list that grows by one entry with each call of the cell."""
    calls = []
    cell.register_forward_hook(lambda *call: calls.append(call))
    return calls


@last_states.demand("sentences of equal length are read to their end")
def _(answer):
    cell, *sentences = batch(3, 3)
    calls = calls_of(cell)
    answer(cell, *sentences)
    unused = not calls  # asked now: the oracle calls the cell as well
    if answer.same() and unused:
        return (
            "The given `cell` is never called. The states depend on its weights, and any "
            "new layer has different ones. Compute each step with "
            "`cell(words[:, t], states)`."
        )
    return answer.same()


@last_states.cases
def _():
    yield "each sentence stops at its own end", *batch(2, 5, 3, 1)
    yield "an empty sentence keeps the initial state, 0", *batch(3, 0, 2)


@last_states.demand("each call of the cell takes the whole batch")
def _(answer):
    cell, *sentences = batch(6, 4, 5, 6, 2, 3, 6, 1)
    calls = calls_of(cell)
    answer(cell, *sentences)
    if len(calls) > 6:
        return (
            f"The states are right, but the cell was called {len(calls)} times for "
            "eight sentences of at most six words. Process one word of every sentence "
            "per call."
        )


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
The cell reads the padding: every sentence is read up to the length of the longest. Keep
the old state where t is not less than the length.
    reading = (t < lengths)[:, None] → reading = (t < words.shape[1] + 0 * lengths)[:, None]
You set the padding to 0, but the cell still reads it. A vector of zeros is an input,
too, and changes the state. After its last word a sentence must keep its state.
    states = torch.zeros(len(words), cell.hidden_size) → …
        positions = torch.arange(words.shape[1])
        words = words * (positions < lengths[:, None])[..., None]
        lengths = torch.full_like(lengths, words.shape[1])
After the end of a sentence its state becomes 0. Keep the old state instead:
`torch.where(reading, new, states)`.
    torch.where(reading, cell(words[:, t], states), states) → cell(words[:, t], states) * reading
You read one step of padding: counting from 0, the last word is at position length − 1,
so read while t < length.
    t < lengths → t <= lengths
The last word of each sentence is not read: t runs from 0, so read while t < length.
    reading = (t < lengths)[:, None]  # → reading = (t < lengths - 1)[:, None]  #
All sentences stop where the shortest one ends. Each has its own length.
    reading = (t < lengths)[:, None]  # → reading = (t < lengths.min() + 0 * lengths)[:, None]  #
An empty sentence gets the state after all its padding: its length − 1 is −1, the index
of the last position. Its state must be 0.
    states = torch.zeros(len(words), cell.hidden_size) → …
        kept = []
    and states = torch.where(reading, cell(words[:, t], states), states) → states = cell(words[:, t], states)
        kept.append(states)
    and return states → return torch.stack(kept, dim=1)[torch.arange(len(words)), lengths - 1]
You return the states at every position: (batch, token, d_hidden). Return only one state
for each sentence.
    states = torch.zeros(len(words), cell.hidden_size) → …
        kept = []
    and states = torch.where(reading, cell(words[:, t], states), states) → states = cell(words[:, t], states)
        kept.append(states)
    and return states → return torch.stack(kept, dim=1)
    states = torch.zeros(len(words), cell.hidden_size) → …
        kept = []
    and states = torch.where(reading, cell(words[:, t], states), states) → …
        kept.append(states)
    and return states → return torch.stack(kept, dim=1)
Your states stay the same on words and change on padding: the new and the old states are
swapped.
    cell(words[:, t], states), states → states, cell(words[:, t], states)
Your states depend on the last word only: pass the previous states to the cell.
    (reading, cell(words[:, t], states), states) → (reading, cell(words[:, t], 0 * states), states)
You read each sentence backwards, from the last position to the first. Let t run from 0
upward.
    in range(words.shape[1]) → in reversed(range(words.shape[1]))
right:
    states = torch.where(reading, cell(words[:, t], states), states) → states = states + reading * (cell(words[:, t], states) - states)
    states = torch.where(reading, cell(words[:, t], states), states) → states = torch.where(reading, torch.nn.GRUCell.forward(cell, words[:, t], states), states)
    words.shape[1] → int(lengths.max())
"""


def ngrams(words, n):
    """Count the n-grams of a sentence, as the notebook does."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


@Exercise("5.3", "BLEU of a corpus", tolerance=1e-6)
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


def all_ngrams(words, n):
    """List the n-grams of a sentence, without a counter."""
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@corpus_bleu.oracle
def _(outputs, references):
    words, wanted = sum(map(len, outputs)), sum(map(len, references))
    logarithm = min(0, 1 - wanted / words) if words else 0
    for n in range(1, 5):
        shared = total = 0
        for output, reference in zip(outputs, references, strict=True):
            left = all_ngrams(reference, n)
            for ngram in all_ngrams(output, n):
                total += 1
                if ngram in left:  # cross it off
                    left.remove(ngram)
                    shared += 1
        if shared == 0:
            return 0.0
        logarithm += math.log(shared / total) / 4
    return math.exp(logarithm)


REFERENCE = ["la", "petite", "fille", "ne", "garde", "pas", "le", "chat"]
ARBRE = ["il", "voit", "un", "arbre"]


@corpus_bleu.cases
def _():
    label = "one sentence has the score of the formula"
    yield label, [[*REFERENCE, "et", "dort"]], [REFERENCE]
    without_petite = [REFERENCE[0], *REFERENCE[2:]]
    yield label, [without_petite], [REFERENCE]
    yield (
        label,
        [["le", "le", "garde", "pas", "le", "chat", "la", "petite"]],
        [REFERENCE],
    )
    yield label, [REFERENCE[:4]], [REFERENCE[:4]]
    # n = 1: 2 + 7 + 4 of 2 + 7 + 6; n = 2: 1 + 5 + 3 of 1 + 6 + 5;
    # n = 3: 0 + 4 + 2 of 0 + 5 + 4; n = 4: 0 + 3 + 1 of 0 + 4 + 3; 15 words for 14.
    outputs = [["elle", "dort"], without_petite, [*ARBRE, "et", "dort"]]
    label = "three sentences have the score 0.705, worked out by hand"
    yield label, outputs, [["elle", "dort"], REFERENCE, ARBRE]
    # 5 words for 8 and 6 for 4 make 11 for 12; no mean of the ratios comes to that
    label = "the brevity penalty compares total lengths"
    yield label, [REFERENCE[:5], outputs[2]], [REFERENCE, ARBRE]
    label = "counts are clipped per sentence, and an output may be empty"
    yield label, [REFERENCE * 2, [], ["le"]], [REFERENCE] * 3


@corpus_bleu.demand("words in common, but no 4-gram, give the score 0")
def _(answer):
    mixed, short = ["chat", "pas", "le", "la"], ["elle", "dort"]
    score = answer([mixed, short], [REFERENCE, short])
    if answer.same():
        return (
            "No 4-gram is shared here, so its precision is 0, and so is the score; yours "
            f"is {score:.3f}. A small number in place of 0 is called smoothing: "
            "sacrebleu does it by default (smooth:exp), the formula does not."
        )


@corpus_bleu.cases
def _():
    label = "nothing in common, or no words at all, gives the score 0"
    yield label, [["un", "deux"], []], [["trois"], ["quatre"]]
    yield label, [[], []], [["trois"], ["quatre"]]


def made_up(count):
    """Make sentences of few different words, so that two of them share n-grams."""
    lengths = torch.randint(4, 12, (count,)).tolist()
    indices = [torch.randint(3, (length,)).tolist() for length in lengths]
    return [[["le", "la", "chat"][i] for i in sentence] for sentence in indices]


@corpus_bleu.demand("agrees with sacrebleu")
def _(answer):
    from sacrebleu.metrics import BLEU

    outputs, references = made_up(30), made_up(30)
    score = answer(outputs, references)
    metric = BLEU(tokenize="none", smooth_method="none")
    theirs = metric.corpus_score(
        [" ".join(words) for words in outputs],
        [[" ".join(words) for words in references]],
    )
    return difference(score, theirs.score / 100, 1e-6)


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
You average the BLEU scores of the sentences, so a short one counts as much as a long
one. Sum the counts over all sentences, then divide once.
    words, wanted = sum(map(len, outputs)), sum(map(len, references)) → if len(outputs) > 1:
            each = [corpus_bleu([o], [r]) for o, r in zip(outputs, references, strict=True)]
            return sum(each) / len(each)
        …
You average each precision over the sentences. Sum the shared n-grams and all n-grams
over all sentences, then divide once.
    shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both) → shared = sum(
            (ngrams(o, n) & ngrams(r, n)).total()
            / max(ngrams(o, n).total(), 1)
            for o, r in both
        )
        score *= (shared / len(outputs)) ** (1 / 4)
        continue
You compute a brevity penalty for each sentence. There is one for the corpus: it
compares the total length of the outputs with that of the references.
    score = math.exp(min(0, 1 - wanted / max(words, 1))) → score = sum(
            math.exp(min(0, 1 - len(r) / len(o))) if o else 0
            for o, r in zip(outputs, references, strict=True)
        ) / len(outputs)
You leave out the sentences of fewer than four words. Their words and shorter n-grams
count, too.
    words, wanted = sum(map(len, outputs)), sum(map(len, references)) → long = [pair for pair in zip(outputs, references, strict=True) if len(pair[0]) > 3]
        outputs, references = [o for o, _ in long], [r for _, r in long]
        …
You join all sentences into one, so n-grams reach across the ends of sentences, and a
word may be found in another sentence's reference.
    words, wanted = sum(map(len, outputs)), sum(map(len, references)) → outputs, references = [sum(outputs, [])], [sum(references, [])]
        …
You sum the counts of all sentences before you clip them, so an n-gram may be found in
another sentence's reference. Take & sentence by sentence.
    shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both) → both = list(both)
        found = sum((ngrams(o, n) for o, _ in both), Counter())
        wanted = sum((ngrams(r, n) for _, r in both), Counter())
        shared = (found & wanted).total()
`len(o) - n + 1` can be negative: a sentence of two words has 0 4-grams, not −1.
`ngrams(o, n).total()` counts correctly.
    ngrams(o, n).total() → len(o) - n + 1
Your brevity penalty averages the length ratios of the sentences. Sum the lengths of all
outputs and of all references, then divide once.
    - wanted / max(words, 1) → - sum(len(r) / max(len(o), 1) for o, r in zip(outputs, references, strict=True)) / len(outputs)
    1 - wanted / max(words, 1) → 1 - len(outputs) / (sum(len(o) / len(r) for o, r in zip(outputs, references, strict=True)) or 1)
The 4-grams are missing: `range(1, 4)` ends with 3.
    range(1, 5): → range(1, 4):
    range(1, 5): → range(1, 4):
    and (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 3)
You divide by the n-grams of the reference, which gives recall. A precision divides by
those of the output.
    (ngrams(o, n).total() for o in outputs) → (ngrams(o, n).total() for o in references)
You divide by the number of words for every n. Seven words have only six 2-grams.
    total = sum(ngrams(o, n).total() for o in outputs) → total = sum(len(o) for o in outputs)
Your weights are ½, ¼, ⅛ and 1/16: long n-grams hardly count, and the weights do not sum
to 1. Each precision has the exponent ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 2**n)
You multiply the four precisions without taking the fourth root: their geometric mean is
(p₁ p₂ p₃ p₄) to the power ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** 1
You take the arithmetic mean of the precisions. BLEU takes the geometric mean: one
precision of 0 makes the score 0.
    score *= (shared / max(total, 1)) ** (1 / 4) → p = locals().get('p', 0) + shared / max(total, 1) / 4
    and return score → … * p
Your counts are not clipped: each n-gram counts as often as the output has it, and “le
le le” would be perfect. Count it at most as often as the reference has it, with the &
of two Counters.
    (ngrams(o, n) & ngrams(r, n)).total() for o, r in both → c for o, r in both for g, c in ngrams(o, n).items() if g in ngrams(r, n)
The brevity penalty is missing, or always 1: leaving words out costs nothing.
    math.exp(min(0, 1 - wanted / max(words, 1))) → 1
An output longer than its reference gets a factor above 1: the brevity penalty is at
most 1.
    score = math.exp(min(0, 1 - wanted / max(words, 1))) → score = math.exp(max(-9, 1 - wanted / max(words, 1)))
You penalize long outputs instead of short ones: r/o is the reference's length divided
by the output's.
    wanted / max(words, 1) → words / wanted
right:
    wanted / max(words, 1) → wanted / (words or 1)
"""


@Exercise("5.4", "How fine must the card be?")
def round_card(card, bits):
    """Keep so many bits of every entry of a context vector."""
    count = 2**bits  # of intervals between −1 and 1
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0
    return (indices + 0.5) / count * 2 - 1


@round_card.oracle
def _(card, bits):
    count = 2**bits
    middles = torch.linspace(-1, 1, 2 * count + 1, dtype=card.dtype)[1::2]
    gaps = (card.unsqueeze(-1) - middles).abs()  # (batch, d_encoder, interval)
    return middles[gaps.argmin(dim=-1)]


def card_of(*shape):
    """Make entries between −1 and 1, none of them on a border of two intervals."""
    return (torch.randint(64, shape) + 0.3) / 32 - 1


@round_card.cases
def _():
    card = torch.tensor([[-0.9, -0.1, 0.2, 0.8]])
    yield "two bits allow the values −0.75, −0.25, 0.25 and 0.75", card, 2
    for bits in (1, 3, 5):
        yield "each extra bit halves the intervals", card_of(3, 8), bits
    card = torch.tensor([[-1.0, 1.0, 0.99]])
    yield "−1 is in the first interval, and 1 in the last", card, 2
    yield "a batch of one, or no batch axis", card_of(1, 5), 3
    yield "a batch of one, or no batch axis", card_of(5), 3


round_card.hints = """
- Number the intervals from the left, starting with 0. An entry x lies at the fraction
  (x + 1) / 2 of the way from −1 to 1.
- `((card + 1) / 2 * 2**bits).floor()` is the index of the interval. An entry of exactly
  1 would get an index beyond the last: `.clamp(max=2**bits - 1)`.
- The middle of interval i lies at the fraction (i + 0.5) / 2**bits of the way.
"""

round_card.mistakes = """
You use as many intervals as there are bits. Each bit doubles their number: there are
2**bits.
    count = 2**bits  # → count = bits  #
You return the lower end of each interval. Its middle lies half an interval higher.
    (indices + 0.5) → indices
You return the upper end of each interval. Its middle lies half an interval lower.
    (indices + 0.5) / count → (indices + 1) / count
You return the index of each interval. Return the middle of the interval, which lies
between −1 and 1.
    (indices + 0.5) / count * 2 - 1 → indices
Your middles lie between 0 and 1. The intervals cover −1 to 1: multiply by 2 and
subtract 1.
    count * 2 - 1 → count
Your intervals cover 0 to 1 only. The entries lie between −1 and 1: add 1 and divide by
2 first.
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1) → indices = (card * count).floor().clamp(0, count - 1)
You round to values from −1 to 1, both included. Round to the middles of 2**bits
intervals of equal size.
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → return ((card + 1) / 2 * (count - 1)).round() / (count - 1) * 2 - 1
    and return (indices + 0.5) / count * 2 - 1 →
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → return ((card + 1) / 2 * count).round() / count * 2 - 1
    and return (indices + 0.5) / count * 2 - 1 →
Your intervals cover the range from the smallest to the largest entry, so they change
with the input. They always cover −1 to 1.
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → low, high = card.min(), card.max()
    and return (indices + 0.5) / count * 2 - 1 → indices = ((card - low) / (high - low) * count).floor().clamp(max=count - 1)
        return (indices + 0.5) / count * (high - low) + low
An entry of 1 gets an interval of its own, beyond the last. There are 2**bits intervals,
and 1 lies in the last: clamp the indices.
    .clamp(max=count - 1) →
right:
    floor().clamp(max=count - 1)  # from 0 → int().clamp(max=count - 1)
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → edges = torch.linspace(-1, 1, count + 1)[1:-1]
    and return (indices + 0.5) → return (torch.bucketize(card, edges, right=True) + 0.5)
    indices = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → return ((card.clamp(max=0.999999) * count / 2).floor() + 0.5) * 2 / count
    and return (indices + 0.5) / count * 2 - 1 →
"""
