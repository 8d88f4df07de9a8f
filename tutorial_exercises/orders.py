"""Layers that see the order of their tokens, and layers that do not, by what they do.

An answer that is itself a test has to tell them apart.
"""

from functools import partial

import torch


def attend(x, *, causal=False):
    """Let the tokens of x (batch, token, d_model) attend to each other."""
    scores = x @ x.mT / x.shape[-1] ** 0.5
    if causal:
        later = torch.ones(scores.shape[-2:]).triu(1).bool()
        scores = scores.masked_fill(later, -torch.inf)
    return scores.softmax(dim=-1) @ x


def convolved(x, *, circular):
    """Average each token with its two neighbors; a circle joins the ends."""
    left, right = x.roll(1, dims=1), x.roll(-1, dims=1)
    if not circular:
        left[:, 0], right[:, -1] = 0, 0
    return 0.25 * left + 0.5 * x + 0.25 * right


def positions(x, size):
    """Make a vector for each position, the same in every call."""
    generator = torch.Generator().manual_seed(0)
    return size * torch.randn(x.shape[1:], generator=generator)


def later_swapped(x):
    """Attend, and exchange the outputs of the last two tokens."""
    output = attend(x)
    return output[:, [*range(x.shape[1] - 2), -1, -2]]


EQUIVARIANT = {
    "self-attention": attend,
    "self-attention and a residual connection": lambda x: x + attend(x),
    "each token minus the mean of all": lambda x: x - x.mean(dim=1, keepdim=True),
    "a network on each token by itself": lambda x: x.relu() - x.square(),
}
# Each with what brings it to light.
FOUND_BY = {
    "self-attention with a causal mask": (
        partial(attend, causal=True),
        "Permute the tokens, not only the sentences or the dimensions.",
    ),
    "a convolution, whose kernel is symmetric": (
        partial(convolved, circular=False),
        "It is the same from both ends: try other orders than the reversed one.",
    ),
    "a convolution around a circle": (
        partial(convolved, circular=True),
        "It does not notice a shift around the circle: try other orders.",
    ),
    "small position encodings before self-attention": (
        lambda x: attend(x + positions(x, 0.03)),
        "The outputs differ by about a hundredth: compare them with atol=1e-4.",
    ),
    "a token that gets the output of another, in the last two places": (
        later_swapped,
        "Compare the outputs of all tokens, and try orders that move the last two.",
    ),
    "the same outputs for every order, sorted": (
        lambda x: attend(x).sort(dim=1)[0],
        "Its outputs do not change at all, so they are not permuted as the inputs are: "
        "it is invariant, not equivariant. Permute the outputs before you compare.",
    ),
    "positions in the second sentence of a batch": (
        lambda x: torch.cat((attend(x[:1]), attend(x[1:] + positions(x, 1.0)))),
        "Use a batch of at least two sentences, and compare all.",
    ),
}
ORDERED = {name: layer for name, (layer, _) in FOUND_BY.items()}
ADVICE = {name: advice for name, (_, advice) in FOUND_BY.items()}
