"""Exercises of chapter 5: translating with one vector."""

import math
import random
from collections import Counter

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.compare import difference


@Exercise("5.1", "A split without a leak", axes={"train": "", "test": "", "words": ""})
def split_by_source(pairs, held_out, seed):
    """Hold out so many source sentences, each with all its pairs."""
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


@split_by_source.demand("every pair is in exactly one part")
def _(answer):
    pairs = forty_sources()
    train, test, _ = answer(pairs, 10, 0)
    if not (isinstance(train, list) and isinstance(test, list)):
        return "The first two parts must be lists of pairs (source, target)."
    if sorted(train + test) != sorted(pairs):
        return (
            f"{len(pairs)} pairs went in, {len(train)} + {len(test)} came out: every "
            "pair must be in exactly one part."
        )


@split_by_source.demand("no source is in both parts")
def _(answer):
    train, test, _ = answer(forty_sources(), 10, 0)
    shared = sources_of(train) & sources_of(test)
    if shared:
        return (
            f"{len(shared)} source sentences are in both parts: a source must take all "
            "its pairs along. Cut the list of different sources, not that of pairs."
        )


@split_by_source.demand("the test has as many sources as asked for")
def _(answer):
    train, test, _ = answer(forty_sources(), 10, 0)
    count = len(sources_of(test))
    if count == 30 and len(sources_of(train)) == 10:
        return "You hold out everything but what was asked for: the parts are swapped."
    if count != 10:
        return f"held_out=10 different sources were asked for, your test has {count}."


@split_by_source.demand("the words are those of the training sources")
def _(answer):
    train, test, words = answer(forty_sources(), 10, 0)
    if not isinstance(words, (set, frozenset)):
        return "Return a set of words."
    known = {word for source in sources_of(train) for word in source}
    leaked = words & {word for source in sources_of(test) for word in source} - known
    if leaked:
        return (
            f"The vocabulary has {len(leaked)} words that occur in the test only: "
            "build it from the training part."
        )
    if words & {word for _, target in train for word in target}:
        return "The vocabulary holds words of the targets; only sources were asked for."
    if words != known:
        return "These are not all the words of the training sources, one by one."


@split_by_source.demand("the seed decides, and nothing else")
def _(answer):
    pairs = forty_sources()
    tests = [sorted(answer(pairs, 10, seed)[1]) for seed in (3, 3, 4, 5, 6)]
    if tests[0] != tests[1]:
        return "The same seed must give the same split: use random.Random(seed)."
    if all(test == tests[0] for test in tests):
        return (
            "Four seeds give one and the same test part. Shuffle the sources before "
            "cutting: the first ones of a sorted list are the short or early ones."
        )
    one, other = (sorted(answer(salted(pairs, salt), 10, 3)[1]) for salt in (1, 2))
    if one != other:
        return (
            "The same seed splits otherwise when Python is started again: a set of "
            "words has another order each time. Sort the different sources, then "
            "shuffle them."
        )


split_by_source.hints = """
- Shuffle and cut the different source sentences, not the pairs.
- A set has no fixed order: `sorted({source for source, _ in pairs})`, then
  `random.Random(seed).shuffle(...)`.
- The first `held_out` of them are the test. Every pair goes where its source is; the
  words are those of the training sources.
"""

split_by_source.mistakes = """
You shuffle and cut the pairs: a source with several translations stands on both sides.
Cut the list of different sources.
    train = [pair for pair in pairs if pair[0] not in unseen] → pairs = sorted(pairs)
    and test = [pair for pair in pairs if pair[0] in unseen] → random.Random(seed).shuffle(pairs)
        train, test = pairs[held_out:], pairs[:held_out]
right:
    source for source, _ → p[0] for p
    sources = sorted({source for source, _ in pairs})  # → sources = list(dict.fromkeys(source for source, _ in pairs))  #
"""


