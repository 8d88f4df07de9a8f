"""The check of exercise 6.1, which looks and steps, again and again.

The definition is a slow loop; this module does not know a decoder.
"""

import math

import torch
from torch import nn

from tutorial_lib.attention import AdditiveAttention

from .chapter_06_mistakes import UNROLL
from .exercise import Exercise, Wrong

unrolling = Exercise(
    "6.1",
    "Project the keys once",
    name="unroll",
    returns="batch query d_hidden",
    fallback="tutorial_lib.exercises.solutions.chapter_06:unroll",
    hints=[
        "What does not change from step to step? Compute that before the loop.",
        "`attention.W_K(memory)` projects all keys; `attention.read` takes keys that "
        "are projected already.",
        "In the loop: `attention.read(hidden.unsqueeze(1), keys, memory, mask)`.",
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
    """Read one sentence, (key, d_memory), for one state; hidden words are left out."""
    words = [word for word, seen in zip(memory, mask[0], strict=True) if seen]
    query, v = attention.W_Q(state), attention.v.weight[0]
    scores = [(v * torch.tanh(query + attention.W_K(word))).sum() for word in words]
    powers = [math.exp(score - max(scores)) for score in scores]
    return sum(p * word for p, word in zip(powers, words, strict=True)) / sum(powers)


for code, message, answer in UNROLL:
    unrolling.misconception(code, message)(answer)


def _translator(lengths, keys=5):
    """Return the arguments of `unroll` but the last, with sizes that all differ."""
    attention, cell = AdditiveAttention(3, 4, 6), nn.GRUCell(4, 3)
    for weight in attention.parameters():
        nn.init.normal_(weight)
    mask = (torch.arange(keys) < torch.tensor(lengths)[:, None])[:, None]
    hidden, memory = torch.randn(len(lengths), 3), torch.randn(len(lengths), keys, 4)
    return attention, cell, hidden, memory, mask


def _states(probe, arguments, steps):
    """Unroll; where that fails, say what was given to the first look instead."""
    attention, _, hidden, memory, _ = arguments
    looks, read = [], attention.read

    def noted(queries, projected_keys, values, mask=None):
        looks.append((queries, projected_keys, values))
        return read(queries, projected_keys, values, mask)

    attention.read = noted
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
        "`attention.read` takes keys that are projected already, one for each word of "
        "the memory",
        "What is read, the values, is the memory as it is",
    ),
)


@unrolling.step("the states are right, padding or not")
def _(probe):
    for lengths in ([5, 5], [5, 2]):
        states = _states(probe, _translator(lengths), 4)
        probe.shape(states, batch=2, query=4, d_hidden=3)
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
