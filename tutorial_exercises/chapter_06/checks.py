"""Checks for chapter 6: learning to align.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch
from torch import nn

from tutorial_exercises.exercise import Exercise, Wrong
from tutorial_lib.attention import AdditiveAttention
from tutorial_lib.masks import padding_mask

from .dot_product import dot

__all__ = ["dot", "errors", "rows", "unrolling"]

unrolling = Exercise(
    "6.1",
    "Project the keys once",
    name="unroll",
    returns="batch query d_hidden",
    fallback="tutorial_exercises.chapter_06.solutions:unroll",
    hints=[
        "What does not change from step to step? Compute that before the loop.",
        "`attention.W_K(memory)` projects all keys; `attention.attend` takes keys that "
        "are projected already.",
        "In the loop: `attention.attend(hidden.unsqueeze(1), keys, memory, mask)`.",
    ],
)


@unrolling.spec
def unroll(attention, cell, hidden, memory, mask, steps):
    """Take each sentence and each of its words in turn."""
    states = []
    for _ in range(steps):
        looks = zip(hidden, memory, mask, strict=True)
        contexts = [_look(attention, *look) for look in looks]
        hidden = cell(torch.stack(contexts), hidden)
        states.append(hidden)
    return torch.stack(states, dim=1)


def _look(attention, state, memory, mask):
    """Read one sentence, (key, d_encoder), for one state; hidden words are left out."""
    words = [word for word, seen in zip(memory, mask[0], strict=True) if seen]
    query, w_v = attention.W_Q(state), attention.w_v.weight[0]
    scores = [(w_v * torch.tanh(query + attention.W_K(word))).sum() for word in words]
    powers = [math.exp(score - max(scores)) for score in scores]
    return sum(p * word for p, word in zip(powers, words, strict=True)) / sum(powers)


def _translator(lengths, keys=5):
    """Return the arguments of `unroll` but the last, with sizes that all differ."""
    attention, cell = AdditiveAttention(3, 4, 6), nn.GRUCell(4, 3)
    for weight in attention.parameters():
        nn.init.normal_(weight)
    mask = padding_mask(lengths, keys)
    hidden, memory = torch.randn(len(lengths), 3), torch.randn(len(lengths), keys, 4)
    return attention, cell, hidden, memory, mask


def _states(probe, arguments, steps):
    """Unroll; where that fails, say what was given to the first look instead."""
    attention, _, hidden, memory, _ = arguments
    looks, attend = [], attention.attend

    def noted(queries, projected_keys, values, mask=None):
        looks.append((queries, projected_keys, values))
        return attend(queries, projected_keys, values, mask)

    attention.attend = noted
    try:
        return probe(*arguments, steps)
    except Wrong:
        for look in looks[:1]:
            _explain(look, hidden.unsqueeze(1), attention.W_K(memory), memory)
        raise


def _explain(look, query, keys, memory):
    """Raise Wrong for the first of the three that has another shape than it should."""
    given = [tuple(x.shape) if torch.is_tensor(x) else "no tensor" for x in look]
    right = [tuple(x.shape) for x in (query, keys, memory)]
    for code, about, had, wanted in zip(*_LOOK, given, right, strict=True):
        if had != wanted:
            raise Wrong(code, f"{about}: {wanted} here, and yours is {had}.") from None


_LOOK = (
    ("query-axis", "keys-not-projected", "values"),
    (
        "The query is the state with one more axis, (batch, 1, d_hidden)",
        "`attention.attend` takes keys that are projected already, one for each word "
        "of the memory",
        "What is read, the values, is the memory as it is",
    ),
)


@unrolling.step("the states are right, padding or not")
def _(probe):
    for lengths in ([5, 5], [5, 2], [4]):
        states = _states(probe, _translator(lengths), 4)
        probe.shape(states, batch=len(lengths), query=4, d_hidden=3)
        probe.same()


@unrolling.step("W_K is called once for a sentence")
def _(probe):
    arguments, calls = _translator([5, 3]), []
    arguments[0].W_K.register_forward_hook(lambda *_: calls.append(1))
    probe(*arguments, 7)
    message = "The states are right, but go through the layer attention.W_K itself."
    probe.require(calls, "bypassed", f"{message} Calls are counted there.")
    message = (
        f"The states are right, but 7 steps called attention.W_K {len(calls)} times. "
        "The keys do not change from word to word: project them before the loop."
    )
    probe.require(len(calls) == 1, "projects-again", message)


ROWS, CHANGED = range(4), 2

rows = Exercise(
    "6.2",
    "Who knows the next word?",
    hints=[
        "A state knows what was read before it. Reading forward, the words before "
        "*bird* were read before anything changed.",
        "Forward, row 2 changes and every row after it. Backward is the mirror image.",
        "A row of the memory is both states side by side: it changes if one does.",
    ],
)


@rows.spec
def changed_rows():
    """Mark a row if the changed word is among those read up to it."""
    forward = [j for j in ROWS if CHANGED in range(j + 1)]
    backward = [j for j in ROWS if CHANGED in range(j, len(ROWS))]
    both = sorted({*forward, *backward})
    return {"forward": forward, "backward": backward, "both": both}


@rows.step("the rows that change")
def _(probe):
    answer = probe()
    named = isinstance(answer, dict) and {"forward", "backward", "both"} == set(answer)
    found = {key: _numbers(value) for key, value in answer.items()} if named else {}
    message = (
        "Answer with three lists of rows: {'forward': [...], 'backward': [...], …}."
    )
    if not named or None in found.values():
        raise Wrong("parts", message)
    message = "The rows are numbered 0 to 3: *the* has row 0, *sleeps* row 3."
    known = all(row in ROWS for numbers in found.values() for row in numbers)
    probe.require(known, "not-a-row", message)
    probe.output = found
    for key, right in changed_rows().items():
        probe.require(found[key] == right, key, f"{key}: {_REASONS[key]}")


_REASONS = {
    "forward": "the words of rows 0 and 1 were read before *bird*; from *bird* on, "
    "each state is made from the one before.",
    "backward": "row 3 was read before *bird*; from *bird* on, towards the start, each "
    "state is made from the one before.",
    "both": "a row of the memory is both states side by side, so it changes if either "
    "does.",
}


def _numbers(value):
    """Return the numbers in a list, set, range or tensor, sorted; None for others."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple, set, frozenset, range)):
        return None
    whole = all(isinstance(row, int) for row in value)
    return sorted(set(value)) if whole else None