@Exercise("5.2", "Stop at the end", axes="batch d_hidden")
def last_states(cell, words, lengths):
    """Return the state of every sentence after its own last word."""
    states = torch.zeros(len(words), cell.hidden_size)
    for t in range(words.shape[1]):
        reading = (t < lengths)[:, None]  # (batch, 1)
        states = torch.where(reading, cell(words[:, t], states), states)
    return states


@last_states.oracle
def _(cell, words, lengths):
    after = [torch.zeros(len(words), cell.hidden_size)]  # so many words, padding too
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


@last_states.demand("sentences of one length are read to their end")
def _(answer):
    cell, *sentences = batch(3, 3)
    calls = calls_of(cell)
    answer(cell, *sentences)
    unused = not calls  # asked now: the oracle calls the cell as well
    if answer.same() and unused:
        return (
            "The given `cell` is never called. Its weights decide the states; a new "
            "`nn.GRU` has others. Take each step with `cell(words[:, t], states)`."
        )
    return answer.same()


@last_states.cases
def _():
    yield "each sentence stops at its own end", *batch(2, 5, 3, 1)
    yield "an empty sentence keeps the state 0", *batch(3, 0, 2)


@last_states.demand("all sentences at once, not one after the other")
def _(answer):
    cell, *sentences = batch(6, 4, 5, 6, 2, 3, 6, 1)
    calls = calls_of(cell)
    answer(cell, *sentences)
    if len(calls) > 6:
        return (
            f"The states are right, but the cell was called {len(calls)} times for "
            "eight sentences of at most six words. Take one word of every sentence per "
            "call."
        )


@last_states.demand("gradients reach the words, and no padding")
def _(answer):
    cell, words, lengths = batch(4, 2)
    words.requires_grad_()
    answer(cell, words, lengths)
    [gradient] = answer.gradients(words)
    if gradient[1, 2:].any():
        return "The last states answer to padding: its slope must be exactly 0."


last_states.hints = """
- Begin with `torch.zeros(len(words), cell.hidden_size)` and go through the places:
  `words[:, t]` is one word of each sentence.
- At place t a sentence is still being read if `t < lengths`.
- `torch.where((t < lengths)[:, None], cell(words[:, t], states), states)`.
"""

last_states.mistakes = """
The cell reads the padding: every sentence is read to the end of the batch. Keep the old
state where t is not below the length.
    reading = (t < lengths)[:, None] → reading = (t < words.shape[1] + 0 * lengths)[:, None]
You set the padding to 0 and read on. A word of zeros is a word too: the state moves.
The state must stay as it was.
    states = torch.zeros(len(words), cell.hidden_size) → …
        places = torch.arange(words.shape[1])
        words = words * (places < lengths[:, None])[..., None]
        lengths = torch.full_like(lengths, words.shape[1])
After its end a sentence's state turns to 0. Keep the old state instead:
`torch.where(reading, new, states)`.
    torch.where(reading, cell(words[:, t], states), states) → cell(words[:, t], states) * reading
One word of padding is read: counting from 0, the last word is at length − 1, so read
while t < length.
    t < lengths → t <= lengths
The last word of each sentence is not read: t runs from 0, so read while t < length.
    reading = (t < lengths)[:, None]  # → reading = (t < lengths - 1)[:, None]  #
All sentences stop where the shortest ends.
    reading = (t < lengths)[:, None]  # → reading = (t < lengths.min() + 0 * lengths)[:, None]  #
An empty sentence gets the state at the end of the padding: its length − 1 is −1, which
picks the last place. Its state must be 0.
    states = torch.zeros(len(words), cell.hidden_size) → …
        kept = []
    and states = torch.where(reading, cell(words[:, t], states), states) → states = cell(words[:, t], states)
        kept.append(states)
    and return states → return torch.stack(kept, dim=1)[torch.arange(len(words)), lengths - 1]
You return the states after every place: (batch, token, d_hidden). Only one state of
each sentence was asked for.
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
Your states stand still while words are read and move on padding: the two branches are
the wrong way round.
    cell(words[:, t], states), states → states, cell(words[:, t], states)
Only the last word counts: hand the states of the last step to the cell.
    (reading, cell(words[:, t], states), states) → (reading, cell(words[:, t], 0 * states), states)
You read from the last place to the first: every state must grow out of the word before
it. Let t run from 0 upward.
    in range(words.shape[1]) → in reversed(range(words.shape[1]))
right:
    states = torch.where(reading, cell(words[:, t], states), states) → states = states + reading * (cell(words[:, t], states) - states)
    states = torch.where(reading, cell(words[:, t], states), states) → states = torch.where(reading, torch.nn.GRUCell.forward(cell, words[:, t], states), states)
    words.shape[1] → int(lengths.max())
"""


