"""Exercises of chapter 7: self-attention, on sets and on graphs."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from tutorial_exercises import Exercise
from tutorial_exercises.orders import ADVICE, EQUIVARIANT, ORDERED
from tutorial_exercises.verdict import false_alarms, first_unseen
from tutorial_lib.attention import masked_softmax


@Exercise("7.1", "Self-attention from three matrices", axes="batch token d_v")
def self_attention(x, W_Q, W_K, W_V, mask=None):
    """Let every token attend to all tokens; return (batch, token, d_v)."""
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
            powers = [(product / W_K.shape[1] ** 0.5).exp() for product in products]
            output = torch.zeros(W_V.shape[1])
            for power, other in zip(powers, seen, strict=True):
                output = output + power / sum(powers) * (other @ W_V)
            outputs.append(output)
    return torch.stack(outputs).reshape(*x.shape[:2], -1)


def tokens(d_k=3, d_v=5):
    """Make x and three matrices, whose sizes all differ unless asked otherwise."""
    shapes = (2, 4, 6), (6, d_k), (6, d_k), (6, d_v)
    return [torch.randn(shape).requires_grad_() for shape in shapes]


@self_attention.cases
def _():
    yield "the outputs are right", *tokens()
    label = "the outputs are right with d_model = d_k = d_v"
    yield label, *tokens(d_k=6, d_v=6)
    mask = torch.tensor([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]]).bool()
    yield "no token attends to a masked one", *tokens(), mask
    label = "a token that may attend to nothing gets 0"
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
- The mask belongs to the scores, before the softmax; then the weights average the values.
  Where a query may attend to nothing, a plain softmax has no answer: see the stub.
"""

self_attention.mistakes = """
The scores are not divided by √d_k.
    (-2, -1) / K.shape[-1] ** 0.5 → (-2, -1)
You divide by √d_model. Queries and keys have d_k dimensions: divide by √d_k.
    K.shape[-1] → x.shape[-1]
You divide by d_k. Divide by its root.
    K.shape[-1] ** 0.5 → K.shape[-1]
Your output is a weighted average of the tokens x. Average the values, x W_V.
    (scores, mask) @ V → (scores, mask) @ x
Your output is a weighted average of the keys. Average the values, x W_V.
    (scores, mask) @ V → (scores, mask) @ K
You have swapped queries and keys: row i of the scores belongs to query i, as in Q Kᵀ.
    Q @ K.transpose(-2, -1) → K @ Q.transpose(-2, -1)
You compute queries and keys with the same matrix. The queries are x W_Q, the keys x W_K.
    x @ W_Q → x @ W_K
    x @ W_K → x @ W_Q
The softmax runs over the queries. It must run over the keys: `dim=-1`.
    masked_softmax(scores, mask) → scores.softmax(dim=-2)
The mask is not used: `masked_softmax(scores, mask)`.
    masked_softmax(scores, mask) → masked_softmax(scores)
Your mask is inverted: `True` means that a query may attend to a key.
    (scores, mask) → (scores, None if mask is None else ~mask)
You mask after the softmax, so weights no longer sum to 1. Mask the scores (chapter 4).
    masked_softmax(scores, mask) → (scores.softmax(-1) * (1 if mask is None else mask))
A token that may attend to nothing gets the mean of all values: filled with a number
such as −1e9, its scores are equal. `masked_softmax` gives it weights of 0.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(-1)
A token that may attend to nothing gets NaN: if all its scores are −∞, softmax divides 0
by 0. `masked_softmax` gives it weights of 0.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)
You add the tokens x, as a residual connection does. Return attention's output alone.
    return masked_softmax → return x[..., : V.shape[-1]] + masked_softmax
    return masked_softmax → return x + masked_softmax
    (scores, mask) @ V → … + x
No token attends to later ones, as with a causal mask. Without a mask every token
attends to all tokens.
    return masked_softmax(scores, mask) → past = torch.ones(scores.shape[-2:]).tril().bool()
        return masked_softmax(scores, past if mask is None else mask & past)
The softmax runs over the batch. It must run over the keys, the last axis: `dim=-1`.
    masked_softmax(scores, mask) → (scores if mask is None else scores.masked_fill(~mask, -1e9)).softmax(0)
The matrices multiply from the right, and are not transposed: `x @ W_Q`. Only PyTorch's
`nn.Linear` stores its matrix transposed.
    x @ W_Q → x @ W_Q.T
    x @ W_V → x @ W_V.T
The scores are Q Kᵀ: swap the last two axes of K with `K.transpose(-2, -1)`.
    K.transpose(-2, -1) → K
`K.T` reverses all axes. Swap only the last two: `K.transpose(-2, -1)`.
    K.transpose(-2, -1) → K.T
right:
    K.transpose(-2, -1) / K.shape[-1] → K.mT / W_K.shape[1]
    masked_softmax(scores, mask) → masked_softmax(scores, mask).nan_to_num()
"""


