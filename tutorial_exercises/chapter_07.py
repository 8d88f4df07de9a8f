"""Exercises of chapter 7: self-attention, on sets and on graphs."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from tutorial_exercises import Exercise
from tutorial_lib.attention import masked_softmax


@Exercise("7.1", "Self-attention from three matrices", axes="batch token d_v")
def self_attention(x, W_Q, W_K, W_V, mask=None):
    """Let every token read from all tokens; return (batch, token, d_v)."""
    Q, K, V = x @ W_Q, x @ W_K, x @ W_V
    scores = Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5  # (batch, query, key)
    return masked_softmax(scores, mask) @ V


@self_attention.oracle
def _(x, W_Q, W_K, W_V, mask=None):
    outputs = []
    for sentence in x:
        for i, token in enumerate(sentence):
            seen = sentence if mask is None else sentence[mask[i]]
            products = [((token @ W_Q) * (other @ W_K)).sum() for other in seen]
            output = torch.zeros(W_V.shape[1])
            if products:
                scores = torch.stack(products) / W_K.shape[1] ** 0.5
                powers = (scores - scores.max()).exp()
                for power, other in zip(powers, seen, strict=True):
                    output = output + power / powers.sum() * (other @ W_V)
            outputs.append(output)
    return torch.stack(outputs).reshape(*x.shape[:2], -1)


def tokens(d_k=3, d_v=5):
    """Make x and three matrices, whose sizes all differ unless asked otherwise."""
    shapes = (2, 4, 6), (6, d_k), (6, d_k), (6, d_v)
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def mask_of(*rows):
    """Make a boolean mask of rows of 0 and 1."""
    return torch.tensor(rows, dtype=torch.bool)


@self_attention.cases
def _():
    yield "the outputs are right", *tokens()
    label = "all sizes alike, so that what is read can be told apart"
    yield label, *tokens(d_k=6, d_v=6)
    mask = mask_of([1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1])
    yield "hidden tokens are not read", *tokens(), mask
    label = "a token that may look at nothing reads 0"
    yield label, *tokens(), torch.ones(4, 4).tril(-1).bool()


@self_attention.demand("gradients reach the tokens and all three matrices")
def _(answer):
    inputs = tokens()
    answer(*inputs)
    answer.gradients(*inputs)


self_attention.hints = """
- Queries, keys and values are three products: x times each of the matrices.
- The scores are `Q @ K.transpose(-2, -1)`, divided by the root of d_k, the last size of
  K.
- `masked_softmax(scores, mask) @ V` does the rest.
"""

self_attention.mistakes = """
The scores are not divided by √d_k.
    (-2, -1) / K.shape[-1] ** 0.5 → (-2, -1)
You divide by √d_model. A query and a key have d_k numbers, the columns of W_K: divide
by √d_k.
    K.shape[-1] → x.shape[-1]
You divide by d_k. Divide by its root.
    K.shape[-1] ** 0.5 → K.shape[-1]
The weights average the tokens x. Average the values, x W_V.
    (scores, mask) @ V → (scores, mask) @ x
The weights average the keys. Average the values, x W_V.
    (scores, mask) @ V → (scores, mask) @ K
Queries and keys are swapped: row i of the scores belongs to query i, so it is Q Kᵀ and
not K Qᵀ.
    Q @ K.transpose(-2, -1) → K @ Q.transpose(-2, -1)
Queries and keys come from the same matrix. The queries are x W_Q, the keys x W_K.
    x @ W_Q → x @ W_K
    x @ W_K → x @ W_Q
The softmax runs over the queries. Each query shares out its attention over the keys:
`dim=-1`.
    masked_softmax(scores, mask) → scores.softmax(dim=-2)
The mask is not used: `masked_softmax(scores, mask)`.
    masked_softmax(scores, mask) → masked_softmax(scores)
The mask is the wrong way round: `True` means that a token may look.
    (scores, mask) → (scores, None if mask is None else ~mask)
