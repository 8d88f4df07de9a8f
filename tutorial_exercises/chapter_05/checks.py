"""Checks for chapter 5: translating with one vector.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import torch
from torch import nn

from tutorial_exercises.exercise import Exercise

from .bleu import corpus

__all__ = ["corpus", "rounding", "split", "states"]

split = Exercise(
    "5.1",
    "A split without a leak",
    name="split_by_source",
    returns={"train": "", "test": "", "words": ""},
    fallback="tutorial_exercises.chapter_05.solutions:split_by_source",
    hints=[
        "Shuffle and cut the different source sentences, not the pairs.",
        "A set has no fixed order: `sorted({source for source, _ in pairs})`, then "
        "`random.Random(seed).shuffle(...)`.",
        "The first `held_out` of them are the test. Every pair goes where its source "
        "is; the words are those of the training sources.",
    ],
)


@split.spec
def split_by_source(pairs, held_out, seed):
    """Draw one source after the other; look each pair up."""
    left, chosen = sorted({source for source, _ in pairs}), []
    generator = torch.Generator().manual_seed(seed)
    while len(chosen) < held_out:
        place = int(torch.randint(len(left), (1,), generator=generator))
        chosen.append(left.pop(place))
    train = [pair for pair in pairs if pair[0] not in chosen]
    test = [pair for pair in pairs if pair[0] in chosen]
    return train, test, {word for source, _ in train for word in source}


def _pairs():
    """Make 40 sources, each with words of its own, and one to four translations."""
    sources = [("the", f"noun{i}", f"verb{i}") for i in range(40)]
    places = [i for i in range(40) for _ in range(1 + i % 4)]
    pairs = [(sources[i], (f"mot{i}", f"{k}")) for k, i in enumerate(places)]
    return [pairs[place] for place in torch.randperm(len(pairs)).tolist()]


class _Word(str):
    """A word whose hash is another with another salt, as in another run of Python."""

    def __hash__(self):
        return hash((self.salt, *map(ord, self)))


def _salted(value, salt):
    """Copy pairs of sentences, with words whose hashes answer to the salt."""
    if not isinstance(value, str):
        return type(value)(_salted(part, salt) for part in value)
    word = _Word(value)
    word.salt = salt
    return word


def _split(probe, seed=0):
    pairs = _pairs()
    return pairs, *probe(pairs, 10, seed)


def _check_pairs(probe, pairs, train, test):
    lists = isinstance(train, list) and isinstance(test, list)
    message = "The first two parts must be lists of pairs (source, target)."
    probe.require(lists, "type", message)
    message = (
        f"{len(pairs)} pairs went in, {len(train)} + {len(test)} came out: every pair "
        "must be in exactly one part."
    )
    try:
        same = sorted(train + test) == sorted(pairs)
    except TypeError:
        same = False
    probe.require(same, "lost-pairs", message)


@split.step("every pair is in exactly one part")
def _(probe):
    pairs, train, test, _ = _split(probe)
    _check_pairs(probe, pairs, train, test)


@split.step("no source is in both parts")
def _(probe):
    _, train, test, _ = _split(probe)
    shared = {source for source, _ in train} & {source for source, _ in test}
    probe.require(
        not shared,
        "leak",
        f"{len(shared)} source sentences are in both parts: a source must take all "
        "its pairs along. Cut the list of different sources, not that of pairs.",
    )


@split.step("the test has as many sources as asked for")
def _(probe):
    _, train, test, _ = _split(probe)
    count = len({source for source, _ in test})
    left = len({source for source, _ in train})
    message = "You hold out everything but what was asked for: the parts are swapped."
    probe.require((count, left) != (30, 10), "swapped", message)
    message = f"held_out=10 different sources were asked for, your test has {count}."
    probe.require(count == 10, "count", message)


@split.step("the words are those of the training sources")
def _(probe):
    _, train, test, words = _split(probe)
    probe.require(isinstance(words, (set, frozenset)), "type", "Return a set of words.")
    known = {word for source, _ in train for word in source}
    unseen = {word for source, _ in test for word in source} - known
    probe.require(
        not words & unseen,
        "vocabulary-leak",
        f"The vocabulary has {len(words & unseen)} words that occur in the test only: "
        "build it from the training part.",
    )
    french = {word for _, target in train for word in target}
    message = "The vocabulary holds words of the targets; only sources were asked for."
    probe.require(not words & french, "target-words", message)
    message = "These are not all the words of the training sources, one by one."
    probe.require(words == known, "words", message)


@split.step("the seed decides, and nothing else")
def _(probe):
    pairs = _pairs()
    tests = [sorted(probe(pairs, 10, seed)[1]) for seed in (3, 3, 4, 5, 6)]
    message = "The same seed must give the same split: use random.Random(seed)."
    probe.require(tests[0] == tests[1], "not-repeatable", message)
    message = (
        "Four seeds give one and the same test part. Shuffle the sources before "
        "cutting: the first ones of a sorted list are the short or early ones."
    )
    probe.require(any(test != tests[0] for test in tests), "no-shuffle", message)
    tests = [sorted(probe(_salted(pairs, salt), 10, 3)[1]) for salt in (1, 2)]
    message = (
        "The same seed splits otherwise when Python is started again: a set of words "
        "has another order each time. Sort the different sources, then shuffle them."
    )
    probe.require(tests[0] == tests[1], "set-order", message)


states = Exercise(
    "5.2",
    "Stop at the end",
    name="last_states",
    returns="batch d_hidden",
    fallback="tutorial_exercises.chapter_05.solutions:last_states",
    hints=[
        "Begin with `torch.zeros(len(words), cell.hidden_size)` and go through the "
        "places: `words[:, t]` is one word of each sentence.",
        "At place t a sentence is still being read if `t < lengths`.",
        "`torch.where((t < lengths)[:, None], cell(words[:, t], states), states)`.",
    ],
)


@states.spec
def last_states(cell, words, lengths):
    """Read every sentence alone, word by word."""
    rows = []
    for row, length in zip(words, lengths.tolist(), strict=True):
        state = torch.zeros(1, cell.hidden_size)
        for word in row[:length]:
            state = cell(word[None], state)
        rows.append(state[0])
    return torch.stack(rows)


def _batch(*lengths):
    cell = nn.GRUCell(3, 5)
    return cell, torch.randn(len(lengths), max(lengths), 3), torch.tensor(lengths)


def _calls(cell):
    """Return a list that grows by one entry with each call of the cell."""
    calls = []
    cell.register_forward_hook(lambda *call: calls.append(call))
    return calls


@states.step("one state for each sentence")
def _(probe):
    found = probe(*_batch(4, 2, 3))
    probe.shape(found, batch=3, d_hidden=5)


@states.step("sentences of one length are read to their end")
def _(probe):
    cell, words, lengths = _batch(3, 3)
    calls = _calls(cell)
    found = probe(cell, words, lengths)
    called = len(calls) > 0  # counted now: the oracle calls the cell as well
    probe.require(
        called or probe.close(found, probe.oracle()),
        "other-cell",
        "The given `cell` is never called. Its weights decide the states; a new "
        "`nn.GRU` has others. Take each step with `cell(words[:, t], states)`.",
    )
    probe.same()


@states.step("each sentence stops at its own end")
def _(probe):
    probe(*_batch(2, 5, 3, 1))
    probe.same()


@states.step("an empty sentence keeps the state 0")
def _(probe):
    probe(*_batch(3, 0, 2))
    probe.same()


@states.step("all sentences at once, not one after the other")
def _(probe):
    cell, words, lengths = _batch(*[6, 4, 5, 6, 2, 3, 6, 1])
    calls = _calls(cell)
    probe(cell, words, lengths)
    probe.require(
        len(calls) <= 6,
        "loop",
        f"The states are right, but the cell was called {len(calls)} times for eight "
        "sentences of at most six words. Take one word of every sentence per call.",
    )


@states.step("gradients reach the words, and no padding")
def _(probe):
    cell, words, lengths = _batch(4, 2)
    words.requires_grad_()
    probe(cell, words, lengths)
    [slopes] = probe.gradients(words)
    message = "The last states answer to padding: its slope must be exactly 0."
    probe.require(slopes[1, 2:].eq(0).all(), "padding-read", message)


rounding = Exercise(
    "5.4",
    "How fine must the card be?",
    name="round_card",
    fallback="tutorial_exercises.chapter_05.solutions:round_card",
    hints=[
        "Count the intervals from the left, beginning with 0: a number x lies "
        "(x + 1) / 2 of the whole way from −1 to 1.",
        "`((card + 1) / 2 * 2**bits).floor()` is the number of the interval; 1 itself "
        "would begin one too many, so `.clamp(max=2**bits - 1)`.",
        "The middle of interval i lies (i + 0.5) / 2**bits of the whole way.",
    ],
)


@rounding.spec
def round_card(card, bits):
    """Look every number up in the list of middles: the nearest is its own."""
    count = 2**bits
    middles = torch.linspace(-1, 1, 2 * count + 1, dtype=card.dtype)[1::2]
    gaps = (card.unsqueeze(-1) - middles).abs()  # (batch, d_encoder, interval)
    return middles[gaps.argmin(dim=-1)]


def _card(*shape):
    """Make numbers between −1 and 1 that lie on no border between two intervals."""
    return (torch.randint(64, shape) + 0.3) / 32 - 1


@rounding.step("two bits leave −0.75, −0.25, 0.25 and 0.75")
def _(probe):
    probe(torch.tensor([[-0.9, -0.1, 0.2, 0.8]]), 2)
    probe.same()


@rounding.step("each further bit halves the intervals")
def _(probe):
    card = _card(3, 8)
    for bits in (1, 3, 5):
        probe(card, bits)
        probe.same()


@rounding.step("both ends belong to their intervals")
def _(probe):
    probe(torch.tensor([[-1.0, 1.0, 0.99]]), 2)
    probe.same()


@rounding.step("a card of one batch, or of none")
def _(probe):
    for shape in ((1, 5), (5,)):
        probe(_card(*shape), 3)
        probe.same()
