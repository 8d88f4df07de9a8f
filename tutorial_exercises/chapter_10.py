"""Exercises of chapter 10: the Transformer block."""

from itertools import combinations
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.exercise import Wrong
from tutorial_lib.attention import MultiHeadAttention


@Exercise("10.1", "Layer norm", axes="batch token d_model")
def normalize_layer(x, gamma, beta, epsilon=1e-5):
    """Normalize each token as nn.LayerNorm does."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta


@normalize_layer.oracle
def _(x, gamma, beta, epsilon=1e-5):
    tokens = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = sum(token) / len(token)
        variance = sum((number - mean) ** 2 for number in token) / len(token)
        tokens.append((token - mean) / (variance + epsilon) ** 0.5 * gamma + beta)
    return torch.stack(tokens).reshape(x.shape)


@normalize_layer.cases
def _():
    plain = torch.ones(4), torch.zeros(4)
    yield "each token is normalized by itself", 3 * torch.randn(2, 5, 4) + 1, *plain
    x = 3 * torch.randn(2, 3, 6)
    yield "gamma scales and beta shifts", x, torch.rand(6) + 0.5, torch.randn(6)
    label = "epsilon matters where a token's entries are nearly equal"
    yield label, 0.1 * torch.randn(2, 3, 4), *plain, 0.04
    label = "a token with equal entries becomes beta"
    yield label, torch.full((1, 2, 4), 5.0), torch.ones(4), torch.randn(4)
    yield "epsilon is 1e-5 by default", 0.01 * torch.randn(2, 3, 4), *plain
    yield "there may be more axes in front", torch.randn(2, 2, 3, 4), *plain


@normalize_layer.demand("the equation itself, without PyTorch's layer norm")
def _(answer):
    message = "Write the equation itself, without PyTorch's own layer norm."
    with (
        mock.patch.object(torch, "layer_norm", side_effect=Wrong(message)),
        mock.patch.object(torch, "native_layer_norm", side_effect=Wrong(message)),
    ):
        answer(torch.randn(2, 5, 4), torch.ones(4), torch.zeros(4))


@normalize_layer.demand("gradients reach x, gamma and beta")
def _(answer):
    x = torch.randn(2, 3, 4, requires_grad=True)
    gamma, beta = torch.randn(2, 4, requires_grad=True).unbind()
    answer(x, gamma, beta)
    gradient, *_ = answer.gradients(x, gamma, beta)
    (right,) = torch.autograd.grad(F.layer_norm(x, (4,), gamma, beta).sum(), x)
    if not torch.allclose(gradient, right, atol=1e-4):
        return (
            "The output is right, but its gradient is not: mean and variance depend on "
            "x, too. Leave out `.detach()` and `torch.no_grad()`."
        )


normalize_layer.hints = """
- Take the mean and the variance of each token over the last axis, and keep that axis
  with `keepdim=True`, so that the shapes broadcast.
- `x.var(dim=-1, correction=0, keepdim=True)` divides by d_model.
- Divide `x - mean` by the square root of `variance + epsilon`; gamma and beta come
  last, in the order of the equation.
"""

normalize_layer.mistakes = """
Your variance divides by d_model - 1. Layer norm divides by d_model: `correction=0`.
    correction=0, →
You add epsilon to the standard deviation. Add it to the variance, under the root.
    (variance + epsilon).sqrt() → (variance.sqrt() + epsilon)
You do not use epsilon: a token whose entries are all equal is divided by 0.
    (variance + epsilon) → variance
You divide by the variance. Divide by its square root, the standard deviation.
    (variance + epsilon).sqrt() → (variance + epsilon)