You mask after the softmax, so that the rows no longer sum to 1. Mask the scores
(chapter 4).
    masked_softmax(scores, mask) → (scores.softmax(-1) * (1 if mask is None else mask))
A token that may look at nothing reads the mean of all values here, as −1e9 is the same
score for all. `masked_softmax` gives it weights of 0.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1)
Where all scores are −∞, softmax divides 0 by 0. `masked_softmax` gives such a token
weights of 0 (chapter 4).
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)
You add the tokens themselves. Here the layer's output alone is asked for.
    return masked_softmax → return x[..., : V.shape[-1]] + masked_softmax
    return masked_softmax → return x + masked_softmax
    (scores, mask) @ V → … + x
No token of yours looks ahead. Without a mask every token looks at all.
    return masked_softmax(scores, mask) → past = torch.ones(scores.shape[-2:]).tril().bool()
        return masked_softmax(scores, past if mask is None else mask & past)
Your softmax runs over the batch. Each query shares out its attention over the keys, the
last axis: `dim=-1`.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(0)
The matrices multiply from the right, as they are: `x @ W_Q`. Only PyTorch's `nn.Linear`
keeps its matrix transposed.
    x @ W_Q → x @ W_Q.T
    x @ W_K → x @ W_K.T
    x @ W_V → x @ W_V.T
For the scores turn the last two axes of K around, and of nothing else: `K.mT`.
    K.transpose(-2, -1) → K
`K.T` turns the batch around, too. Take `K.mT`, which leaves the batch alone.
    K.transpose(-2, -1) → K.T
right:
    K.transpose(-2, -1) → K.mT
    K.shape[-1] → W_K.shape[1]
    masked_softmax(scores, mask) → masked_softmax(scores, mask).nan_to_num()
"""


@Exercise("7.2", "Attention that does not look", axes="batch token d_v")
def blind_attention(x, W_V, mask=None):
    """Return what self-attention computes when all its scores are 0."""
    if mask is None:
        return (x @ W_V).mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1)
    count = mask.sum(dim=-1, keepdim=True).clamp(min=1)  # (query, 1)
    return (mask / count) @ (x @ W_V)


@blind_attention.oracle
def _(x, W_V, mask=None):
    outputs = torch.zeros(*x.shape[:2], W_V.shape[1])
    for b, sentence in enumerate(x):
        for i in range(len(sentence)):
            visible = sentence if mask is None else sentence[mask[i]]
            for token in visible:
                outputs[b, i] += (token @ W_V) / len(visible)
    return outputs


@blind_attention.cases
def _():
    yield "without a mask", torch.randn(2, 4, 6), torch.randn(6, 5)
    mask = mask_of([1, 0, 0, 0], [1, 1, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1])
    label = "with a mask that is not symmetric"
    yield label, torch.randn(2, 4, 6), torch.randn(6, 5), mask
    mask = mask_of([1, 1, 0], [0, 0, 0], [0, 1, 1])
    label = "a token that may look at nothing reads 0"
    yield label, torch.randn(2, 3, 6), torch.randn(6, 5), mask


blind_attention.hints = """
- If all scores are alike, what are the weights?
- Without a mask, every token reads the mean of all values; it is the same for every
  token.
- With a mask, divide each row of the mask by how many `True` it has, and multiply it
  with the values. A row without any must not divide by 0.
"""

blind_attention.mistakes = """
You add the values up. Equal weights sum to 1, so it is their mean.
    .mean(dim=1, keepdim=True) → .sum(dim=1, keepdim=True)
    mask / count → mask.float()
Every token reads only itself here. With equal scores it reads all tokens alike.
    (x @ W_V).mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1) → x @ W_V
The mask is not used: hidden tokens are averaged, too.
    mask is None → True
You divide by the number of all tokens. Divide by the number of those that the query may
look at.
    mask / count → mask / len(mask)
You divide each column by its sum. The weights of a query are a row: sum over `dim=-1`,
and keep that axis (`keepdim=True`).
    mask.sum(dim=-1, keepdim=True) → mask.sum(dim=-2)
    mask.sum(dim=-1, keepdim=True) → mask.sum(dim=-1)