errors = Exercise(
    "6.3",
    "The alignment error rate",
    name="alignment_error",
    hints=[
        "First the links: of each row, the heaviest key, as a set of (row, key).",
        "A sure link is possible, too: `possible = possible | sure`.",
        "With sets, `links & sure` is the intersection and `len` counts it. All "
        "sentences share one numerator and one denominator.",
    ],
)


@errors.spec
def alignment_error(weights, sure, possible):
    """Count link by link: Och and Ney (2003), section 5."""
    hits = total = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        for i, row in enumerate(sentence.tolist()):
            link = (i, row.index(max(row)))
            hits += (link in certain) + (link in certain or link in allowed)
            total += 1
        total += len(certain)
    return 1 - hits / total


_LOOKS = torch.tensor(
    [[0.7, 0.2, 0.1], [0.3, 0.1, 0.6], [0.1, 0.5, 0.4], [0, 0.2, 0.8]]
)
_SURE = {(0, 0), (1, 1), (2, 1), (3, 2)}


def _rate(weights, sure, possible):
    """Return a step that compares the rate with the oracle's."""

    def step(probe):
        rate = probe(weights, sure, possible)
        is_number = isinstance(rate, (int, float)) or torch.is_tensor(rate)
        probe.require(is_number, "type", "Return one number.")
        probe.same(
            torch.tensor(float(probe.oracle())), output=torch.tensor(float(rate))
        )

    return step


for _label, *_case in [
    ("one sentence, sure links only", [_LOOKS], [_SURE], [_SURE]),
    ("possible links are no error", [_LOOKS], [_SURE], [{(1, 2), (1, 0), (0, 0)}]),
    (
        "several sentences are pooled, not averaged",
        [_LOOKS, _LOOKS[:1]],
        [{(0, 0), (1, 1), (2, 0)}, {(0, 1)}],
        [{(1, 2), (0, 0)}, set()],
    ),
]:
    errors.step(_label)(_rate(*_case))
