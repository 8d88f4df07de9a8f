"""Exercises of chapter 16: patch merging, receptive fields, windows as a mask."""

import torch
from torch import nn

from tutorial_exercises import Exercise


@Exercise("16.1", "Patch merging", axes="batch row column d_model")
def merge_patches(grid, norm, projection):
    """Merge 2 × 2 neighbors into one token, as Swin does between two stages."""
    upper_left = grid[:, ::2, ::2]
    lower_left = grid[:, 1::2, ::2]
    upper_right = grid[:, ::2, 1::2]
    lower_right = grid[:, 1::2, 1::2]
    neighbors = (upper_left, lower_left, upper_right, lower_right)
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
                columns_first = square.transpose(0, 1)
                tokens.append(projection(norm(columns_first.reshape(-1))))
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
    yield "16 tokens, merged into four", torch.randn(1, 4, 4, 3), *layers
    for rows, columns, d_model in ((4, 4, 2), (6, 6, 3), (4, 8, 5)):
        grid = torch.randn(2, rows, columns, d_model)
        yield "several images and larger grids", grid, *norm_and_projection(d_model)


@merge_patches.demand("gradients reach the grid and both layers")
def _(answer):
    norm, projection = norm_and_projection(3)
    grid = torch.randn(2, 4, 4, 3, requires_grad=True)
    answer(grid, norm, projection)
    answer.gradients(grid, *norm.parameters(), *projection.parameters())


merge_patches.hints = """
- Of each square of 2 × 2 neighbors, `grid[:, ::2, ::2]` is the upper left token. Its
  shape is (batch, row / 2, column / 2, d_model).
- Cut out the other three in the same way, and concatenate the four along the last axis:
  upper left, lower left, upper right, lower right.
- The norm comes next, then the projection: `projection(norm(merged))`.
"""

merge_patches.mistakes = """
You concatenate the four neighbors row by row. Swin goes column by column: upper left,
lower left, upper right, lower right. Otherwise its trained weights would not fit.
    (upper_left, lower_left, upper_right, lower_right) → (upper_left, upper_right, lower_left, lower_right)
You only reshape, so that four neighbors of one row, or of two, are merged. Those of a
square of 2 × 2 belong together.
    torch.cat(neighbors, dim=-1) → grid.reshape(*upper_left.shape[:3], -1)
You interleave the four vectors. Put one whole vector behind the other.
    torch.cat(neighbors, dim=-1) → torch.stack(neighbors, dim=-1).flatten(-2)
You merge the four quarters of the grid. Merge the tokens of each square of 2 × 2.
    neighbors = (upper_left, lower_left, upper_right, lower_right) → above, below = grid.chunk(2, dim=1)
        neighbors = (*above.chunk(2, dim=2), *below.chunk(2, dim=2))
You leave out the norm: it stands before the projection.
    projection(norm(merged)) → projection(merged)
You leave out the projection, which leaves half of the dimensions.
    projection(norm(merged)) → norm(merged)
right:
    torch.cat(neighbors, dim=-1) → torch.concatenate(neighbors, -1)
    torch.cat(neighbors, dim=-1) → torch.stack(neighbors, dim=-2).flatten(-2)
"""


@Exercise("16.2", "Which tokens does it see?", axes="token")
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
            if (model(changed)[token] - before).abs().max() > 1e-3:
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


def sums_of_two(x):
    """Return the sum of each token and the one before, as a difference of two sums.

    Earlier tokens cancel, but for what float32 rounds.
    """
    sums = x.cumsum(dim=0)
    return 4 + sums - torch.cat((torch.zeros(2, x.shape[1]), sums[:-2]))


def the_one_before(x):
    """Return for each token the one before, and for the first the last."""
    return x.roll(1, dims=0)


@seen_from.cases
def _():
    for shift in (0, 2):
        label = "means over windows, with and without a shift"
        yield label, windows(4, shift), torch.randn(8, 3), 5
        yield label, windows(4, shift), torch.randn(8, 3), 0
    for token in (2, 6):
        yield "a causal model", causal, torch.randn(7, 4), token
        yield "a causal model", sums_of_two, torch.rand(7, 4), token
    label = "models that use differences, or one dimension, of each token"
    yield label, uses_differences, torch.randn(12, 4), 4
    yield label, uses_the_last_dimension, torch.randn(12, 4), 4
    yield label, the_one_before, torch.randn(5, 4), 2


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
You mark tokens that change the output in the last digit only. That is rounding: compare
by `torch.allclose`.
    .allclose(model(changed)[token], before) → .equal(model(changed)[token], before)
