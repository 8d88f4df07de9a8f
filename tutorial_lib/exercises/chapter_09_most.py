"""Checks for the fourth exercise of chapter 9: the most that ALiBi can give.

This module does not know attention, only a series of weights.
"""

import math

import torch

from .exercise import Exercise

most = Exercise(
    "9.4",
    "The most that ALiBi can give",
    tolerance=1e-3,
    hints=[
        "All weights together are 1 + r + r² + … = 1 / (1 - r), before they are "
        "divided by their sum. What is the share of the key 3 back?",
        "The share is r³ (1 - r). Where is its derivative 0?",
        "3 r² - 4 r³ = 0 gives r. The question asks for the weight, not for r.",
    ],
)


@most.spec
def most_three_back():
    """Try many slopes."""
    r = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    return (r**3 * (1 - r)).max().item()


@most.misconception(
    "not-shared",
    "That is r³ before it is divided by the sum of all, 1 + r + r² + … = 1 / (1 - r).",
)
def _():
    return 27 / 64


@most.misconception(
    "not-shared",
    "With slope 0 all keys get the same, but there are very many of them: divide by "
    "the sum of all, 1 / (1 - r).",
)
def _():
    return 1


@most.misconception(
    "bound",
    "A good bound: the keys 0, 1 and 2 back get at least as much, so it is at most a "
    "quarter. But with four equal weights nothing would fall off after them. How much "
    "does the best slope give?",
)
def _():
    return 0.25


@most.misconception("slope", "That is r = e⁻ᵐ at its best. What is the weight there?")
def _():
    return 0.75


@most.misconception("slope", "That is the best slope m. What is the weight there?")
def _():
    return math.log(4 / 3)


@most.misconception(
    "both-sides",
    "That is for keys on both sides. In causal attention a query sees only what is "
    "behind it, and itself.",
)
def _():
    r = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    return (r**3 * (1 - r) / (1 + r)).max().item()


@most.misconception(
    "from-one",
    "You count from the key one back. The query also looks at itself, 0 steps back, "
    "with weight r⁰ = 1 before sharing.",
)
def _():
    return 4 / 27


@most.misconception(
    "two-back",
    "That is the weight of the key two back, r² (1 - r), at the best slope. The "
    "question asks for the key three back.",
)
def _():
    return 9 / 64


@most.misconception("rounded", "Nearly: give three digits or more, or the fraction.")
def _():
    return 0.11


def _percent(value):
    message = "Weights lie between 0 and 1: give a fraction and not a percentage."
    most.misconception("percent", message)(lambda: value)


for value in (10.5, 10.54, 10.547, 10.55, 2700 / 256):
    _percent(value)
