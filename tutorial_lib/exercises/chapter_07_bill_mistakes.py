"""Known wrong answers of exercise 7.4, the bill, as (code, message, answer).

This module does not know the right answers.
"""


def _prices(
    *,
    attention=lambda n, d: 4 * n**2 * d,
    convolution=lambda n, d, k: 2 * k * n * d**2,
    keys=lambda r, n: 2 * r + 1,
    projections=lambda n, d: 0,
):
    """Return an answer in which one price is wrong."""

    def answer(n, d, k, r):
        return {
            "self-attention": attention(n, d) + projections(n, d),
            "convolution": convolution(n, d, k),
            "restricted attention": 4 * n * keys(r, n) * d,
        }

    return answer


def _inside(r, n):
    """Return how many keys a query sees on average, without those outside."""
    return sum(min(n, i + r + 1) - max(0, i - r) for i in range(n)) / n


BILL = [
    (
        "one-product",
        "That is half of self-attention. It is two products, scores and outputs, and "
        "in each of them a multiplication and an addition are two.",
        _prices(attention=lambda n, d: 2 * n**2 * d),
    ),
    (
        "n-and-d",
        "Self-attention: n and d are swapped. There are n² scores of d products each.",
        _prices(attention=lambda n, d: 4 * n * d**2),
    ),
    (
        "without-d",
        "Self-attention: each of the n² scores is a sum of d products.",
        _prices(attention=lambda n, d: 4 * n**2),
    ),
    (
        "multiplications",
        "Convolution: you count the multiplications alone. An addition goes with each.",
        _prices(convolution=lambda n, d, k: k * n * d**2),
    ),
    (
        "channel-by-channel",
        "Convolution: all d numbers of a token go into each of d outputs, d² products "
        "for each of the k places.",
        _prices(convolution=lambda n, d, k: 2 * k * n * d),
    ),
    (
        "one-side",
        "Restricted attention sees r tokens on EITHER side, and itself: 2r + 1 keys.",
        _prices(keys=lambda r, n: r + 1),
    ),
    (
        "without-itself",
        "Restricted attention: a token sees itself, too: 2r + 1 keys.",
        _prices(keys=lambda r, n: 2 * r),
    ),
    (
        "projections",
        "Self-attention: leave the projections out. The bill is for mixing alone.",
        _prices(projections=lambda n, d: 6 * n * d**2),
    ),
    (
        "edges",
        "Restricted attention: here a token at the edge computes 2r + 1 scores, too, "
        "and masks those that fall outside. So nothing is taken off at the edges.",
        _prices(keys=lambda r, n: min(n, 2 * r + 1)),
    ),
]
BILL.append(("one-side", BILL[5][1], _prices(keys=lambda r, n: r)))
BILL.append(("edges", BILL[8][1], _prices(keys=_inside)))
