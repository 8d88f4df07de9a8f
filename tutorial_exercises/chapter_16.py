"""Exercises of chapter 16: Swin, DETR, receptive fields."""

import itertools

import torch
from einops import rearrange

from tutorial_exercises import Exercise


@Exercise("16.1", "The mask of the cyclic shift", axes="window query key")
def rolled_mask(side, size):
    """Return which tokens may attend to which in the windows of the rolled grid."""
    half = size // 2
    part = (torch.arange(side) - half) // size  # the window each row was in
    part = part.roll(-half)
    parts = torch.cartesian_prod(part, part).view(side, side, 2)
    cut = "(row height) (column width) part -> (row column) (height width) part"
    parts = rearrange(parts, cut, height=size, width=size)
    return (parts[:, :, None] == parts[:, None]).all(dim=-1)


@rolled_mask.oracle
def _(side, size):
    half, windows = size // 2, side // size
    made = torch.zeros(windows**2, size**2, size**2, dtype=torch.bool)

    def part(position):  # of a row, or column, of the rolled grid
        return ((position + half) % side - half) // size

    tokens = list(itertools.product(range(size), repeat=2))
    for w, (row, column) in enumerate(itertools.product(range(windows), repeat=2)):
        for (q, query), (k, key) in itertools.product(enumerate(tokens), repeat=2):
            top, left = row * size, column * size
            same_rows = part(top + query[0]) == part(top + key[0])
            same_columns = part(left + query[1]) == part(left + key[1])
            made[w, q, k] = same_rows and same_columns
    return made


@rolled_mask.cases
def _():
    yield "a grid of four windows", 4, 2
    for side, size in ((6, 2), (8, 4), (12, 4), (4, 4)):
        yield "more windows, and larger windows", side, size


rolled_mask.hints = """
- Start without the cyclic shift: `(torch.arange(side) - size // 2) // size` is the
  index of the shifted window that each row lies in. It is the same for columns.
- Roll these indices as the grid is rolled: `.roll(-(size // 2))`. The last window of
  the rolled grid now contains two different indices.
- Give each token its two indices, for row and column, and split them into windows as
  the grid is split. Two tokens of a window may attend to each other if both indices
  agree.
"""

rolled_mask.mistakes = """
Your mask hides nothing. The last windows of the rolled grid contain tokens from
opposite edges, which may not attend to each other.
    return (parts[:, :, None] == parts[:, None]).all(dim=-1) → return torch.ones_like((parts[:, :, None] == parts[:, None]).all(dim=-1))
You do not roll the indices of the windows: roll them as the grid is rolled.
    roll(-half) → roll(0)
You roll in the wrong direction. The grid is rolled up and to the left: `roll(-(size //
2))`.
    roll(-half) → roll(half)
You compare the rows only. The windows of both row and column must agree.
    .all(dim=-1) → [..., 0]
You allow attention where row or column agrees. Both must agree.
    (parts[:, :, None] == parts[:, None]).all(dim=-1) → (parts[:, :, None] == parts[:, None]).any(dim=-1)
Your mask is inverted: True means that a query may attend to a key.
    return (parts[:, :, None] == parts[:, None]) → return ~(parts[:, :, None] == parts[:, None])
right:
    return (parts[:, :, None] == parts[:, None]).all(dim=-1) → names = parts[..., 0] * 100 + parts[..., 1]
        return names[:, :, None] == names[:, None]
"""


@Exercise("16.2", "Greedy matching")
def greedy_gap(costs):
    """Return how much more the greedy matching costs than the best one."""
    from scipy.optimize import linear_sum_assignment

    left = costs.clone()
    greedy = 0.0
    for _ in range(costs.shape[1]):
        query, i = divmod(left.argmin().item(), costs.shape[1])
        greedy += costs[query, i].item()
        left[query] = torch.inf
        left[:, i] = torch.inf
    queries, objects = linear_sum_assignment(costs)
    return greedy - costs[queries, objects].sum().item()


@greedy_gap.oracle
def _(costs):
    queries, objects = ([*range(count)] for count in costs.shape)
    pairs = sorted((costs[q, i].item(), q, i) for q in queries for i in objects)
    greedy, matched = 0.0, {}
    for cost, query, i in pairs:
        if query not in matched.values() and i not in matched:
            matched[i] = query
            greedy += cost
    orders = itertools.permutations(queries, len(objects))
    best = min(costs[[*order], objects].sum().item() for order in orders)
    return greedy - best


@greedy_gap.cases
def _():
    yield "two queries and two objects", torch.tensor([[1.0, 2.0], [4.0, 9.0]])
    costs = torch.tensor([[5.0, 1.0, 9.0], [1.0, 8.0, 9.0], [9.0, 2.0, 4.0]])
    yield "costs for which the greedy matching is the best", costs
    for queries, objects in 4 * ((4, 2), (5, 3), (3, 1)):
        yield "more queries than objects", 10 * torch.rand(queries, objects)
    for _ in range(6):
        label = "negative costs, and as many queries as objects"
        yield label, 10 * torch.randn(4, 4)


greedy_gap.hints = """
- The index of the smallest cost of all: `divmod(left.argmin().item(), left.shape[1])`
  returns its row, the query, and its column, the object.
- Put infinity into the row and the column of a pair that is matched, in a copy of the
  costs: `left[query] = torch.inf`. Go on until every object has its query.
- `queries, objects = linear_sum_assignment(costs)` is the best matching, and
  `costs[queries, objects]` are its costs. Subtract their sum from the greedy one.
"""