@Exercise("7.2", "A test that finds the order", seconds=20)
def sees_order(layer):
    """Tell whether the layer is not permutation equivariant."""
    x = torch.randn(2, 6, 8)
    for _ in range(20):
        order = torch.randperm(6)
        if not torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-4):
            return True
    return False


@sees_order.oracle
def _(layer):
    # Every order is a sequence of swaps of neighbors.
    x = torch.randn(2, 6, 8)
    outputs = layer(x)
    for i in range(5):
        swapped = [*range(i), i + 1, i, *range(i + 2, 6)]
        if (layer(x[:, swapped]) - outputs[:, swapped]).abs().max() > 1e-4:
            return True
    return False


@sees_order.demand("returns False for four layers that are equivariant")
def _(answer):
    alarms, inverted = false_alarms(answer, EQUIVARIANT, ORDERED)
    if inverted:
        return (
            "You return True for an equivariant layer and False for most of those that "
            "see the order. It is the other way round."
        )
    if alarms:
        return (
            f"Your test finds an order where none is seen: in {alarms[0]}. Its outputs "
            "are permuted as its inputs are: permute the outputs in the same way "
            "before you compare them, by `torch.allclose` with atol=1e-4."
        )


@sees_order.demand("finds seven layers that see the order")
def _(answer):
    return first_unseen(answer, ORDERED, ADVICE, "Layers")


sees_order.hints = """
- Equivariant means: permuted inputs give the outputs of before, permuted in the same
  way. What are the two ways to compute the same tensor?
- `order = torch.randperm(6)` is a random order, and `x[:, order]` has the tokens in it.
- One order may miss something, for example the reversed one: try twenty, with a batch of
  two.
"""

sees_order.mistakes = """
`==` compares two tensors entry by entry. `torch.allclose` gives one True or False.
    not torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-4) → layer(x[:, order]) != layer(x)[:, order]
The layer takes tokens alone, already in their order: `layer(x[:, order])`.
    layer(x[:, order]), → layer(x, order),
right:
    for _ in range(20): → for _ in range(50):
    not torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-4) → (layer(x[:, order]) - layer(x)[:, order]).abs().max() > 1e-4
"""


@Exercise("7.3", "The receptive field", axes="output input")
def receptive_field(mask, layers):
    """Say which output depends on which input: boolean (output, input)."""
    one_layer = (mask | torch.eye(len(mask), dtype=torch.bool)).float()
    known = torch.eye(len(mask))
    for _ in range(layers):
        known = (one_layer @ known > 0).float()
    return known.bool()


@receptive_field.oracle
def _(mask, layers):
    nodes = range(len(mask))
    known = [{i} for i in nodes]
    for _ in range(layers):
        before = known
        known = [{*inputs} for inputs in before]
        for i, j in mask.nonzero().tolist():
            known[i] |= before[j]
    return torch.tensor([[j in known[i] for j in nodes] for i in nodes])


@receptive_field.cases
def _():
    chain = torch.ones(10, 10).tril(-1).triu(-1).bool()  # each to the one before
    for layers in (4, 2, 1):
        yield "four layers, two layers and one on a directed chain", chain, layers
    yield "without a layer each output depends on its own input alone", chain[:4, :4], 0
    yield "any graph", torch.rand(7, 7) < 0.2, 2
    yield "some nodes attend to themselves", (torch.rand(7, 7) < 0.5).triu(), 2


