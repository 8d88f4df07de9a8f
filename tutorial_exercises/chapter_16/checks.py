"""Checks for chapter 16: windows, matching, running sums, and what is seen.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import itertools

import torch

from tutorial_exercises.exercise import Exercise

__all__ = ["mask", "match", "running", "seen"]


mask = Exercise(
    "16.1",
    "The mask of the roll",
    name="rolled_mask",
    returns="window query key",
    hints=[
        "First without rolling: `(torch.arange(side) - size // 2) // size` is the "
        "number of the moved window that each row lies in, and so for columns.",
        "Roll these numbers as the grid is rolled: `.roll(-(size // 2))`. In the last "
        "window of the rolled grid there are now two numbers.",
        "Give each token its two numbers, cut them into windows as the grid is cut, "
        "and compare each with each: both have to agree.",
    ],
)


@mask.spec
def rolled_mask(side, size):
    """Compare tokens one by one."""
    half, windows = size // 2, side // size
    made = torch.zeros(windows**2, size**2, size**2, dtype=torch.bool)
    places = list(itertools.product(range(size), repeat=2))
    for w, (row, column) in enumerate(itertools.product(range(windows), repeat=2)):
        for q, k in itertools.product(range(size**2), repeat=2):
            pairs = zip((row, column), places[q], places[k], strict=True)
            made[w, q, k] = all(
                _window(number * size + a, half, side, size)
                == _window(number * size + b, half, side, size)
                for number, a, b in pairs
            )
    return made


def _window(place, half, side, size):
    """Return which moved window is shown at this row, or column, of the rolled grid."""
    return ((place + half) % side - half) // size


@mask.step("a grid of four windows")
def _(probe):
    seen = probe(4, 2)
    probe.shape(seen, window=4, query=4, key=4)
    probe.same()


@mask.step("more windows, and larger ones")
def _(probe):
    for side, size in ((6, 2), (8, 4), (12, 4), (4, 4)):
        probe(side, size)
        probe.same()


match = Exercise(
    "16.2",
    "Matching by hand",
    name="cheapest_match",
    hints=[
        "`itertools.permutations(range(queries), objects)`, after `import itertools`, "
        "lists every way to give each object a query of its own.",
        "The price of one way is the sum of `costs[query, i]` over its objects i.",
        "Keep the way with the smallest sum. Cheapest first, object by object, is not "
        "the same: a query that is taken early may be missed later.",
    ],
)


@match.spec
def cheapest_match(costs):
    """Try every way, object after object."""
    queries, objects = costs.shape

    def best(taken):
        i = len(taken)
        if i == objects:
            return 0.0, taken
        free = [query for query in range(queries) if query not in taken]
        tried = [best([*taken, query]) for query in free]
        prices = [
            (float(costs[q, i]) + rest, way)
            for q, (rest, way) in zip(free, tried, strict=True)
        ]
        return min(prices)

    return best([])[1]


@match.step("three queries, three objects, and two want the same")
def _(probe):
    probe(torch.tensor([[1.0, 2.0, 9.0], [3.0, 8.0, 9.0], [9.0, 9.5, 4.0]]))
    probe.same()


@match.step("more queries than objects")
def _(probe):
    for queries, objects in ((4, 2), (5, 3), (3, 1)):
        for _ in range(4):
            probe(10 * torch.rand(queries, objects))
            probe.same()


@match.step("costs below 0, and as many queries as objects")
def _(probe):
    for _ in range(6):
        probe(10 * torch.randn(4, 4))
        probe.same()


running = Exercise(
    "16.3",
    "A memory of fixed size",
    name="running_attention",
    returns="token d_v",
    hints=[
        "Keep two things: the sum of `k[:, None] * v`, a table (d_k, d_v), and the sum "
        "of the k. Both k and q are features: `F.elu(x) + 1`.",
        "A token sees itself, so add its own key and value before it reads.",
        "It reads `q @ memory`, divided by the number `q @ total`.",
    ],
)


@running.spec
def running_attention(queries, keys, values):
    """Make the table of weights, and average by it."""

    def feature(x):
        return torch.where(x > 0, x + 1, x.clamp(max=0).exp())

    rows = []
    for t in range(len(queries)):
        scores = [feature(queries[t]) @ feature(keys[i]) for i in range(t + 1)]
        weighed = [score * values[i] for i, score in enumerate(scores)]
        rows.append(sum(weighed) / sum(scores))
    return torch.stack(rows)


@running.step("three tokens")
def _(probe):
    outputs = probe(torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 2))
    probe.shape(outputs, token=3, d_v=2)
    probe.same()


@running.step("many tokens, and values larger than keys")
def _(probe):
    for tokens in (1, 30):
        probe(torch.randn(tokens, 5), torch.randn(tokens, 5), torch.randn(tokens, 8))
        probe.same()


seen = Exercise(
    "16.4",
    "Which tokens does it see?",
    name="seen_from",
    returns="token",
    hints=[
        "Run the model once on x as it is, and keep the output at the token.",
        "Then change one token at a time, in a copy: `changed = x.clone()`. Does the "
        "output at the token change?",
        "Change every number of the token, and by something that differs from one to "
        "the next: a model may look at one of them only, or at their differences.",
    ],
)


@seen.spec
def seen_from(model, x, token):
    """Change each token in two ways, and compare."""
    before, marks = model(x)[token], []
    for i in range(len(x)):
        changes = []
        for _ in range(2):
            changed = x.clone()
            changed[i] += 2 * torch.rand(x.shape[1]) + 0.5
            changes.append(bool((model(changed)[token] != before).any()))
        marks.append(any(changes))
    return torch.tensor(marks)


class _Windows:
    """Two layers that average within windows of a row of tokens, the second shifted."""

    def __init__(self, tokens, size, shift, kind="mean"):
        masks = [(torch.arange(tokens) - s) // size for s in (0, shift)]
        self.masks = [(m[:, None] == m).to(torch.get_default_dtype()) for m in masks]
        self.kind = kind

    def __call__(self, x):
        if self.kind == "differences":
            x = x - x.mean(dim=-1, keepdim=True)
        if self.kind == "one":
            x = x * (torch.arange(x.shape[1]) == x.shape[1] - 1)
        for table in self.masks:
            x = table @ x / table.sum(dim=-1, keepdim=True)
        return x


class _Past:
    """Add up what came before, itself included."""

    def __call__(self, x):
        return x.cumsum(dim=0)


@seen.step("windows of a row, with and without a shift")
def _(probe):
    for shift in (0, 2):
        for token in (5, 0):
            marks = probe(_Windows(8, 4, shift), torch.randn(8, 3), token)
            probe.shape(marks, token=8)
            probe.same()


@seen.step("a model that looks back only")
def _(probe):
    for token in (2, 6):
        probe(_Past(), torch.randn(7, 4), token)
        probe.same()


@seen.step("models that read differences, or one number of each token")
def _(probe):
    for kind in ("differences", "one"):
        probe(_Windows(12, 4, 2, kind), torch.randn(12, 4), 4)
        probe.same()
