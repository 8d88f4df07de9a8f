"""Exercises of chapter 7: self-attention, on sets and on graphs."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from tutorial_exercises import Exercise
from tutorial_exercises.orders import ADVICE, EQUIVARIANT, ORDERED
from tutorial_exercises.verdict import false_alarms, first_unseen


@Exercise("7.1", "A lookup by hand", axes={"W_Q": "", "W_K": "", "W_V": ""})
def lookup_matrices(n):
    """Return matrices with which one layer finds the friend's friend."""
    name = torch.cat([torch.eye(n), torch.zeros(n, n)])  # x @ name is the name
    friend = torch.cat([torch.zeros(n, n), torch.eye(n)])
    W_Q = 20 * friend  # asks for the token that has the friend's name
    W_K = name
    W_V = friend  # hands back that token's friend
    return W_Q, W_K, W_V


@lookup_matrices.oracle
def _(n):
    W_Q = torch.zeros(2 * n, n)
    W_K = torch.zeros(2 * n, n)
    W_V = torch.zeros(2 * n, n)
    for person in range(n):
        W_Q[n + person, person] = 20.0
        W_K[person, person] = 1.0
        W_V[n + person, person] = 1.0
    return W_Q, W_K, W_V


def circle_of(n):
    """Return the friends of n people in a circle in random order."""
    circle = torch.randperm(n)
    friends = torch.zeros(n, dtype=torch.long)
    friends[circle] = circle.roll(-1)
    return friends


def outputs_for(friends, W_Q, W_K, W_V):
    """Return the outputs (person, n) of one layer, with the people in a random order."""
    n = len(friends)
    x = torch.cat([torch.eye(n), torch.eye(n)[friends]], dim=1).double()
    order = torch.randperm(n)
    people = x[order]
    scores = (people @ W_Q) @ (people @ W_K).mT / W_K.shape[1] ** 0.5
    return (scores.softmax(dim=-1) @ (people @ W_V))[order.argsort()]


def found_in(outputs, friends):
    """Say whose dimension is largest, as steps along the circle; "" for another's."""
    n = len(friends)
    if outputs.isnan().any():
        return "NaN, “not a number”"
    two_largest = outputs.topk(2, dim=-1).values
    if (two_largest[:, 0] - two_largest[:, 1]).min() < 1e-4:
        return "no single person: its largest entries are equal"
    reached = torch.arange(n)
    friend = friends
    ways = ("the person", "the friend", "the friend's friend", "three friends on")
    for way in ways:
        if torch.equal(outputs.argmax(dim=-1), reached):
            return way
        reached = friend[reached]
    return "somebody else"


@lookup_matrices.demand("the shapes of the three matrices")
def _(answer):
    for name, matrix in zip(("W_Q", "W_K", "W_V"), answer(4), strict=True):
        if not isinstance(matrix, torch.Tensor) or matrix.ndim != 2:
            return f"{name} should be a matrix, a tensor of two axes."
        if not matrix.is_floating_point():
            return f"{name} is of {matrix.dtype}, and x of floats: use `.float()`."
        if len(matrix) != 8:
            return f"{name} needs 2n rows, one for each dimension of x: 8 for n = 4."
    W_Q, W_K, W_V = answer.output
    if W_Q.shape[1] != W_K.shape[1]:
        return "W_Q and W_K need equally many columns, d_k."
    if W_V.shape[1] != 4:
        return "W_V needs n columns, one for each person."


for size in (5, 8):

    @lookup_matrices.demand(f"finds the friend's friend among {size} people")
    def _(answer, n=size):
        matrices = [torch.as_tensor(matrix).double() for matrix in answer(n)]
        for _ in range(5):
            friends = circle_of(n)
            way = found_in(outputs_for(friends, *matrices), friends)
            if way != "the friend's friend":
                return f"Among {n} people your layer finds {way}."


lookup_matrices.hints = """
- A query asks for a token, a key says what can be found by it, and a value is what comes
  back. By which name do you find the token, and what do you want of it?
- `torch.cat([torch.eye(n), torch.zeros(n, n)])` is (2n, n), and picks the name out of x.
- The query is the friend, the key the name, and the value the friend.
"""

lookup_matrices.mistakes = """
You look for the person who has *you* as the friend. The query should be your friend's
name, and the key the name of a token: exchange W_Q and W_K.
    W_Q = 20 * friend → W_Q = name
    and W_K = name → W_K = 20 * friend
The value is the name of the token that was found, which the query knew already. Hand back
its friend.
    W_V = friend → W_V = name
Each person attends to the own token. The query should be the friend's name.
    20 * friend → 20 * name
Your queries ask for the token with the least score: the sign is wrong.
    20 * friend → -20 * friend
right:
    20 * friend → friend
    W_V = friend → W_V = 3 * friend
    20 * friend → 20 * torch.cat([torch.ones(n, n), torch.eye(n)])
"""


@Exercise("7.2", "A test that finds the order", seconds=20)
def sees_order(layer):
    """Tell whether the layer is not permutation equivariant."""
    x = torch.randn(2, 6, 8)
    outputs = layer(x)
    for _ in range(20):
        order = torch.randperm(6)
        if not torch.allclose(layer(x[:, order]), outputs[:, order], atol=1e-4):
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
    return first_unseen(answer, EQUIVARIANT, ORDERED, ADVICE, "Layers")


sees_order.hints = """
- Equivariant means: permuted inputs give the outputs of before, permuted in the same
  way. What are the two ways to compute the same tensor?
- `order = torch.randperm(6)` is a random order, and `x[:, order]` has the tokens in it.
- One order may miss something, for example the reversed one: try twenty, with a batch of
  two.
"""

