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


@Exercise("16.2", "Matching by hand")
def cheapest_match(costs):
    """Return for each object the query that is matched to it, as a list."""
    import itertools

    queries, objects = costs.shape
    best, chosen = float("inf"), []
    for order in itertools.permutations(range(queries), objects):
        total = sum(costs[query, i].item() for i, query in enumerate(order))
        if total < best:
            best, chosen = total, list(order)
    return chosen


@cheapest_match.oracle
def _(costs):
    queries, objects = costs.shape

    def best(taken):
        i = len(taken)
        if i == objects:
            return 0.0, taken
        prices = []
        for query in set(range(queries)) - set(taken):
            rest, matched = best([*taken, query])
            prices.append((float(costs[query, i]) + rest, matched))
        return min(prices)

    return best([])[1]


@cheapest_match.cases
def _():
    costs = torch.tensor([[1.0, 2.0, 9.0], [3.0, 8.0, 9.0], [9.0, 9.5, 4.0]])
    yield "three queries, and two objects with the same cheapest query", costs
    for queries, objects in 4 * ((4, 2), (5, 3), (3, 1)):
        yield "more queries than objects", 10 * torch.rand(queries, objects)
    for _ in range(6):
        label = "negative costs, and as many queries as objects"
        yield label, 10 * torch.randn(4, 4)


cheapest_match.hints = """
- After `import itertools`, `itertools.permutations(range(queries), objects)` lists
  every matching: each gives every object a query of its own.
- The cost of a matching is the sum of `costs[query, i]` over all objects i.
- Keep the matching with the smallest sum. A greedy choice, object by object, may cost
  more: a later object may need a query that is already taken.
"""

cheapest_match.mistakes = """
You give each object its cheapest query, so two objects may get the same one. In a
matching each has its own.
    return chosen → return costs.argmin(dim=0).tolist()
You match greedily: each object takes the cheapest query that is still free. Minimize
the sum over all objects.
    return chosen → chosen, taken = [], costs.clone()
        for i in range(objects):
            chosen.append(taken[:, i].argmin().item())
            taken[chosen[-1]] = float("inf")
        return chosen
You return the matching with the largest cost. Keep the smallest sum.
    total = sum(costs[query, i].item() for i, query in enumerate(order)) → total = -sum(costs[query, i].item() for i, query in enumerate(order))
These are indices of objects, or of the first queries only. With more queries than
objects any query may be matched: return the query of each object.
    (queries) → (objects)
You return the cost of the matching. Return the queries, one for each object.
    return chosen → return best
SciPy is not installed where this notebook runs. Run `%pip install scipy` in a cell of
its own, or try every way with `itertools.permutations`.
    queries, objects = costs.shape → raise ModuleNotFoundError("No module named 'scipy'")
You return one entry for each query. Return one for each object: its query.
    return chosen → return [chosen.index(query) if query in chosen else -1 for query in range(queries)]
right:
    return chosen → from scipy.optimize import linear_sum_assignment

        return linear_sum_assignment(costs.T.numpy())[1].tolist()
    total < best → total <= best
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