With three axes it is right, with four it is not. Count the axis from the end: `dim=-1`.
    mean(dim=-1 → mean(dim=2
    and var(dim=-1 → var(dim=2
    mean(dim=-1 → mean(dim=2
    var(dim=-1 → var(dim=2
You average over the tokens of a sentence. Average over the entries of one token.
    mean(dim=-1 → mean(dim=-2
    and var(dim=-1 → var(dim=-2
You average over the sentences of the batch. Average over the entries of one token.
    mean(dim=-1 → mean(dim=0
    and var(dim=-1 → var(dim=0
You average over all entries of the batch at once: `mean()` and `var()` need `dim=-1`.
    mean(dim=-1, keepdim=True) → mean()
    and var(dim=-1, correction=0, keepdim=True) → var(correction=0)
You average over all entries of a sentence. Each token is normalized by itself.
    mean(dim=-1 → mean(dim=(-2, -1)
    and var(dim=-1 → var(dim=(-2, -1)
That is batch norm: you average over batch and tokens. Average over the last axis.
    mean(dim=-1 → mean(dim=(0, 1)
    and var(dim=-1 → var(dim=(0, 1)
You do not subtract the mean of the token.
    (x - mean) → x
    and x.var(dim=-1, correction=0, keepdim=True) → x.square().mean(dim=-1, keepdim=True)
You divide by the standard deviation, but you do not subtract the mean first.
    (x - mean) → x
Your variance squares x itself. The variance is the mean of the squares of x - mean.
    x.var(dim=-1, correction=0, keepdim=True) → x.square().mean(dim=-1, keepdim=True)
You always add 1e-5. Add `epsilon`, so that a caller can choose another value.
    (variance + epsilon) → (variance + 1e-5)
You normalize, but do not use gamma and beta: multiply by gamma, then add beta.
    .sqrt() * gamma + beta → .sqrt()
You do not multiply by gamma.
    .sqrt() * gamma → .sqrt()
You do not add beta.
    gamma + beta → gamma
You add beta first, so that gamma multiplies it, too. Multiply first, then add beta.
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta → return ((x - mean) / (variance + epsilon).sqrt() + beta) * gamma
The shapes do not fit. Do mean and variance keep the last axis, with `keepdim=True`?
    mean(dim=-1, keepdim=True) → mean(dim=-1)
right:
    correction=0 → unbiased=False
    x.var(dim=-1, correction=0, keepdim=True) → (x - mean).square().mean(dim=-1, keepdim=True)
"""


@Exercise("10.2", "Five bugs", axes="batch token d_model")
class RepairedBlock(nn.Module):
    """A pre-norm block that works."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)  # 1. Each sub-layer has a norm of its own.
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x, mask=None):
        """Update (batch, token, d_model); mask (batch, query, key) or None."""
        normed = self.norm1(x)  # 2. A normalized copy: the stream itself stays.
        x = x + self.attention(normed, normed, normed, mask)  # 3. The mask is used.
        hidden = self.W_1(self.norm2(x)).relu()  # 4. Else W_1 and W_2 are one matrix.
        return x + self.W_2(hidden)  # 5. The second sub-layer is added, too.


@RepairedBlock.oracle
class _(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)
        for norm in (self.norm1, self.norm2):
            nn.init.normal_(norm.weight, 1, 0.5)
            nn.init.normal_(norm.bias)

    def forward(self, x, mask=None):
        normed = self.norm1(x)
        attended = self.attention(normed, normed, normed, mask)
        tokens = (x + attended).flatten(0, 1)
        updated = []
        for token in tokens:
            units = [max(unit, torch.zeros(())) for unit in self.W_1(self.norm2(token))]
            updated.append(token + self.W_2(torch.stack(units)))
        return torch.stack(updated).view(x.shape)


@RepairedBlock.cases
def _():
    is_word = torch.arange(4) < torch.tensor([4, 2])[:, None, None]  # (batch, 1, key)
    yield "a mask hides padding", (6, 2, 24), 2 * torch.randn(2, 4, 6), is_word
    causal = torch.ones(4, 4).tril().bool()
    yield "a causal mask", (6, 3, 12), 2 * torch.randn(1, 4, 6), causal
    yield "two sentences without a mask", (6, 2, 24), 2 * torch.randn(2, 3, 6)


@RepairedBlock.demand("gradients reach x and all layers")
def _(answer):
    x = torch.randn(2, 3, 6, requires_grad=True)
    weights = answer.build(6, 2, 24).named_parameters()
    answer(x)
    weights = [weight for name, weight in weights if name != "attention.W_K.bias"]
    answer.gradients(x, *weights)


RepairedBlock.hints = """
- Compare `__init__` with Fig. 10.1: how many norms has a block?
- What is added to what? In a pre-norm block nothing ever normalizes `x` itself.
- Which argument of `forward` is never used? And what is W_1 followed by W_2, if nothing
  stands between them?
"""

RepairedBlock.mistakes = """
The norm still replaces x. Normalize a copy, and add the output of attention to x itself.
    normed = self.norm1(x) → normed = x = self.norm1(x)
The mask is not used: give it to attention as its fourth argument.
    normed, mask) → normed)
Nothing stands between W_1 and W_2, so they are one linear layer: ReLU is missing.
    (self.norm2(x)).relu() → (self.norm2(x))
The second sub-layer replaces x. Add its output to x.
    return x + self.W_2 → return self.W_2
The feed-forward network reads x as it is. Normalize what it reads, with `norm2`.
    self.W_1(self.norm2(x)) → self.W_1(x)
Attention reads x as it is. Normalize what it reads, with `norm1`.
    normed = self.norm1(x) → normed = x
You use `norm1` twice. The feed-forward network has `norm2`.
    self.norm2(x) → self.norm1(x)
The norms are the wrong way round: `norm1` is for attention.
    normed = self.norm1(x) → normed = self.norm2(x)
    and self.W_1(self.norm2(x)) → self.W_1(self.norm1(x))
The output of attention replaces x. Add it to x.
    x = x + self.attention → x = self.attention
The second sum adds to the normalized copy. Add to x itself.
    hidden = self.W_1(self.norm2(x)).relu() → x = self.norm2(x)
        hidden = self.W_1(x).relu()
ReLU stands behind W_2. It belongs between the two layers.
    (self.norm2(x)).relu() → (self.norm2(x))
    and self.W_2(hidden) → self.W_2(hidden).relu()
That is post-norm: you normalize the sums. Normalize what each sub-layer reads.
    normed = self.norm1(x) → normed = x
    and x = x + self.attention(normed, normed, normed, mask) → x = self.norm1(x + self.attention(normed, normed, normed, mask))
    and self.W_1(self.norm2(x)) → self.W_1(x)
    and return x + self.W_2(hidden) → return self.norm2(x + self.W_2(hidden))
Keys and values are not normalized. Attention reads the normalized copy alone.
    self.attention(normed, normed, normed, mask) → self.attention(normed, x, x, mask)
The second sum starts from the block's input. Start from the first sum.
    x = x + self.attention → block_input = x
        x = x + self.attention
    and return x + → return block_input +
right:
    (self.norm2(x)).relu() → (self.norm2(x)).clamp(min=0)
"""

# Who repairs the block line by line meets it with several bugs left.
BUGS = {
    "the norm still replaces x": "normed = self.norm1(x) → normed = x = self.norm1(x)",
    "the mask is not used": "normed, mask) → normed)",
    "nothing stands between W_1 and W_2": "(self.norm2(x)).relu() → (self.norm2(x))",
    "the second sub-layer replaces x": "return x + self.W_2 → return self.W_2",
}
NUMBERS = {2: "Two", 3: "Three", 4: "Four"}
several = ""
for count, number in NUMBERS.items():
    for bugs in combinations(BUGS, count):
        edits = "\n    and ".join(BUGS[bug] for bug in bugs)
        several += f"{number} bugs are left. One of them: {bugs[0]}.\n    {edits}\n"
RepairedBlock.mistakes = several + RepairedBlock.mistakes


@Exercise("10.3", "Count before you build")
def block_parameters(d_model, d_ff):
    """Return how many parameters a block has: GPT-3's 96 have about 174 billion."""
    attention = 4 * d_model**2 + 4 * d_model
    network = 2 * d_model * d_ff + d_ff + d_model
    norms = 4 * d_model
    return attention + network + norms


@block_parameters.oracle
def _(d_model, d_ff):
    norms = 2 * (d_model + d_model)
    layers = [(d_model, d_model)] * 4 + [(d_model, d_ff), (d_ff, d_model)]
    return norms + sum((inputs + 1) * outputs for inputs, outputs in layers)


@block_parameters.demand("a formula, without building a layer")
def _(answer):
    message = "Count before you build: a formula in d_model and d_ff needs no layers."
    with mock.patch.object(nn.Module, "__init__", side_effect=Wrong(message)):
        answer(6, 32)


@block_parameters.demand("three blocks, one of them that of Vaswani et al. (2017)")
def _(answer):
    for d_model, d_ff in (6, 32), (5, 3), (512, 2048):
        count = answer(d_model, d_ff)
        if answer.same():
            size = "large" if count > answer.expected() else "small"
            return f"Your count is too {size} for d_model={d_model} and d_ff={d_ff}."


block_parameters.hints = """
- Attention has the four layers W_Q, W_K, W_V and W_O, each with a matrix d_model ×
  d_model and a bias.
- The feed-forward network has two layers, from d_model to d_ff and back, each with a
  bias.
- There are two norms, each with a gamma and a beta: 4 · d_model.
"""

block_parameters.mistakes = """
12 · d_model² takes d_ff for 4 · d_model, and it leaves out the biases and the norms.
    return attention + network + norms → return 12 * d_model**2
You wrote 4 · d_model for d_ff. That is usual, but d_ff may be any number.
    return attention + network + norms → return 12 * d_model**2 + 13 * d_model
You count the matrices alone. Linear layers have biases, and norms have parameters, too.
    return attention + network + norms → return 4 * d_model**2 + 2 * d_model * d_ff
The biases are missing. Every linear layer of the block has one.
    d_model**2 + 4 * d_model → d_model**2
    and d_ff + d_ff + d_model → d_ff
Either the biases of attention are missing or the parameters of the norms.
    norms = 4 * d_model → norms = 0
Either some biases of attention are missing, or some parameters of the two norms.
    norms = 4 * d_model → norms = 2 * d_model
    + 4 * d_model → + d_model
The biases of the feed-forward network are missing.
    d_ff + d_ff + d_model → d_ff
The bias of the feed-forward network's first layer is missing.
    d_ff + d_ff + d_model → d_ff + d_model
A vector of d_model entries is missing: the bias of a layer, or a norm's gamma or beta.
    d_ff + d_ff + d_model → d_ff + d_ff
You count both feed-forward biases alike. A bias is as long as its layer's output.
    + d_ff + d_model → + 2 * d_ff
    + d_ff + d_model → + 2 * d_model
You count one matrix of the feed-forward network. It has two: to d_ff, and back.
    2 * d_model * d_ff → d_model * d_ff
The feed-forward matrices are not square: they lead from d_model to d_ff, and back.
    2 * d_model * d_ff → 2 * d_ff**2
    2 * d_model * d_ff → 2 * d_model**2
Attention has a fourth layer, W_O, after the heads.
    4 * d_model**2 + 4 * d_model → 3 * d_model**2 + 3 * d_model
    4 * d_model**2 → 3 * d_model**2
You count one matrix of attention. There are four: W_Q, W_K, W_V and W_O.
    4 * d_model**2 → d_model**2
    4 * d_model**2 + 4 * d_model → d_model**2 + d_model
You count one norm too many. A block has two.
    norms = 4 * d_model → norms = 6 * d_model
You count the parameters of the norms twice, or the biases of attention.
    norms = 4 * d_model → norms = 8 * d_model
You count the biases of the feed-forward network twice.
    + d_ff + d_model → + 2 * (d_ff + d_model)
"""


@Exercise("10.4", "Measure the collapse")
def effective_rank(x):
    """Count the directions of a sentence's representations by their share.

    In the twelve blocks of Fig. 10.2 it falls from 9.4 to 4.1 and 1.0 without residual
    connections, and with them only to 8.7.
    """
    singular_values = torch.linalg.svdvals(x)
    p = singular_values / singular_values.sum()
    entropy = torch.special.entr(p).sum()  # entr is -p ln p, and 0 where p is 0
    return entropy.exp()


@effective_rank.oracle
def _(x):
    squares = torch.linalg.eigvalsh(x.double() @ x.double().T)
    lengths = [max(square.item(), 0) ** 0.5 for square in squares]
    rank = 1.0
    for length in lengths:
        p = length / sum(lengths)
        if p > 1e-7:
            rank *= p**-p
    return torch.tensor(rank)


@effective_rank.cases
def _():
    yield "five tokens at random", torch.randn(5, 8)
    yield "four tokens at right angles, of one length", 3 * torch.eye(4, 6)
    yield (
        "two tokens at right angles, of different lengths",
        torch.eye(2, 3) * 4 + (torch.tensor([[0.0, 0.0, 0.0], [0.0, -3.0, 0.0]])),
    )
    yield (
        "three tokens, of which one is zero",
        torch.diag(torch.tensor([3.0, 1.0, 0.0])),
    )
    yield "all tokens equal", torch.randn(1, 8).expand(6, 8)
    yield "more tokens than dimensions", torch.randn(9, 3) + 1


effective_rank.hints = """
- `torch.linalg.svdvals(x)` are the singular values. Divide them by their sum.
- Add up -p ln p over all of them, with the natural logarithm: `p.log()`.
- Where p is 0, `p * p.log()` is NaN. `torch.special.entr(p)` is -p ln p, and 0 there.
"""

effective_rank.mistakes = """
You return the entropy. The effective rank is its exponential.
    entropy.exp() → entropy
You divide the squares of the singular values by their sum. Take the values themselves.
    torch.linalg.svdvals(x) → torch.linalg.svdvals(x).square()
    torch.linalg.svdvals(x) → torch.linalg.svdvals(x @ x.T)
The shares have to sum to 1: divide the singular values by their sum.
    p = singular_values / singular_values.sum() → p = singular_values
You divide by the largest singular value. Divide by their sum, so that shares sum to 1.
    singular_values.sum() → singular_values.max()
You divide by the norm of the singular values. Divide by their sum.
    singular_values.sum() → singular_values.norm()
The shares are the singular values divided by their sum, without a softmax.
    singular_values / singular_values.sum() → singular_values.softmax(dim=0)
Your logarithm has base 2, but `exp` undoes the natural one: use `p.log()`.
    torch.special.entr(p).sum() → torch.special.entr(p).sum() / torch.log(torch.tensor(2.0))
You add up p ln p. With its minus sign it is the entropy.
    entropy.exp() → (-entropy).exp()
You average over the directions. Add up -p ln p.
    torch.special.entr(p).sum() → torch.special.entr(p).mean()
That is the rank itself, which counts the smallest difference in full.
    return entropy.exp() → return torch.linalg.matrix_rank(x).float()
That is another measure, 1 / Σ p². The effective rank is exp(-Σ p ln p).
    return entropy.exp() → return 1 / p.square().sum()
You subtract the mean token first. Take the singular values of x as it is.
    svdvals(x) → svdvals(x - x.mean(dim=0))
You take the lengths of the tokens. Take the singular values: `torch.linalg.svdvals(x)`.
    torch.linalg.svdvals(x) → x.norm(dim=-1)
Where a share is 0 you get NaN from 0 · ln 0, which counts as 0: `torch.special.entr(p)`.
    torch.special.entr(p).sum() → -(p * p.log()).sum()
right:
    torch.special.entr(p).sum() → -(p * p.clamp(min=1e-12).log()).sum()
    torch.linalg.svdvals(x) → torch.linalg.svd(x).S
    entropy.exp() → entropy.exp().item()
"""


@Exercise("10.5", "Exclusive or")
def exclusive_or():
    """The hidden units are relu(a - b) and relu(b - a): each is 1 for one of the two
    tokens that should get a 1, and else 0. The output is their sum."""
    return [
        [[1.0, -1.0], [-1.0, 1.0]],  # W_1
        [[1.0], [1.0]],  # W_2
    ]


@exclusive_or.oracle
def _():
    W_1 = torch.eye(2) - torch.eye(2).flip(0)
    return W_1.tolist(), torch.ones(2, 1).tolist()


@exclusive_or.demand("two matrices of numbers, (2, 2) and (2, 1)")
def _(answer):
    try:
        W_1, W_2 = answer()
        shapes = [torch.as_tensor(W_1).shape, torch.as_tensor(W_2).shape]
    except (TypeError, ValueError):
        shapes = []
    if shapes != [(2, 2), (2, 1)]:
        return (
            "Return two matrices as lists of rows: W_1 (2, 2), with a column for each "
            "hidden unit, and W_2 (2, 1)."
        )


@exclusive_or.demand("the four tokens")
def _(answer):
    W_1, W_2 = answer()
    W_1 = torch.as_tensor(W_1).float()
    W_2 = torch.as_tensor(W_2).float()
    for a, b in (0, 0), (0, 1), (1, 0), (1, 1):
        x = torch.tensor([[float(a), float(b)]])
        output = (torch.relu(x @ W_1) @ W_2).item()
        if not abs(output - (a != b)) < 1e-4:
            return f"For a = {a} and b = {b} the output is {output:g}, not {a != b:d}."


exclusive_or.hints = """
- What is a − b for each of the four tokens? In how many of them is it positive?
- ReLU(a − b) is 1 for one of the two tokens that should get a 1, and 0 for all others.
  Which hidden unit finds the other one?
- Column 0 of `W_1` holds what a and b are multiplied by in the first hidden unit. `W_2`
  adds the two hidden units.
"""

exclusive_or.mistakes = """
You use one hidden unit only. It finds a without b or b without a: use both.
    [[1.0], [1.0]] → [[1.0], [0.0]]
    [[1.0], [1.0]] → [[0.0], [1.0]]
You subtract one hidden unit from the other: that gives a − b, which is linear. Add them.
    [[1.0], [1.0]] → [[1.0], [-1.0]]
    [[1.0], [1.0]] → [[-1.0], [1.0]]
Your network adds a and b, and gets 2 where both are 1.
    [[1.0, -1.0], [-1.0, 1.0]] → [[1.0, 0.0], [0.0, 1.0]]
Both hidden units are the same. One should find a without b, the other b without a.
    [[1.0, -1.0], [-1.0, 1.0]] → [[1.0, 1.0], [-1.0, -1.0]]
    [[1.0, -1.0], [-1.0, 1.0]] → [[-1.0, -1.0], [1.0, 1.0]]
right:
    [[1.0, -1.0], [-1.0, 1.0]] → [[-1.0, 1.0], [1.0, -1.0]]
    [[1.0, -1.0], [-1.0, 1.0]] → [[2.0, -1.0], [-2.0, 1.0]]
    and [[1.0], [1.0]] → [[0.5], [1.0]]
"""