greedy_gap.mistakes = """
You go object by object. The greedy matching takes the smallest of all costs that are
left, whichever object it belongs to.
    for _ in range(costs.shape[1]): → for i in range(costs.shape[1]):
    and query, i = divmod(left.argmin().item(), costs.shape[1]) → query = left[:, i].argmin().item()
You give two objects the same query: after a match, put infinity into its row, too.
    left[query] = torch.inf → pass
You match an object more than once: after a match, put infinity into its column, too.
    left[:, i] = torch.inf → pass
You subtract in the other direction. The greedy matching never costs less than the best.
    return greedy - costs[queries, objects].sum().item() → return costs[queries, objects].sum().item() - greedy
You return the cost of the greedy matching. Subtract that of the best one.
    return greedy - costs[queries, objects].sum().item() → return greedy
You return the cost of the best matching. Subtract it from that of the greedy one.
    return greedy - costs[queries, objects].sum().item() → return costs[queries, objects].sum().item()
You return the costs of a matching by the largest sum. The best has the smallest one.
    linear_sum_assignment(costs) → linear_sum_assignment(costs, maximize=True)
SciPy is not installed where this notebook runs. Run `%pip install scipy` in a cell of
its own.
    from scipy.optimize import linear_sum_assignment → raise ModuleNotFoundError("No module named 'scipy'")
right:
    left[query] = torch.inf → left[query, :] = 1e9
"""


@Exercise("16.3", "Which tokens does it see?", axes="token")
def seen_from(model, x, token):
    """Return which tokens of x the output at one token depends on."""
    before = model(x)[token]
    seen = torch.zeros(len(x), dtype=torch.bool)
    for i in range(len(x)):
        changed = x.clone()
        changed[i] = changed[i] + 1 + torch.rand(x.shape[1])
        seen[i] = not torch.allclose(model(changed)[token], before)
    return seen


@seen_from.oracle
def _(model, x, token):
    before, seen = model(x)[token], torch.zeros(len(x), dtype=torch.bool)
    for i in range(len(x)):
        for _ in range(2):
            changed = x.clone()
            changed[i] += 2 * torch.rand(x.shape[1]) + 0.5
            seen[i] |= (model(changed)[token] != before).any()
    return seen


def windows(size, shift):
    """Return a model: two layers average within windows, the second in shifted ones."""

    def model(x):
        for start in (0, shift):
            window = (torch.arange(len(x)) - start) // size
            mask = (window[:, None] == window).to(x.dtype)
            x = mask @ x / mask.sum(dim=-1, keepdim=True)
        return x

    return model


def uses_differences(x):
    """Use only how the entries of a token differ from their mean."""
    return windows(4, 2)(x - x.mean(dim=-1, keepdim=True))


def uses_the_last_dimension(x):
    """Use only the last entry of each token."""
    return windows(4, 2)(x * torch.tensor([0, 0, 0, 1]))


def causal(x):
    """Return the sum of each token and all before it."""
    return x.cumsum(dim=0)


@seen_from.cases
def _():
    for shift in (0, 2):
        label = "means over windows, with and without a shift"
        yield label, windows(4, shift), torch.randn(8, 3), 5
        yield label, windows(4, shift), torch.randn(8, 3), 0
    for token in (2, 6):
        yield "a causal model", causal, torch.randn(7, 4), token
    label = "models that use differences, or one dimension, of each token"
    yield label, uses_differences, torch.randn(12, 4), 4
    yield label, uses_the_last_dimension, torch.randn(12, 4), 4


seen_from.hints = """
- Run the model once on x as it is, and keep the output at the token.
- Then change one token at a time, in a copy: `changed = x.clone()`. Does the output at
  the token change?
- Change every entry of the token, each by a different amount: a model may use only one
  of them, or only their differences.
"""

seen_from.mistakes = """
You add the same to all entries of a token, or take the gradient of the sum of the
output. A model may use differences only: treat the entries differently.
    1 + torch.rand(x.shape[1]) → 1
    return seen → points = x.clone().requires_grad_()
        (gradients,) = torch.autograd.grad(model(points)[token].sum(), points)
        return gradients.ne(0).any(dim=-1)
You change only the first entry of a token. A model may use another one.
    [i] = changed[i] + 1 + torch.rand(x.shape[1]) → [i, 0] = changed[i, 0] + 1.5
Your changes add up. Change one token at a time, in a fresh copy of x.
    seen[i] = not torch.allclose(model(changed)[token], before) → …
        x = changed
You change the one token and compare the outputs at the others. Change each token in
turn, and compare the output at this one.
    [i] = changed[i] → [token] = changed[token]
    and .allclose(model(changed)[token], before) → .equal(model(changed)[i], model(x)[i])
You mark the tokens that change nothing. Mark those that do.
    seen[i] = not torch.allclose(model(changed)[token], before) → seen[i] = torch.allclose(model(changed)[token], before)
You compare the outputs at all tokens. Compare only the output at the given token.
    .allclose(model(changed)[token], before) → .equal(model(changed), model(x))
Include the token itself, if changing it changes its output.
    return seen → seen[token] = False
        return seen
right:
    changed[i] + 1 + torch.rand → torch.randn
    return seen → points = x.clone().requires_grad_()
        weights = torch.randn(x.shape[1])
        (gradients,) = torch.autograd.grad(model(points)[token] @ weights, points)
        return gradients.ne(0).any(dim=-1)
"""