receptive_field.hints = """
- Before the first layer every node depends on its own input alone: the identity matrix.
- After a layer, a node has its own information and that of all nodes it reads from. So
  add the diagonal to `mask` first.
- Through one more layer, node i gets what is known to any node that it reads from.
  Which operation of linear algebra sums over these nodes, if True is 1 and False is 0?
"""

receptive_field.mistakes = """
A node that does not read from itself loses its own information. The layer's output is
added to its input: add the diagonal, `mask | torch.eye(...).bool()`.
    (mask | torch.eye(len(mask), dtype=torch.bool)) → mask
The edges point the wrong way: row i of `mask` says to which nodes node i may attend.
    one_layer @ known → one_layer.T @ known
You pass information both ways. If node i reads from j, j need not read from i.
    mask | torch.eye → mask | mask.T | torch.eye
Information travels more than one edge per layer. Compute each layer's matrix from the
one before, as often as there are layers, and do not overwrite what a layer still reads.
    range(layers) → range(len(mask))
    known = (one_layer @ known > 0).float() → for i in range(len(mask)):
            known[i] = (one_layer[i] @ known > 0).float()
You square the matrix, so the distance doubles. Multiply by the matrix of one layer.
    range(layers) → range(layers - 1)
    and known = (one_layer @ known > 0) → one_layer = known = (one_layer @ one_layer > 0)
You start from the matrix of one layer. Without a layer every node depends on its own
input alone: start from the identity matrix.
    known = torch.eye(len(mask)) → known = one_layer
    and range(layers) → range(layers - 1)
You pass information on once, whatever `layers` is.
    range(layers) → range(1)
That is one layer too few. Start from the identity, and multiply once for each layer.
    range(layers) → range(layers - 1)
That is one layer too many. Start from the identity, and multiply once for each layer.
    range(layers) → range(layers + 1)
Return booleans: your matrix counts the paths, and `> 0` says whether there is one.
    known.bool() → torch.linalg.matrix_power(one_layer, layers)
Return booleans: your matrix has the right entries, but as numbers 0 and 1.
    known.bool() → known
PyTorch has no matrix product of booleans: convert by `.float()`, and ask what is `> 0`.
    (one_layer @ known > 0).float() → one_layer.bool() @ known.bool()
right:
    one_layer @ known → known @ one_layer
    known.bool() → torch.linalg.matrix_power(one_layer, layers) > 0
"""