The token itself is always marked. A model may let it see the other tokens only.
    return seen → seen[token] = True
        return seen
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


@Exercise("16.3", "Windows in one mask", axes="head query key")
def grid_bias(bias_table, side, window_size, shift):
    """Return what turns global attention into attention within windows."""
    from tutorial_lib.windows import shifted_window_mask

    line = torch.arange(side)
    positions = torch.cartesian_prod(line, line)  # (token, 2)
    offsets = positions[:, None] - positions  # (query, key, 2)
    rows, columns = (offsets + window_size - 1).unbind(dim=-1)
    numbers = rows * (2 * window_size - 1) + columns
    mask = shifted_window_mask(side, window_size, shift)
    numbers = numbers.masked_fill(~mask, 0)
    bias = bias_table[numbers]  # (query, key, head)
    return bias.permute(2, 0, 1).masked_fill(~mask, -torch.inf)


@grid_bias.oracle
def _(bias_table, side, window_size, shift):
    num_heads = bias_table.shape[1]
    bias = torch.full((num_heads, side**2, side**2), -torch.inf)
    for query in range(side**2):
        row, column = divmod(query, side)
        for key in range(side**2):
            key_row, key_column = divmod(key, side)
            same_rows = (row - shift) // window_size == (key_row - shift) // window_size
            same_columns = (column - shift) // window_size == (
                key_column - shift
            ) // window_size
            if same_rows and same_columns:
                number = (row - key_row + window_size - 1) * (2 * window_size - 1)
                number += column - key_column + window_size - 1
                bias[:, query, key] = bias_table[number]
    return bias


@grid_bias.cases
def _():
    yield "regular windows of 2 × 2 tokens", torch.randn(9, 2), 4, 2, 0
    yield "shifted windows", torch.randn(9, 2), 6, 2, 1
    yield "larger windows", torch.randn(25, 3), 6, 3, 1
    yield "larger windows", torch.randn(49, 2), 8, 4, 2


@grid_bias.demand("gradients reach the table")
def _(answer):
    table = torch.randn(9, 2, requires_grad=True)
    answer(table, 4, 2, 1)
    answer.gradients(table)


grid_bias.hints = """
- In global attention all tokens of the grid are queries and keys: number them row by row,
  so that token i stands in row `i // side` and column `i % side`.
- `shifted_window_mask(side, window_size, shift)` says which pairs share a window. Within
  a window the offsets are those of `relative_position_index`: compute them for the whole
  grid in the same way.
- Outside of windows an offset has no number. Put 0 there, so that `bias_table` can be
  indexed, and at the end fill in `-torch.inf`.
"""

grid_bias.mistakes = """
Query and key are exchanged: an offset is the position of the query minus that of the key.
    positions[:, None] - positions → positions - positions[:, None]
Rows and columns are exchanged: the rows are multiplied by 2 window_size - 1.
    rows * (2 * window_size - 1) + columns → columns * (2 * window_size - 1) + rows
You do not shift the windows.
    mask = shifted_window_mask(side, window_size, shift) → mask = shifted_window_mask(side, window_size, 0)
Pairs in different windows still attend to each other: add -torch.inf there, not 0.
    .masked_fill(~mask, -torch.inf) → .masked_fill(~mask, 0)
Your mask is inverted: -torch.inf belongs where two tokens do not share a window.
    .masked_fill(~mask, -torch.inf) → .masked_fill(mask, -torch.inf)
Fill in -torch.inf: it hides a pair whatever the scores are.
    -torch.inf → -1e9
The heads come first: move the last axis of the looked-up biases to the front.
    bias.permute(2, 0, 1).masked_fill(~mask, -torch.inf) → bias.masked_fill(~mask[..., None], -torch.inf)
right:
    bias.permute(2, 0, 1).masked_fill → bias.movedim(-1, 0).masked_fill
"""