Row i of the mask says what token i may look AT: yours is transposed.
    count = mask.sum → mask = mask.T
        count = mask.sum
You average over the batch. Each token reads the mean of the tokens of its own sentence:
`dim=1`.
    .mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1) → .mean(dim=0, keepdim=True).expand(len(x), -1, -1)
You average the numbers of each value. Each token reads the mean of the values of all
tokens: `dim=1`.
    .mean(dim=1, keepdim=True) → .mean(dim=2, keepdim=True)
Every token reads the mean: give each its own copy with `expand`.
    .mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1) → .mean(dim=1, keepdim=True)
A token that may look at nothing reads the mean of all values here. It should read 0.
    mask / count → torch.zeros(mask.shape).masked_fill(~mask, -1e9).softmax(-1)
A token that may look at nothing divides 0 by 0. Let it divide by 1 instead:
`.clamp(min=1)`.
    .clamp(min=1) →
You return 0. Scores of 0 are not weights of 0: softmax makes all weights of a row
alike, and they sum to 1.
    (x @ W_V).mean → (x @ W_V).mul(0).mean
Booleans have no matrix product. Turn the table into numbers first: `.float()`.
    mask / count → mask
right:
    .expand(-1, x.shape[1], -1) → .repeat(1, x.shape[1], 1)
    mask / count → mask.float() / count
"""


@Exercise("7.3", "Who heard of whom", axes="output input")
def heard_of(reads, layers):
    """Tell which output depends on which input: boolean (output, input)."""
    one_layer = (reads | torch.eye(len(reads), dtype=torch.bool)).float()
    known = torch.eye(len(reads))
    for _ in range(layers):
        known = (one_layer @ known > 0).float()
    return known.bool()


@heard_of.oracle
def _(reads, layers):
    nodes = range(len(reads))
    known = [{i} for i in nodes]
    for _ in range(layers):
        before = known
        known = [{*inputs} for inputs in before]
        for i, j in reads.nonzero().tolist():
            known[i] |= before[j]
    return torch.tensor([[j in known[i] for j in nodes] for i in nodes])


@heard_of.cases
def _():
    chain = torch.ones(10, 10).tril(-1).triu(-1).bool()  # each reads the one before
    for layers in (4, 2, 1):
        yield "four layers, two and one on a directed chain", chain, layers
    yield "no layer at all: everyone knows themselves", chain[:4, :4], 0
    yield "any graph", torch.rand(7, 7) < 0.2, 2
    yield "some nodes read from themselves", (torch.rand(7, 7) < 0.5).triu(), 2


heard_of.hints = """
- Before the first layer every node knows itself alone: the identity.
- One layer: a node knows what it knew and what those knew that it reads from. So give
  `reads` a diagonal first.
- With numbers instead of booleans this is a matrix product: `(table @ known >
  0).float()`, once for each layer.
"""

heard_of.mistakes = """
A node that does not read from itself forgets what it knew. The layer's output is added
to what came in: give the table a diagonal, `reads | torch.eye(...).bool()`.
    (reads | torch.eye(len(reads), dtype=torch.bool)) → reads
The arrows run the wrong way: row i of `reads` says what node i reads FROM.
    one_layer @ known → one_layer.T @ known
You let news run against the arrows, too: row i reads from column j, and that does not
mean that j reads from i.
    reads | torch.eye → reads | reads.T | torch.eye
News goes further than one step a layer: you pass on until nothing changes, or write
into the table that the same layer still reads. Make each layer's table from the one
before.
    range(layers) → range(len(reads))
    known = (one_layer @ known > 0).float() → for i in range(len(reads)):
            known[i] = (one_layer[i] @ known > 0).float()
You multiply the table by itself, so that the steps double with each layer: 1, 2, 4, 8.
A layer adds one step: multiply by the table of one layer.
    range(layers) → range(layers - 1)
    and known = (one_layer @ known > 0) → one_layer = known = (one_layer @ one_layer > 0)
