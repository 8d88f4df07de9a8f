"""Functions that split the last axis of tokens into heads, rightly and wrongly.

An answer that is itself a test has to tell them apart.
"""

import torch
from einops import rearrange


def by_view(x, num_heads):
    """Split as nanoGPT does: cut the last axis, then exchange tokens and heads."""
    return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2)


RIGHT = {
    "view, then transpose": by_view,
    "rearrange": lambda x, num_heads: rearrange(
        x, "batch token (head d_k) -> batch head token d_k", head=num_heads
    ),
    "chunks, stacked": lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), dim=1),
}
# Each with what brings it to light.
FOUND_BY = {
    "view without transpose": (
        lambda x, num_heads: x.reshape(len(x), num_heads, x.shape[1], -1),
        "Its shape is right, but its entries are not: compare these, with several "
        "tokens and heads.",
    ),
    "every third column to head 0 of three": (
        lambda x, num_heads: x.unflatten(-1, (-1, num_heads)).movedim(-1, 1),
        "Which columns does head 0 get? Compare each head with its own columns.",
    ),
    "d_k heads of as many columns as there are heads": (
        lambda x, num_heads: by_view(x, x.shape[-1] // num_heads),
        "Take a number of heads that differs from d_k.",
    ),
    "the heads in reversed order": (
        lambda x, num_heads: by_view(x, num_heads).flip(1),
        "Compare every head with its own columns, not only sums or sets of numbers.",
    ),
    "the columns of head 0 to every head": (
        lambda x, num_heads: by_view(x, num_heads)[:, :1].expand(-1, num_heads, -1, -1),
        "Compare every head with its own columns, not head 0 alone.",
    ),
    "the columns of each head in reversed order": (
        lambda x, num_heads: by_view(x, num_heads).flip(-1),
        "Compare the columns within a head, too.",
    ),
    "the first sentence in place of every other": (
        lambda x, num_heads: by_view(x, num_heads)[:1].expand(len(x), -1, -1, -1),
        "Use a batch of at least two sentences, and compare all.",
    ),
}
WRONG = {name: split for name, (split, _) in FOUND_BY.items()}
ADVICE = {name: advice for name, (_, advice) in FOUND_BY.items()}
