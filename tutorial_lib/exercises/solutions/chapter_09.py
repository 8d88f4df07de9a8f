"""Solutions of chapter 9, and edits of them that must be caught or must pass."""

import torch

from tutorial_lib.position import RotaryEncoding, frequencies


def table_to_add(W_x, W_p):
    """Return the table E with (x + E) W_x = x W_x + W_p, for any tokens x."""
    return torch.linalg.solve(W_x, W_p, left=False)  # E W_x = W_p: (token, d_model)


def shift_matrix(shift, d_model):
    """Return the matrix that moves every sinusoidal position by ``shift``."""
    angles = shift * frequencies(d_model)  # (pair,)
    M = torch.zeros(d_model, d_model)
    sine = torch.arange(0, d_model, 2)
    cosine = sine + 1
    M[sine, sine] = M[cosine, cosine] = angles.cos()
    M[sine, cosine] = -angles.sin()
    M[cosine, sine] = angles.sin()
    return M


def rotary_grid(x, height, width):
    """Turn half of each patch's numbers by its row, half by its column."""
    rotary = RotaryEncoding(x.shape[-1] // 2)
    by_row, by_column = x.unflatten(-2, (height, width)).chunk(2, dim=-1)
    by_row = rotary(by_row.transpose(-3, -2)).transpose(-3, -2)
    by_column = rotary(by_column)
    return torch.cat((by_row, by_column), dim=-1).flatten(-3, -2)


def read_word_by_word(x, encoding, attention):
    """Return attention(y, y, y, causal=True) for y = encoding(x), word by word."""
    seen, outputs = [], []
    for t, word in enumerate(x.split(1, dim=1)):  # (batch, 1, d_model)
        seen.append(encoding(word, start=t))
        keys = torch.cat(seen, dim=1)  # (batch, key, d_model)
        outputs.append(attention(seen[-1], keys, keys))
    return torch.cat(outputs, dim=1)  # (batch, token, d_model)


ANSWERS = {
    # The weights r^k sum to 1 / (1 - r), so the key three back gets r³ (1 - r). That is
    # largest where 3 r² - 4 r³ = 0, at r = 3/4: 27/64 · 1/4, about a tenth. The three
    # keys before it get more: 1/4, 3/16 and 9/64.
    "9.4": 27 / 256,
}
WRONG_ANSWERS = [
    ("9.4", 27 / 64, "not-shared"),
    ("9.4", 1.0, "not-shared"),
    ("9.4", 0.25, "bound"),
    ("9.4", 0.75, "slope"),
    ("9.4", 0.0608, "both-sides"),
    ("9.4", 0.1481, "from-one"),
    ("9.4", 0.2877, "slope"),
    ("9.4", 1 / 7, "value"),
    ("9.4", 9 / 64, "two-back"),
    ("9.4", 0.11, "rounded"),
    ("9.4", 10.5, "percent"),
    ("9.4", 10.55, "percent"),
]

_SOLVE = "torch.linalg.solve(W_x, W_p, left=False)"
_TURN = "rotary(by_row.transpose(-3, -2)).transpose(-3, -2)"
MUTANTS = [
    ("table_to_add", _SOLVE, "W_p / W_x", "divided"),
    (
        "rotary_grid",
        _TURN,
        "rotary(by_row.transpose(-3, -2)).reshape(by_row.shape)",
        "not-back",
    ),
    ("table_to_add", _SOLVE, "W_p", "not-undone"),
    ("table_to_add", _SOLVE, "W_p @ (1 / W_x)", "divided"),
    ("table_to_add", _SOLVE, "W_p @ W_x", "twice"),
    ("table_to_add", _SOLVE, "W_p @ W_x.T", "transposed"),
    ("table_to_add", _SOLVE, "W_p @ torch.linalg.inv(W_x).T", "inverse-transposed"),
    ("table_to_add", _SOLVE, "torch.linalg.solve(W_x, W_p)", "wrong-side"),
    ("table_to_add", _SOLVE, "torch.linalg.solve(W_x, W_p.T).T", "inverse-transposed"),
    ("table_to_add", _SOLVE, "W_p @ torch.linalg.inv(W_x) @ W_x", "not-undone"),
    ("table_to_add", _SOLVE, "torch.linalg.inv(W_p) @ W_x", "other-undone"),
    ("shift_matrix", "shift * freq", "abs(shift) * freq", "sign-lost"),
    ("shift_matrix", "shift * freq", "freq", "shift-unused"),
    (
        "shift_matrix",
        "shift * frequencies(d_model)",
        "shift * frequencies(d_model) ** 0.5",
        "too-fast",
    ),
    (
        "shift_matrix",
        "    return M",
        "    return torch.ones(d_model - abs(shift)).diag(shift)",
        "columns-moved",
    ),
    ("shift_matrix", "] = -angles", "] = angles", "not-a-turn"),
    ("shift_matrix", "    return M", "    return M.T", "backward"),
    (
        "shift_matrix",
        "torch.zeros(d_model, d_model)",
        "torch.eye(d_model) * 0 + 1",
        "leftover",
    ),
    (
        "shift_matrix",
        "sine = torch.arange(0, d_model, 2)\n    cosine = sine + 1",
        "sine = torch.arange(d_model // 2)\n    cosine = sine + d_model // 2",
        "halves",
    ),
    (
        "shift_matrix",
        "shift * frequencies(d_model)",
        "shift * torch.ones(d_model // 2)",
        "one-speed",
    ),
    (
        "shift_matrix",
        "shift * frequencies(d_model)",
        "shift * frequencies(d_model).flip(0)",
        "reversed",
    ),
    (
        "shift_matrix",
        "    M[sine, cosine] = -angles.sin()\n    M[cosine, sine] = angles.sin()\n",
        "",
        "cosines-only",
    ),
    ("rotary_grid", _TURN, "rotary(by_row)", "columns-twice"),
    ("rotary_grid", _TURN, "by_row", "rows-not-turned"),
    ("rotary_grid", "by_column = rotary(by_column)", "pass", "columns-not-turned"),
    ("rotary_grid", ".transpose(-3, -2)\n", "\n", "not-back"),
    ("rotary_grid", "x.shape[-1] // 2", "x.shape[-1]", "whole-rotary"),
    ("rotary_grid", _TURN, "rotary(by_row.mT).mT", "half-axes"),
    (
        "rotary_grid",
        _TURN,
        "rotary(by_row.transpose(0, 1)).transpose(0, 1)",
        "fixed-axes",
    ),
    (
        "rotary_grid",
        "by_row = rotary(by_row.transpose(-3, -2)).transpose(-3, -2)\n"
        "    by_column = rotary(by_column)",
        "by_column = rotary(by_column.transpose(-3, -2)).transpose(-3, -2)\n"
        "    by_row = rotary(by_row)",
        "swapped",
    ),
    ("rotary_grid", "(by_row, by_column), dim", "(by_column, by_row), dim", "order"),
    (
        "rotary_grid",
        "by_row, by_column = x.unflatten(-2, (height, width)).chunk(2, dim=-1)",
        "by_column, by_row = x.unflatten(-2, (height, width)).chunk(2, dim=-1)",
        "order",
    ),
    (
        "rotary_grid",
        "    rotary = RotaryEncoding(x.shape[-1] // 2)",
        "    return RotaryEncoding(x.shape[-1])(x)",
        "one-row",
    ),
    (
        "rotary_grid",
        "torch.cat((by_row, by_column), dim=-1).flatten(-3, -2)",
        "torch.cat((by_row, by_column), dim=-1)",
        "shape",
    ),
    ("read_word_by_word", ", start=t", "", "position-zero"),
    ("read_word_by_word", "start=t", "start=t + 1", "one-late"),
    ("read_word_by_word", "encoding(word, start=t)", "word", "not-encoded"),
    ("read_word_by_word", "seen[-1], keys", "word, keys", "query-not-encoded"),
    ("read_word_by_word", "seen[-1], keys", "encoding(word), keys", "query-at-zero"),
    (
        "read_word_by_word",
        "torch.cat(seen,",
        "torch.cat(seen[:t] or seen,",
        "not-itself",
    ),
    (
        "read_word_by_word",
        "keys = torch.cat(seen, dim=1)",
        "keys = x[:, : t + 1]",
        "keys-not-encoded",
    ),
    (
        "read_word_by_word",
        "attention(seen[-1], keys, keys)",
        "attention(seen[-1], seen[-1], seen[-1])",
        "forgets",
    ),
    (
        "read_word_by_word",
        "    for t, word in",
        "    y = encoding(x)\n    return attention(y, y, y)\n    for t, word in",
        "sees-future",
    ),
    (
        "read_word_by_word",
        "    for t, word in",
        "    y = encoding(x)\n"
        "    return attention(y, y, y, causal=True)\n"
        "    for t, word in",
        "at-once",
    ),
    (
        "read_word_by_word",
        "    for t, word in",
        "    for t in range(x.shape[1]):\n"
        "        y = encoding(x[:, : t + 1])\n"
        "        outputs.append(attention(y, y, y)[:, -1:])\n"
        "    return torch.cat(outputs, dim=1)\n"
        "    for t, word in",
        "recomputed",
    ),
    ("read_word_by_word", "x.split(1, dim=1)", "x.unbind(dim=1)", "error"),
    (
        "read_word_by_word",
        "        seen.append(encoding(word, start=t))",
        "        seen = list(encoding(x)[:, : t + 1].split(1, dim=1))",
        "encoded-ahead",
    ),
]

ACCEPT = [
    ("table_to_add", _SOLVE, "W_p @ torch.linalg.inv(W_x)"),
    ("table_to_add", _SOLVE, "torch.linalg.solve(W_x.T, W_p.T).T"),
    (
        "shift_matrix",
        "    M = torch.zeros(d_model, d_model)\n",
        "    turns = [[[a.cos(), -a.sin()], [a.sin(), a.cos()]] for a in angles]\n"
        "    return torch.block_diag(*map(torch.tensor, turns))\n",
    ),
    (
        "rotary_grid",
        _TURN,
        "torch.cat([rotary(row, start=i) if width == 1 else torch.cat("
        "[rotary(cell, start=i) for cell in row.split(1, dim=-2)], dim=-2)"
        " for i, row in enumerate(by_row.unbind(-3))]"
        ", dim=-2).view_as(by_row)",
    ),
    (
        "read_word_by_word",
        "        seen.append(encoding(word, start=t))\n"
        "        keys = torch.cat(seen, dim=1)  # (batch, key, d_model)\n"
        "        outputs.append(attention(seen[-1], keys, keys))",
        "        keys = encoding(x[:, : t + 1])\n"
        "        outputs.append(attention(keys[:, -1:], keys, keys))",
    ),
]
