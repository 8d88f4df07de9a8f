"""Checks for the last exercise of chapter 4: a test that finds leaks.

The definition here asks gradients; this module does not know how attention is computed.
"""

import torch

from .exercise import Exercise
from .leaky_attention import LEAKY, RIGHT

leak = Exercise(
    "4.4",
    "A test that finds the leak",
    name="leaks",
    fallback="tutorial_lib.exercises.solutions.chapter_04:leaks",
    seconds=20,  # for who asks gradients one by one
    hints=[
        "Make x, call attend; replace all words from place t on, call it again; "
        "compare the outputs before t.",
        "Do that for every t, for training True and False, and with a batch of two.",
        "New words 100 times as large bring small leaks to light; two right outputs "
        "may differ in the sixth digit (`torch.allclose`).",
    ],
)


@leak.spec
def leaks(attend):
    """Ask the gradients: each output's slope by each later word must be exactly 0."""
    return any(_leaks_by_slope(attend, training) for training in (True, False))


def _leaks_by_slope(attend, training):
    x = torch.randn(2, 6, 3)
    slopes = torch.autograd.functional.jacobian(lambda x: attend(x, training), x)
    return bool(slopes.abs().sum(dim=(0, 2, 3, 5)).triu(diagonal=1).any())


@leak.step("answers True or False, and lets honest attentions pass")
def _(probe):
    for name, attend in RIGHT.items():
        found = probe(attend)
        probe.require(found in (True, False), "type", "Return True or False.")
        if found:
            _explain_false_alarm(probe, name)


def _explain_false_alarm(probe, name):
    silent = [not probe(attend) for _, attend, _ in LEAKY.values()]
    probe.require(
        sum(silent) <= len(silent) / 2,
        "inverted",
        "You answer True for an honest attention and False for most of the leaking "
        "ones: the other way round. True must mean that there is a leak.",
    )
    probe.fail(
        "false-alarm",
        f"Your test finds a leak where none is: in the attention {name}. The usual "
        "causes: you compare the output at the place that you changed, which may "
        "move; you compare with an attention of your own instead of comparing "
        "before and after; or you compare exactly, where the sixth digit may differ.",
    )


@leak.step("finds nine leaks")
def _(probe):
    found = []
    for fault, (code, leaking, advice) in LEAKY.items():
        seen = bool(probe(leaking))
        message = f"{_listed(found)}\nThe next one passes your test unseen. {advice}"
        probe.require(seen, f"misses-{code}", message)
        found.append(fault)


def _listed(found):
    """Name the leaks found so far, and no other: the hunt is the reader's."""
    lines = [f"Leaks found: {len(found)} of {len(LEAKY)}.", *found]
    return "\n  ✓ ".join(lines)