@Exercise("7.4", "Counting FLOPs")
def flops_of(n, d, k, r):
    """Return the FLOPs of three layers, as a dictionary of whole numbers."""
    return {
        "self-attention": 4 * n**2 * d,  # n² scores of d products, and n · d outputs
        "convolution": 2 * k * n * d**2,  # k positions, a d × d matrix each
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


for name in ("self-attention", "convolution", "restricted attention"):

    @flops_of.demand(f"the FLOPs of {name}")
    def _(answer, layer=name):
        for sizes in ((7, 5, 3, 2), (4, 6, 5, 1), (2, 4, 3, 3)):
            counts, right = answer(*sizes), answer.expected()
            if not isinstance(counts, dict) or counts.keys() != right.keys():
                return f"Return a dictionary with three entries: {', '.join(right)}."
            answer.output = right | {layer: counts[layer]}  # mistakes change one entry
            if answer.same():
                size = "large" if counts[layer] > right[layer] else "small"
                inputs = "n = {}, d = {}, k = {} and r = {}".format(*sizes)
                return f"{layer.capitalize()}: with {inputs} your count is too {size}."


flops_of.hints = """
- A product of an (a, b) and a (b, c) matrix takes 2 · a · b · c FLOPs.
- Attention is two products: scores, (n, d) times (d, n), and outputs, (n, n) times (n,
  d).
- Restricted attention has 2r + 1 keys for each of n queries. A convolution multiplies
  each token with k matrices of d × d.
"""

flops_of.mistakes = """
Self-attention: leave the projections out. The exercise counts only the mixing.
    4 * n**2 * d, → 4 * n**2 * d + 6 * n * d**2,
    4 * n**2 * d, → 4 * n**2 * d + 8 * n * d**2,
In each sum you count one addition less than multiplications. That is exact, but by
convention every multiplication counts together with an addition.
    4 * n**2 * d, → n**2 * (2 * d - 1) + n * d * (2 * n - 1),
    2 * k * n * d**2 → n * d * (2 * k * d - 1)
    2 * k * n * d**2 → k * n * d * (2 * d - 1)
    4 * n * (2 * r + 1) * d → n * ((2 * r + 1) * (2 * d - 1) + d * (4 * r + 1))
Self-attention: your count is half of the right one. Do you count both matrix products,
and a multiplication and an addition as two?
    4 * n**2 * d, → 2 * n**2 * d,
Self-attention: two things are missing. There are two matrix products, scores and
outputs, and in each a multiplication and an addition count as two.
    4 * n**2 * d, → n**2 * d,
Self-attention: you mix up n and d. There is a score for every pair of tokens, and d is
the number of dimensions.
    4 * n**2 * d, → 4 * n * d**2,
    4 * n**2 * d, → 2 * n * d**2,
Self-attention: every score is a dot product, and so is every entry of the outputs. You
count at least one of these as a single operation, or as two.
    4 * n**2 * d, → 4 * n**2,
    4 * n**2 * d, → 2 * n**2,
    4 * n**2 * d, → 2 * n**2 * d + 2 * n**2,
    4 * n**2 * d, → 2 * n**2 * d + 2 * n * d,
Self-attention: you count something twice. There are two matrix products, no more.
    4 * n**2 * d, → 8 * n**2 * d,
    4 * n**2 * d, → 6 * n**2 * d,
Convolution: a multiplication and an addition count as two.
    2 * k * n * d**2 → k * n * d**2
Convolution: each position of the kernel has a matrix, not a vector of weights.
    2 * k * n * d**2 → 2 * k * n * d
    2 * k * n * d**2 → k * n * d
Convolution: you count one position of the kernel. There are k, each with a matrix.
    2 * k * n * d**2 → 2 * n * d**2
Convolution: k is the size of the whole kernel, not the number of neighbors per side.
    2 * k * n * d**2 → 2 * (2 * k + 1) * n * d**2
Convolution: you count one output. There is one for each token.
    2 * k * n * d**2 → 2 * k * d**2
Convolution: the tokens form a sequence, so the kernel has k positions in all.
    2 * k * n * d**2 → 2 * k**2 * n * d**2
Convolution: you count something twice. Each position has one matrix product.
    2 * k * n * d**2 → 4 * k * n * d**2
Convolution: there is an output for every token, those at the edges included.
    2 * k * n * d**2 → 2 * (n - k + 1) * k * d**2
Restricted attention: count 2r + 1 keys for the tokens at the edges, too.
    4 * n * (2 * r + 1) * d → 4 * n * min(n, 2 * r + 1) * d
    4 * n * (2 * r + 1) * d → 4 * sum(min(n, i + r + 1) - max(0, i - r) for i in range(n)) * d
Restricted attention: a token attends to r tokens on either side and to itself.
    (2 * r + 1) → (r + 1)
    (2 * r + 1) → r
    (2 * r + 1) → (2 * r)
Restricted attention: your count is half of the right one. Do you count both matrix
products, and a multiplication and an addition as two?
    4 * n * (2 * r + 1) * d → 2 * n * (2 * r + 1) * d
Restricted attention: two things are missing. There are two matrix products, scores and
outputs, and in each a multiplication and an addition count as two.
    4 * n * (2 * r + 1) * d → n * (2 * r + 1) * d
Restricted attention: you count one query. Every token has a query.
    4 * n * (2 * r + 1) * d → 4 * (2 * r + 1) * d
Restricted attention: every score is a dot product, and so is every entry of the
outputs. You count these as a single operation, or as two.
    4 * n * (2 * r + 1) * d → 4 * n * (2 * r + 1)
    4 * n * (2 * r + 1) * d → 2 * n * (2 * r + 1)
Restricted attention: you count something twice. There are two matrix products, no more.
    4 * n * (2 * r + 1) * d → 8 * n * (2 * r + 1) * d
right:
    4 * n**2 * d, → 2 * n * n * d + 2 * n * d * n,
"""
