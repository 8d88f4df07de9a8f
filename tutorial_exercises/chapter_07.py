"""Exercises of chapter 7: self-attention, on sets and on graphs."""

import math

import torch
from torch.utils.flop_counter import FlopCounterMode

from tutorial_exercises import Exercise
from tutorial_exercises.orders import ADVICE, EQUIVARIANT, ORDERED
from tutorial_exercises.verdict import false_alarms, first_unseen


@Exercise("7.1", "One layer, two heads, eight sentences")
def two_heads():
    """While *tired* has a score of 0, head 0 gives nearly all weight to the animal, and
    its output is the animal's gender; *wide*, whose value is 0, draws the weight away
    from it. Head 1 does the same for the thing. The step of (7.2) that fails is the
    common denominator: each head divides by a sum of its own."""
    return [
        {"animal": (8.0, -1.0), "cow": (8.0, 1.0), "wide": (16.0, 0.0)},
        {"bridge": (8.0, -1.0), "street": (8.0, 1.0), "tired": (16.0, 0.0)},
    ]


@two_heads.oracle
def _():
    def keys(masculine, feminine, other_adjective):
        noun_keys = {masculine: (8.0, -1.0), feminine: (8.0, 1.0)}
        return noun_keys | {other_adjective: (16.0, 0.0)}

    return [keys("animal", "cow", "wide"), keys("bridge", "street", "tired")]


WORDS = ["animal", "cow", "bridge", "street", "tired", "wide"]
SENTENCES = [
    (f"the {animal} didn't cross the {thing} because it was too {adjective}", label)
    for animal, animal_label in (("animal", -1), ("cow", 1))
    for thing, thing_label in (("bridge", -1), ("street", 1))
    for adjective, label in (("tired", animal_label), ("wide", thing_label))
]


def head_output(head, sentence):
    """Return what a head with these scores and values adds to the logit."""
    rows = torch.tensor([head.get(word, (0.0, 0.0)) for word in sentence.split()])
    scores, values = rows.T.double()
    return float(scores.softmax(dim=0) @ values)


def is_head(head):
    """Tell whether these are scores and values of the six words, or of some of them."""
    return (
        isinstance(head, dict)
        and {*head} <= {*WORDS}
        and all(len(pair) == 2 for pair in head.values())
        and all(math.isfinite(number) for pair in head.values() for number in pair)
    )


@two_heads.demand("two dictionaries, with a score and a value for each word")
def _(answer):
    try:
        fits = len(answer()) == 2 and all(map(is_head, answer.output))
    except TypeError:
        fits = False
    if not fits:
        return (
            'Answer with a list of two dictionaries, each like {"animal": (score, '
            f"value)}}, with numbers. The words are {', '.join(WORDS)}."
        )


@two_heads.demand("the logit is above 0.9 for “elle”, below −0.9 for “il”")
def _(answer):
    heads = answer()
    for sentence, label in SENTENCES:
        outputs = [head_output(head, sentence) for head in heads]
        if sum(outputs) * label < 0.9:
            wanted = "above 0.9, for “elle”" if label > 0 else "below −0.9, for “il”"
            return (
                f"“{sentence.capitalize()}”: head 0 adds {outputs[0]:.2f} and head 1 "
                f"{outputs[1]:.2f}. The sum should be {wanted}."
            )


two_heads.hints = """
- Let head 0 find the gender of the animal, and head 1 that of the thing. In which
  sentences should head 0 add nothing?
- A word with the largest score and a value of 0 draws the weight away from the others.
- In head 0, give *animal* and *cow* a score of 8, and *wide* one of 16. A head sees no
  other head: the softmax of each runs over its own scores.
"""

two_heads.mistakes = """
Head 0 attends to the animal in every sentence. Where the adjective is *wide*, it should
add 0: give *wide* the largest score, and a value of 0.
    , "wide": (16.0, 0.0) →
Head 1 attends to the thing in every sentence. Where the adjective is *tired*, it should
add 0: give *tired* the largest score, and a value of 0.
    , "tired": (16.0, 0.0) →
Each head is drawn away by the wrong adjective: the animal counts where it is *tired*.
    1.0), "wide" → 1.0), "tired"
    and "street": (8.0, 1.0), "tired" → "street": (8.0, 1.0), "wide"
Your signs are exchanged: a positive sum means *elle*, and *cow* and *street* are feminine.
    "animal": (8.0, -1.0), "cow": (8.0, 1.0) → "animal": (8.0, 1.0), "cow": (8.0, -1.0)
    and "bridge": (8.0, -1.0), "street": (8.0, 1.0) → "bridge": (8.0, 1.0), "street": (8.0, -1.0)
right:
    "animal": (8.0, -1.0) → "animal": (9, -3)
    "tired": (16.0, 0.0) → "tired": [20, 0], "wide": (0, 0)
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