def ngrams(words, n):
    """Count the runs of n words: the notebook's own."""
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


def runs(words, n):
    """Return the runs of n words, without a counter."""
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


@corpus_bleu.oracle
def _(outputs, references):
    words, wanted = sum(map(len, outputs)), sum(map(len, references))
    logarithm = min(0, 1 - wanted / words) if words else 0
    for n in range(1, 5):
        shared = total = 0
        for output, reference in zip(outputs, references, strict=True):
            left = runs(reference, n)
            for run in runs(output, n):
                total += 1
                if run in left:  # cross it off
                    left.remove(run)
                    shared += 1
        if shared == 0:
            return 0.0
        logarithm += math.log(shared / total) / 4
    return math.exp(logarithm)


REFERENCE = ["la", "petite", "fille", "ne", "garde", "pas", "le", "chat"]
ARBRE = ["il", "voit", "un", "arbre"]


@corpus_bleu.cases
def _():
    label = "one sentence scores what the formula says"
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
    label = "three sentences, worked by hand, score 0.705"
    yield label, outputs, [["elle", "dort"], REFERENCE, ARBRE]
    # 5 words for 8 and 6 for 4 make 11 for 12; no mean of the ratios comes to that
    label = "too long in one sentence makes up for too short in another"
    yield label, [REFERENCE[:5], outputs[2]], [REFERENCE, ARBRE]
    label = "clipping is per sentence, and an empty output is allowed"
    yield label, [REFERENCE * 2, [], ["le"]], [REFERENCE] * 3


@corpus_bleu.demand("outputs that share words, but no run of four, score 0")
def _(answer):
    mixed, short = ["chat", "pas", "le", "la"], ["elle", "dort"]
    score = answer([mixed, short], [REFERENCE, short])
    if answer.same():
        return (
            "No run of three or four words is shared here, so two precisions are 0, and "
            f"so is the score; yours is {score:.3f}. A small number in place of 0 is "
            "called smoothing: sacrebleu does it (smooth:exp), the formula does not."
        )


@corpus_bleu.cases
def _():
    label = "nothing in common, or no words at all, scores 0"
    yield label, [["un", "deux"], []], [["trois"], ["quatre"]]
    yield label, [[], []], [["trois"], ["quatre"]]


def made_up(count):
    """Make sentences of few different words, so that two of them share runs."""
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
- Nothing is divided until all sentences are counted.
- For each n sum `(ngrams(o, n) & ngrams(r, n)).total()` and `ngrams(o, n).total()` over
  all pairs o, r of output and reference.
- The penalty compares the sum of all output lengths with that of all reference lengths.
"""

corpus_bleu.mistakes = """
Your score is in percent. It goes from 0 to 1: leave the factor 100 out.
    return score → return 100 * score
You average the scores of the sentences, so that a short one counts as much as a long
one. Sum the counts over all sentences, then divide once.
    words, wanted = sum(map(len, outputs)), sum(map(len, references)) → if len(outputs) > 1:
            each = [corpus_bleu([o], [r]) for o, r in zip(outputs, references, strict=True)]
            return sum(each) / len(each)
        …
