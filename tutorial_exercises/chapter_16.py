"""Exercises of chapter 16: Swin, DETR, receptive fields."""

import itertools

import torch
from torch import nn

from tutorial_exercises import Exercise


@Exercise("16.1", "Patch merging", axes="batch row column d_model")
def merge_patches(grid, norm, projection):
    """Merge 2 × 2 neighbors into one token, as Swin does between two stages."""
    upper_left = grid[:, ::2, ::2]
    upper_right = grid[:, ::2, 1::2]
    lower_left = grid[:, 1::2, ::2]
    lower_right = grid[:, 1::2, 1::2]
    neighbors = (upper_left, upper_right, lower_left, lower_right)
    merged = torch.cat(neighbors, dim=-1)
    return projection(norm(merged))


@merge_patches.oracle
def _(grid, norm, projection):
    batch, rows, columns, _ = grid.shape
    images = []
    for i in range(batch):
        merged_rows = []
        for row in range(0, rows, 2):
            tokens = []
            for column in range(0, columns, 2):
                square = grid[i, row : row + 2, column : column + 2]
                tokens.append(projection(norm(square.reshape(-1))))
            merged_rows.append(torch.stack(tokens))
        images.append(torch.stack(merged_rows))
    return torch.stack(images)


def norm_and_projection(d_model):
    """Return the two layers of Swin's patch merging, the norm not at its start."""
    norm = nn.LayerNorm(4 * d_model)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.uniform_(norm.bias, -0.5, 0.5)
    return norm, nn.Linear(4 * d_model, 2 * d_model, bias=False)


@merge_patches.cases
def _():
    layers = norm_and_projection(3)
    yield "four tokens, merged into one", torch.randn(1, 2, 2, 3), *layers
    for rows, columns, d_model in ((4, 4, 2), (6, 6, 3), (4, 8, 5)):
        grid = torch.randn(2, rows, columns, d_model)
        yield "several images and larger grids", grid, *norm_and_projection(d_model)


merge_patches.hints = """
- Of each square of 2 × 2 neighbors, `grid[:, ::2, ::2]` is the upper left token. Its
  shape is (batch, row / 2, column / 2, d_model).
- Cut out the other three in the same way, and concatenate the four along the last axis:
  upper left, upper right, lower left, lower right.
- The norm comes next, then the projection: `projection(norm(merged))`.
"""

merge_patches.mistakes = """
You concatenate the four neighbors column by column. Go row by row: upper left, upper
right, lower left, lower right.
    (upper_left, upper_right, lower_left, lower_right) → (upper_left, lower_left, upper_right, lower_right)
You only reshape, so that four neighbors of one row, or of two, are merged. Those of a
square of 2 × 2 belong together.
    torch.cat(neighbors, dim=-1) → grid.reshape(*upper_left.shape[:3], -1)
You interleave the four vectors. Put one whole vector behind the other.
    torch.cat(neighbors, dim=-1) → torch.stack(neighbors, dim=-1).flatten(-2)
You merge the four quarters of the grid. Merge the tokens of each square of 2 × 2.
    neighbors = (upper_left, upper_right, lower_left, lower_right) → above, below = grid.chunk(2, dim=1)
        neighbors = (*above.chunk(2, dim=2), *below.chunk(2, dim=2))
You leave out the norm: it stands before the projection.
    projection(norm(merged)) → projection(merged)
You leave out the projection, which leaves half of the dimensions.
    projection(norm(merged)) → norm(merged)
right:
    torch.cat(neighbors, dim=-1) → torch.concatenate(neighbors, -1)
    torch.cat(neighbors, dim=-1) → torch.stack(neighbors, dim=-2).flatten(-2)
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
    greedy = 0.0
    matched = {}
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
    before = model(x)[token]
    seen = torch.zeros(len(x), dtype=torch.bool)
    for i in range(len(x)):
        for _ in range(2):
            changed = x.clone()
            changed[i] += 2 * torch.rand(x.shape[1]) + 0.5
            if (model(changed)[token] != before).any():
                seen[i] = True
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
