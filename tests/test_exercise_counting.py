"""A wrong count is told its wrong terms, and anything else one clear sentence."""

import time
from fractions import Fraction

import pytest
import torch
from made_up import judge

from tutorial_exercises import check, counting
from tutorial_exercises.counting import Count, polynomial

COUNT = Count(("n", "d"), about={"d": "the biases"})


def right(n, d):
    """Count one thing after the other."""
    return sum(d for _ in range(n)) + 2 * d  # n·d + 2·d


def judge_count(answer, count=COUNT, sizes=(5, 7), oracle=right):
    return judge(answer, lambda probe: count.expect(probe, *sizes), oracle=oracle)


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (lambda n, d: n * d, "too-little", "lacks 2·d."),
        (lambda n, d: n * d + 2 * d + 3, "too-much", "has 3 too many."),
        (lambda n, d: n * d * 2 + 2 * d, "too-much", "has n·d too many."),
        (lambda n, d: n**2 * d + d, "other-terms", "lacks n·d + d and has n²·d too"),
        (lambda n, d: n * d + d * 2.5, "too-much", "has 1/2·d too many."),
        (lambda n, d: torch.tensor(n * d + d), "too-little", "lacks d. d counts the"),
        (lambda n, d: sum(d for _ in range(n)), "too-little", "lacks 2·d."),
        (
            lambda n, d: n * (n + 1) // 2 + n * d + 2 * d,
            "too-much",
            "has 1/2·n² + 1/2·n t",
        ),
    ],
)
def test_the_terms_that_are_wrong_are_named(answer, code, said):
    result = judge_count(answer)
    assert result.code == code
    assert " is not right: expected 49. (Called with n=5, d=7.) " in result.message
    assert f"Your count {said}" in result.message


def fails_for_small_sizes(n, d):
    if n < 5:
        raise ValueError("too small")
    return n * d


def loops_for_small_sizes(n, d):
    while n < 5:
        time.sleep(0.01)
    return n * d


@pytest.mark.parametrize(
    "answer",
    [
        lambda n, d: min(n, 3) * d,
        lambda n, d: n * d // 3,
        lambda n, d: 2**d,
        lambda n, d: d**n,
        lambda n, d: n**6,
        lambda n, d: n * d / (n - 2),  # divides by 0 at a small size
        lambda n, d: n * d + 0.1 if n == 5 else float("nan"),
        lambda n, d: n * d if n == 5 else "many",
        lambda n, d: n * d if n == 5 else None,
        lambda n, d: (n + d + 1) ** 4,
        fails_for_small_sizes,
        loops_for_small_sizes,
    ],
)
def test_what_has_no_few_terms_is_told_its_value(answer, monkeypatch):
    monkeypatch.setattr(counting, "SECONDS", 0.3)
    result = judge_count(answer)
    assert (result.status, result.code) == ("fail", "value")
    assert result.message.endswith("expected 49. (Called with n=5, d=7.)")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda n, d: float("nan"), "value"),
        (lambda n, d: float("inf"), "value"),
        (lambda n, d: "n·d", "type"),
        (lambda n, d: True, "type"),
        (lambda n, d: n / 0, "error"),
        (lambda n, d: print(n), "no-return"),
        (lambda n: n, "signature"),
    ],
)
def test_what_is_no_count_at_all_is_told_so(answer, code):
    result = judge_count(answer)
    assert (result.status, result.code) == ("fail", code)
    assert result.message


def test_a_right_count_passes_in_whatever_type_it_comes():
    for kind in (int, float, torch.tensor):
        assert judge_count(lambda n, d, kind=kind: kind(n * d + 2 * d)).passed


def test_a_call_may_be_made_of_other_sizes_than_the_terms():
    def oracle(width, patch, *, channels):
        return (width // patch) * channels

    tiles = Count(("side", "patch", "channels"), call=tiled)
    result = judge_count(
        lambda width, patch, *, channels: (width // patch) ** 2 * channels,
        tiles,
        (3, 4, 2),
        oracle,
    )
    assert "(Called with width=12, patch=4, channels=2.)" in result.message
    assert "lacks side·channels and has side²·channels too many." in result.message


def tiled(side, patch, channels):
    return (side * patch, patch), {"channels": channels}


def test_a_polynomial_is_found_exactly():
    def function(a, b):
        return Fraction(a**3 * b) - 7 * a * b + Fraction(b, 3)

    found = {(3, 1): 1, (1, 1): -7, (0, 1): Fraction(1, 3)}
    assert polynomial(function, 2, 4) == found
    assert polynomial(lambda a: Fraction(0), 1, 4) == {}


def test_the_bill_names_the_terms_of_each_layer():
    def flops_of(n, d, k, r):
        return {
            "self-attention": 2 * n**2 * d,
            "convolution": 2 * k * n * d**2,
            "restricted attention": 4 * n * (2 * r + 1) * d,
        }

    result = check(flops_of, "7.4")
    assert result.code == "self-attention"
    assert result.message.endswith("are two. Your count lacks 2·n²·d.")