sees_order.mistakes = """
`==` compares two tensors entry by entry. `torch.allclose` gives one True or False.
    not torch.allclose(layer(x[:, order]), outputs[:, order], atol=1e-4) → layer(x[:, order]) != outputs[:, order]
The layer takes tokens alone, already in their order: `layer(x[:, order])`.
    layer(x[:, order]), → layer(x, order),
right:
    for _ in range(20): → for _ in range(50):
    not torch.allclose(layer(x[:, order]), outputs[:, order], atol=1e-4) → (layer(x[:, order]) - outputs[:, order]).abs().max() > 1e-4
"""


@Exercise("7.3", "The receptive field", axes="output input")
def receptive_field(mask, num_layers):
    """Say which output depends on which input: boolean (output, input)."""
    one_layer = (mask | torch.eye(len(mask), dtype=torch.bool)).float()
    known = torch.eye(len(mask))
    for _ in range(num_layers):
        known = (one_layer @ known > 0).float()
    return known.bool()


@receptive_field.oracle
def _(mask, num_layers):
    nodes = range(len(mask))
    known = [{i} for i in nodes]
    for _ in range(num_layers):
        before = known
        known = [{*inputs} for inputs in before]
        for i, j in mask.nonzero().tolist():
            known[i].update(before[j])
    field = torch.zeros(mask.shape, dtype=torch.bool)
    for i in nodes:
        field[i, list(known[i])] = True
    return field


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
    range(num_layers) → range(len(mask))
    known = (one_layer @ known > 0).float() → for i in range(len(mask)):
            known[i] = (one_layer[i] @ known > 0).float()
You square the matrix, so the distance doubles. Multiply by the matrix of one layer.
    range(num_layers) → range(num_layers - 1)
    and known = (one_layer @ known > 0) → one_layer = known = (one_layer @ one_layer > 0)
You start from the matrix of one layer. Without a layer every node depends on its own
input alone: start from the identity matrix.
    known = torch.eye(len(mask)) → known = one_layer
    and range(num_layers) → range(num_layers - 1)
You pass information on once, whatever `num_layers` is.
    range(num_layers) → range(1)
That is one layer too few. Start from the identity, and multiply once for each layer.
    range(num_layers) → range(num_layers - 1)
That is one layer too many. Start from the identity, and multiply once for each layer.
    range(num_layers) → range(num_layers + 1)
Return booleans: your matrix counts the paths, and `> 0` says whether there is one.
    known.bool() → torch.linalg.matrix_power(one_layer, num_layers)
Return booleans: your matrix has the right entries, but as numbers 0 and 1.
    known.bool() → known
PyTorch has no matrix product of booleans: convert by `.float()`, and ask what is `> 0`.
    (one_layer @ known > 0).float() → one_layer.bool() @ known.bool()
right:
    one_layer @ known → known @ one_layer
    known.bool() → torch.linalg.matrix_power(one_layer, num_layers) > 0
"""


@Exercise("7.4", "Counting FLOPs")
def flops_of(n, d, k, r):
    """Return the FLOPs of three layers, as a dictionary of whole numbers."""
    return {
        "self-attention": 4 * n**2 * d,  # n² scores of d products, and n · d outputs
        "convolution": 2 * k * n * d**2,  # k positions, a d × d matrix each
        "sliding-window attention": 4 * n * (2 * r + 1) * d,
    }


@flops_of.oracle
def _(n, d, k, r):
    x = torch.randn(n, d)
    matrix = torch.randn(d, d)
    keys = torch.randn(n, d, 2 * r + 1)
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
        "sliding-window attention": restricted.get_total_flops(),
    }


for name in ("self-attention", "convolution", "sliding-window attention"):

    @flops_of.demand(f"the FLOPs of {name}")
    def _(answer, layer=name):
        for sizes in ((7, 5, 3, 2), (4, 6, 5, 1), (2, 4, 3, 3)):
            counts = answer(*sizes)
            right = answer.expected()
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
- Sliding-window attention has 2r + 1 keys for each of n queries. A convolution multiplies
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
Sliding-window attention: count 2r + 1 keys for the tokens at the edges, too.
    4 * n * (2 * r + 1) * d → 4 * n * min(n, 2 * r + 1) * d
    4 * n * (2 * r + 1) * d → 4 * sum(min(n, i + r + 1) - max(0, i - r) for i in range(n)) * d
Sliding-window attention: a token attends to r tokens on either side and to itself.
    (2 * r + 1) → (r + 1)
    (2 * r + 1) → r
    (2 * r + 1) → (2 * r)
Sliding-window attention: your count is half of the right one. Do you count both matrix
products, and a multiplication and an addition as two?
    4 * n * (2 * r + 1) * d → 2 * n * (2 * r + 1) * d
Sliding-window attention: two things are missing. There are two matrix products, scores and
outputs, and in each a multiplication and an addition count as two.
    4 * n * (2 * r + 1) * d → n * (2 * r + 1) * d
Sliding-window attention: you count one query. Every token has a query.
    4 * n * (2 * r + 1) * d → 4 * (2 * r + 1) * d
Sliding-window attention: every score is a dot product, and so is every entry of the
outputs. You count these as a single operation, or as two.
    4 * n * (2 * r + 1) * d → 4 * n * (2 * r + 1)
    4 * n * (2 * r + 1) * d → 2 * n * (2 * r + 1)
Sliding-window attention: you count something twice. There are two matrix products, no more.
    4 * n * (2 * r + 1) * d → 8 * n * (2 * r + 1) * d
right:
    4 * n**2 * d, → 2 * n * n * d + 2 * n * d * n,
"""