You average each precision over the sentences. Sum shared and total n-grams over all
sentences, then divide once.
    shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both) → shared = sum(
            (ngrams(o, n) & ngrams(r, n)).total()
            / max(ngrams(o, n).total(), 1)
            for o, r in both
        )
        score *= (shared / len(outputs)) ** (1 / 4)
        continue
Your penalty is taken for each sentence. It compares the total length of the outputs
with that of the references.
    score = math.exp(min(0, 1 - wanted / max(words, 1))) → score = sum(
            math.exp(min(0, 1 - len(r) / len(o))) if o else 0
            for o, r in zip(outputs, references, strict=True)
        ) / len(outputs)
You leave out the sentences of fewer than four words. Their words and shorter runs
count, too.
    words, wanted = sum(map(len, outputs)), sum(map(len, references)) → long = [pair for pair in zip(outputs, references, strict=True) if len(pair[0]) > 3]
        outputs, references = [o for o, _ in long], [r for _, r in long]
        …
You join all sentences to one: runs of words now reach over the ends of sentences, and a
word may be found in another sentence's reference.
    words, wanted = sum(map(len, outputs)), sum(map(len, references)) → outputs, references = [sum(outputs, [])], [sum(references, [])]
        …
Take & sentence by sentence, before summing: in your sums a word is also found in
another sentence's reference.
    shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both) → both = list(both)
        found = sum((ngrams(o, n) for o, _ in both), Counter())
        wanted = sum((ngrams(r, n) for _, r in both), Counter())
        shared = (found & wanted).total()
`len(o) - n + 1` can be negative: a sentence of two words has 0 runs of four, not −1.
`ngrams(o, n).total()` counts right.
    ngrams(o, n).total() → len(o) - n + 1
Your penalty averages the ratios of the lengths, sentence by sentence. Sum the lengths
of all outputs and of all references, then divide once.
    - wanted / max(words, 1) → - sum(len(r) / max(len(o), 1) for o, r in zip(outputs, references, strict=True)) / len(outputs)
    1 - wanted / max(words, 1) → 1 - len(outputs) / (sum(len(o) / len(r) for o, r in zip(outputs, references, strict=True)) or 1)
The runs of four words are missing: `range(1, 4)` ends with 3.
    range(1, 5): → range(1, 4):
    range(1, 5): → range(1, 4):
    and (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 3)
You divide by the n-grams of the reference, which gives recall. A precision divides by
those of the output.
    (ngrams(o, n).total() for o in outputs) → (ngrams(o, n).total() for o in references)
You divide by the number of words for every n. Seven words have only six runs of two.
    total = sum(ngrams(o, n).total() for o in outputs) → total = sum(len(o) for o in outputs)
Your precisions weigh ½, ¼, ⅛ and 1/16: long runs hardly count, and the weights do not
sum to 1. All four have the power ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 2**n)
You multiply the four precisions without the fourth root: a geometric mean is (p₁ p₂ p₃
p₄) to the power ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** 1
You average the precisions. The mean is geometric: one precision of 0 makes the score 0.
    score *= (shared / max(total, 1)) ** (1 / 4) → p = locals().get('p', 0) + shared / max(total, 1) / 4
    and return score → … * p
A word counts as often as the output has it: “le le le” would be perfect. Count it at
most as often as the reference does: the & of two Counters.
    (ngrams(o, n) & ngrams(r, n)).total() for o, r in both → c for o, r in both for g, c in ngrams(o, n).items() if g in ngrams(r, n)
The brevity penalty is missing, or always 1: leaving words out costs nothing.
    math.exp(min(0, 1 - wanted / max(words, 1))) → 1
An output longer than its reference gets a factor above 1: the penalty is at most 1.
    score = math.exp(min(0, 1 - wanted / max(words, 1))) → score = math.exp(max(-9, 1 - wanted / max(words, 1)))
You punish long outputs instead of short ones: r/o is the reference's length by the
output's.
    wanted / max(words, 1) → words / wanted
right:
    wanted / max(words, 1) → wanted / (words or 1)