You begin with what one layer knows. Without a layer everyone knows themselves alone:
begin with the identity.
    known = torch.eye(len(reads)) → known = one_layer
    and range(layers) → range(layers - 1)
You pass the news on once, whatever `layers` says.
    range(layers) → range(1)
That is one layer too few. Begin with the identity: before the first layer every node
knows itself.
    range(layers) → range(layers - 1)
That is one layer too many. Begin with the identity: before the first layer every node
knows itself alone.
    range(layers) → range(layers + 1)
Return booleans: the product counts the ways from node to node, and the question is
whether there is one. Compare with 0.
    known.bool() → torch.linalg.matrix_power(one_layer, layers)
    known.bool() → known
Booleans have no matrix product. Turn the table into numbers first: `.float()`. If the
result shall be boolean, ask which entries are `> 0`.
    (one_layer @ known > 0).float() → one_layer.bool() @ known.bool()
right:
    one_layer @ known → known @ one_layer
    known.bool() → torch.linalg.matrix_power(one_layer, layers) > 0
"""


@Exercise("7.4", "The bill")
def flops_of(n, d, k, r):
    """Return the FLOPs of three layers, as a dictionary of whole numbers."""
    return {
        "self-attention": 4 * n**2 * d,  # n² scores of d products, and n · d outputs
        "convolution": 2 * k * n * d**2,  # of k places, a d × d matrix each
        "restricted attention": 4 * n * (2 * r + 1) * d,
    }


@flops_of.oracle
def _(n, d, k, r):
    x, matrix, keys = torch.randn(n, d), torch.randn(d, d), torch.randn(n, d, 2 * r + 1)
    with FlopCounterMode(display=False) as attention:
        (x @ x.T) @ x
    with FlopCounterMode(display=False) as convolution:
        for _ in range(k):
            x @ matrix
    with FlopCounterMode(display=False) as restricted:
        (x[:, None] @ keys) @ keys.mT
    return {
        "self-attention": attention.get_total_flops(),
        "convolution": convolution.get_total_flops(),
        "restricted attention": restricted.get_total_flops(),
    }


def count_error(answer, layer):
    """Look at one layer's count, and say no more than whether it is too large."""
    for sizes in ((7, 5, 3, 2), (4, 6, 5, 1), (2, 4, 3, 3)):
        counts, right = answer(*sizes), answer.expected()
        if not isinstance(counts, dict) or counts.keys() != right.keys():
            return f"Return a dictionary with three entries: {', '.join(right)}."
        answer.output = right | {layer: counts[layer]}  # mistakes change one entry
        if answer.same():
            size = "large" if counts[layer] > right[layer] else "small"
            inputs = "n = {}, d = {}, k = {} and r = {}".format(*sizes)
            return f"{layer}: with {inputs} your count is too {size}."


@flops_of.demand("self-attention")
def _(answer):
    return count_error(answer, "self-attention")


@flops_of.demand("convolution")
def _(answer):
    return count_error(answer, "convolution")


@flops_of.demand("restricted attention")
def _(answer):
    return count_error(answer, "restricted attention")


flops_of.hints = """
- A product of an (a, b) and a (b, c) matrix takes 2 · a · b · c FLOPs.
- Attention is two products: scores, (n, d) times (d, n), and outputs, (n, n) times (n,
  d).
- Restricted attention has 2r + 1 keys for each of n queries. A convolution multiplies
  each token with k matrices of d × d.
"""