"""


@Exercise("5.4", "How fine must the card be?")
def round_card(card, bits):
    """Keep so many bits of every number of a card."""
    count = 2**bits  # of intervals between −1 and 1
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0
    return (places + 0.5) / count * 2 - 1


@round_card.oracle
def _(card, bits):
    count = 2**bits
    middles = torch.linspace(-1, 1, 2 * count + 1, dtype=card.dtype)[1::2]
    gaps = (card.unsqueeze(-1) - middles).abs()  # (batch, d_encoder, interval)
    return middles[gaps.argmin(dim=-1)]


def card_of(*shape):
    """Make numbers between −1 and 1 that lie on no border between two intervals."""
    return (torch.randint(64, shape) + 0.3) / 32 - 1


@round_card.cases
def _():
    card = torch.tensor([[-0.9, -0.1, 0.2, 0.8]])
    yield "two bits leave −0.75, −0.25, 0.25 and 0.75", card, 2
    for bits in (1, 3, 5):
        yield "each further bit halves the intervals", card_of(3, 8), bits
    card = torch.tensor([[-1.0, 1.0, 0.99]])
    yield "both ends belong to their intervals", card, 2
    yield "a card of one batch, or of none", card_of(1, 5), 3
    yield "a card of one batch, or of none", card_of(5), 3


round_card.hints = """
- Count the intervals from the left, beginning with 0: a number x lies (x + 1) / 2 of
  the whole way from −1 to 1.
- `((card + 1) / 2 * 2**bits).floor()` is the number of the interval; 1 itself would
  begin one too many, so `.clamp(max=2**bits - 1)`.
- The middle of interval i lies (i + 0.5) / 2**bits of the whole way.
"""

round_card.mistakes = """
You make as many intervals as there are bits. Each bit doubles their number: it is
2**bits.
    count = 2**bits  # → count = bits  #
You return the lower end of each interval. Its middle lies half an interval further.
    (places + 0.5) → places
You return the upper end of each interval. Its middle lies half an interval before it.
    (places + 0.5) / count → (places + 1) / count
You return the number of each interval, from 0 on. What goes on the card is the middle
of the interval, between −1 and 1.
    (places + 0.5) / count * 2 - 1 → places
Your middles lie between 0 and 1. The intervals reach from −1 to 1: stretch them by 2
and shift them by −1.
    count * 2 - 1 → count
You cut the way from 0 to 1. The numbers of a card lie between −1 and 1: shift and halve
them first.
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1) → places = (card * count).floor().clamp(0, count - 1)
You round to values that begin with −1 and end with 1. Asked for are the middles of
2**bits intervals of one size.
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → return ((card + 1) / 2 * (count - 1)).round() / (count - 1) * 2 - 1
    and return (places + 0.5) / count * 2 - 1 →
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → return ((card + 1) / 2 * count).round() / count * 2 - 1
    and return (places + 0.5) / count * 2 - 1 →
Your intervals reach from the smallest to the largest number of this card, so that each
card has others. They reach from −1 to 1.
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → low, high = card.min(), card.max()
    and return (places + 0.5) / count * 2 - 1 → places = ((card - low) / (high - low) * count).floor().clamp(max=count - 1)
        return (places + 0.5) / count * (high - low) + low
A number of 1 gets an interval of its own, beyond the last. There are 2**bits intervals,
and 1 lies in the last: clamp the places.
    .clamp(max=count - 1) →
right:
    floor().clamp(max=count - 1)  # from 0 → int().clamp(max=count - 1)
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → edges = torch.linspace(-1, 1, count + 1)[1:-1]
    and return (places + 0.5) → return (torch.bucketize(card, edges, right=True) + 0.5)
    places = ((card + 1) / 2 * count).floor().clamp(max=count - 1)  # from 0 → return ((card.clamp(max=0.999999) * count / 2).floor() + 0.5) * 2 / count
    and return (places + 0.5) / count * 2 - 1 →
"""