flops_of.mistakes = """
Self-attention: leave the projections out. The bill is for mixing alone.
    4 * n**2 * d, → 4 * n**2 * d + 6 * n * d**2,
    4 * n**2 * d, → 4 * n**2 * d + 8 * n * d**2,
You count one addition less than products in each sum. That is exact, but FLOPs are
counted in pairs, an addition for every product: 2 · d for d products.
    4 * n**2 * d, → n**2 * (2 * d - 1) + n * d * (2 * n - 1),
    2 * k * n * d**2 → n * d * (2 * k * d - 1)
    2 * k * n * d**2 → k * n * d * (2 * d - 1)
    4 * n * (2 * r + 1) * d → n * ((2 * r + 1) * (2 * d - 1) + d * (4 * r + 1))
Self-attention: your count is half of what it should be. Are both matrix products in it,
the scores and the outputs? Do a multiplication and an addition count as two?
    4 * n**2 * d, → 2 * n**2 * d,
Self-attention: two things are missing. There are two matrix products, scores and
outputs, and in each a multiplication and an addition count as two.
    4 * n**2 * d, → n**2 * d,
Self-attention: you mix up n and d. There is a score for every pair of tokens, and d is
the length of the vectors.
    4 * n**2 * d, → 4 * n * d**2,
    4 * n**2 * d, → 2 * n * d**2,
Self-attention: a score is not one product but a sum of products, and so is an output.
    4 * n**2 * d, → 4 * n**2,
    4 * n**2 * d, → 2 * n**2,
    4 * n**2 * d, → 2 * n**2 * d + 2 * n**2,
    4 * n**2 * d, → 2 * n**2 * d + 2 * n * d,
    4 * n**2 * d, → 2 * n**2 + 2 * n**2 * d,
Self-attention: you count something twice. There are two matrix products, no more.
    4 * n**2 * d, → 8 * n**2 * d,
    4 * n**2 * d, → 6 * n**2 * d,
Convolution: a multiplication and an addition count as two.
    2 * k * n * d**2 → k * n * d**2
Convolution: each place of the window has a matrix, not a vector or a number.
    2 * k * n * d**2 → 2 * k * n * d
    2 * k * n * d**2 → k * n * d
Convolution: you count one place of the window. There are k, each with its own matrix.
    2 * k * n * d**2 → 2 * n * d**2
Convolution: k is the whole window, not what it sees on either side.
    2 * k * n * d**2 → 2 * (2 * k + 1) * n * d**2
Convolution: you count one token. The window is laid on each of them.
    2 * k * n * d**2 → 2 * k * d**2
Convolution: the tokens are in a row, so the window has k places, not a square of them.
    2 * k * n * d**2 → 2 * k**2 * n * d**2
Convolution: you count something twice. Each place of the window has one matrix product.
    2 * k * n * d**2 → 4 * k * n * d**2
Convolution: nothing is taken off at the edges.
    2 * k * n * d**2 → 2 * (n - k + 1) * k * d**2
Restricted attention: here a token at the edge computes 2r + 1 scores, too, and masks
those that fall outside. So nothing is taken off at the edges.
    4 * n * (2 * r + 1) * d → 4 * n * min(n, 2 * r + 1) * d
    4 * n * (2 * r + 1) * d → 4 * sum(min(n, i + r + 1) - max(0, i - r) for i in range(n)) * d
Restricted attention: a token sees r tokens on either side, and itself. Some of these
are missing.
    (2 * r + 1) → (r + 1)
    (2 * r + 1) → r
    (2 * r + 1) → (2 * r)
Restricted attention: your count is half of what it should be. Are both matrix products
in it, the scores and the outputs? Do a multiplication and an addition count as two?
    4 * n * (2 * r + 1) * d → 2 * n * (2 * r + 1) * d
Restricted attention: two things are missing. There are two matrix products, scores and
outputs, and in each a multiplication and an addition count as two.
    4 * n * (2 * r + 1) * d → n * (2 * r + 1) * d
Restricted attention: you count one query. Each token is one.
    4 * n * (2 * r + 1) * d → 4 * (2 * r + 1) * d
Restricted attention: a score is not one product but a sum of products, and so is an
output.
    4 * n * (2 * r + 1) * d → 4 * n * (2 * r + 1)
    4 * n * (2 * r + 1) * d → 2 * n * (2 * r + 1)
Restricted attention: you count something twice. There are two matrix products, no more.
    4 * n * (2 * r + 1) * d → 8 * n * (2 * r + 1) * d
right:
    4 * n**2 * d, → 2 * n * n * d + 2 * n * d * n,
"""
