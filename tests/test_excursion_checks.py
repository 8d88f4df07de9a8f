"""The checks of the excursions' exercises tell right answers from likely mistakes.

They stand on the pages: their cells are run here.
"""

from pathlib import Path

import pytest
import torch

from tools.notebooks import read_notebook, source_of
from tutorial_lib.kernels import gaussian

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def names_on(page, *cells):
    """Run cells of a page by name, and return what they define."""
    names = {"torch": torch, "gaussian": gaussian}
    sources = {c["id"]: source_of(c) for c in read_notebook(NOTEBOOKS / page)["cells"]}
    for cell in cells:
        exec(sources[cell], names)
    return names


DRAFTS = names_on(
    "x_speculative_decoding.ipynb", "simpler-check-code", "simpler-solution"
)
LLAMA = names_on("x_llama.ipynb", "pool-check-code", "pool-solution")
SIGNS = names_on("x_positions_beyond_text.ipynb", "signs-check-code", "signs-solution")
LONGITUDES = names_on(
    "x_positions_beyond_text.ipynb", "longitude-check-code", "longitude-solution"
)


def by_target(p, q):
    return p


def by_residual(p, q):
    return p.minimum(q) + (p - q).clamp(min=0)


def not_summing_to_one(p, q):
    return p.minimum(q) + p


def by_draft(p, q):
    return p.minimum(q) + (1 - p.minimum(q).sum()) * q


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (DRAFTS["simpler_frequencies_solved"], "✓"),
        (lambda p, q: None, "⬜"),
        (lambda p, q: p[:3], "✗ 5 tokens"),
        (by_target, "✗ These are the target's"),
        (by_residual, "✗ These are the target's"),
        (not_summing_to_one, "✗ The frequencies add up to"),
        (by_draft, "✗ They add up to 1"),
    ],
)
def test_the_check_of_frequencies_without_the_residual(function, message):
    assert DRAFTS["check_frequencies"](function).startswith(message)


def of_each_node(encoding):
    return encoding * (2 * torch.randint(2, encoding.shape) - 1)


def together(encoding):
    return encoding * (2 * torch.randint(2, (1,)) - 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (SIGNS["flip_signs_solved"], "✓"),
        (lambda encoding: None, "⬜"),
        (lambda encoding: encoding.T, "✗ An encoding"),
        (lambda encoding: 2 * encoding, "✗ An entry"),
        (of_each_node, "✗ Nodes got signs"),
        (together, "✗ In 100 calls two eigenvectors got 2 of 4"),
        (lambda encoding: -encoding, "✗ In 100 calls two eigenvectors got 1 of 4"),
    ],
)
def test_the_check_of_random_signs(function, message):
    assert SIGNS["check_flip_signs"](function).startswith(message)


def shifted(function):
    return lambda weight, heads, kv: function(weight, heads, kv).roll(1, 0)


def added(weight, num_heads, num_kv_heads):
    return weight.view(num_kv_heads, -1, 4, 10).sum(dim=1).flatten(0, 1)


def taken_in_turn(weight, num_heads, num_kv_heads):
    return weight.view(-1, num_kv_heads, 4, 10).mean(dim=0).flatten(0, 1)


def first_of_each_group(weight, num_heads, num_kv_heads):
    return weight.view(num_kv_heads, -1, 4, 10)[:, 0].flatten(0, 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (LLAMA["pool_heads_solved"], "✓"),
        (lambda weight, heads, kv: None, "⬜"),
        (lambda weight, heads, kv: ..., "⬜"),
        (lambda weight, heads, kv: weight[:8].numpy(), "✗ Return a tensor of torch"),
        (lambda weight, heads, kv: weight, "✗ 2 KV heads with d_k = 4"),
        (added, "✗ You add"),
        (taken_in_turn, "✗ You take the heads in turn"),
        (first_of_each_group, "✗ You take the first head"),
        (shifted(LLAMA["pool_heads_solved"]), "✗ Row i"),
    ],
)
def test_the_check_of_pooled_heads(function, message):
    assert LLAMA["check_pool_heads"](function).startswith(message)


SOLVED = LONGITUDES["encode_longitudes_solved"]


def half_periods(degrees, periods):
    return SOLVED(degrees / 2, periods)


def alternating(degrees, periods):
    sines, cosines = SOLVED(degrees, periods).chunk(2, dim=1)
    return torch.stack([sines, cosines], dim=2).flatten(1)


def cosines_first(degrees, periods):
    return SOLVED(degrees, periods).roll(periods, dims=1)


def in_degrees(degrees, periods):
    return SOLVED(degrees.rad2deg(), periods)


def from_no_period(degrees, periods):
    sines, cosines = SOLVED(degrees, periods).chunk(2, dim=1)
    zero, one = torch.zeros(len(degrees), 1), torch.ones(len(degrees), 1)
    return torch.cat([zero, sines[:, :-1], one, cosines[:, :-1]], dim=1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (SOLVED, "✓"),
        (lambda degrees, periods: None, "⬜"),
        (lambda degrees, periods: SOLVED(degrees, 2 * periods), "✗ Six longitudes"),
        (half_periods, "✗ 180° west and 180° east"),
        (in_degrees, "✗ 180° west and 180° east"),
        (alternating, "✗ Sines and cosines alternate"),
        (cosines_first, "✗ 30° became"),
        (from_no_period, "✗ 30° became"),
    ],
)
def test_the_check_of_whole_periods(function, message):
    assert LONGITUDES["check_encode_longitudes"](function).startswith(message)


PYTORCH = names_on(
    "x_pytorch.ipynb",
    "cosine-check-code",
    "cosine-solution",
    "line-check-code",
    "line-solution",
)


def unit(vectors, dim=-1):
    return vectors / vectors.norm(dim=dim, keepdim=True)


def squares_without_root(first, second):
    squares = first.square().sum(dim=-1, keepdim=True) * second.square().sum(dim=-1)
    return first @ second.mT / squares


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (PYTORCH["cosine_similarities_solved"], "✓"),
        (lambda a, b: torch.cosine_similarity(a[:, None], b, dim=-1), "✓"),
        (lambda a, b: None, "⬜"),
        (lambda a, b: a @ b, "✗ PyTorch raises"),
        (lambda a, b: unit(b) @ unit(a).mT, "✗ 3 and 4 vectors have 12 pairs"),
        (lambda a, b: unit(a) @ unit(b).mT * torch.nan, "✗ Some entries are NaN"),
        (lambda a, b: a @ b.mT, "✗ These are the dot products"),
        (squares_without_root, "✗ You divide by the sum of the squares"),
        (lambda a, b: unit(a) @ b.mT, "✗ Only the first"),
        (lambda a, b: a @ unit(b).mT, "✗ Only the second"),
        (lambda a, b: unit(a, 0) @ unit(b, 0).mT, "✗ A norm sums the squares"),
        (lambda a, b: -unit(a) @ unit(b).mT, "✗ These are not the cosines"),
    ],
)
def test_the_check_of_cosines(function, message):
    assert PYTORCH["check_cosine_similarities"](function).startswith(message)


def fit(x, y, *, clears=True, steps=300, error=lambda e: e.square().mean()):
    """Fit a line as the solution does, or with one thing changed."""
    line = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([line], lr=0.1)
    for _ in range(steps):
        loss = error(line[0] * x + line[1] - y)
        if clears:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return line[0].item(), line[1].item()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (PYTORCH["fit_line_solved"], "✓"),
        (PYTORCH["least_squares"], "✓"),
        (lambda x, y: (None, None), "⬜"),
        (lambda x, y: fit(x, y, steps=0), "✗ Both are still 0"),
        (lambda x, y: fit(x, y, error=lambda e: e.square().sum()), "✗ The steps grow"),
        (lambda x, y: (torch.nan, torch.nan), "✗ The steps grow"),
        (lambda x, y: fit(x, y)[::-1], "✗ You return the intercept first"),
        (lambda x, y: (3.0, -1.0), "✗ Other points give the same line"),
        (lambda x, y: fit(x, y, clears=False), "✗ The line is"),
        (lambda x, y: fit(x, y, steps=5), "✗ The line is"),
        (lambda x, y: fit(x, y, error=lambda e: e.abs().mean()), "✗ The line is"),
    ],
)
def test_the_check_of_a_fitted_line(function, message):
    assert PYTORCH["check_fit_line"](function).startswith(message)


LINES = names_on(
    "x_bandwidth.ipynb", "definition", "linear-check-code", "linear-solution"
)
LOCAL = LINES["local_linear_solved"]


def weighted_mean(queries, keys, values, kernel):
    return LINES["kernel_weights"](queries[:, None] - keys, kernel) @ values


def wrong_side(queries, keys, values, kernel):
    mean = weighted_mean(queries, keys, values, kernel)
    return 2 * mean - LOCAL(queries, keys, values, kernel)


def one_line_for_all(queries, keys, values, kernel):
    terms = torch.stack([keys, torch.ones_like(keys)], dim=1)
    slope, height = torch.linalg.lstsq(terms, values[:, None]).solution[:, 0]
    return slope * queries + height


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (LOCAL, "✓"),
        (lambda q, k, v, kernel: None, "⬜"),
        (lambda q, k, v, kernel: v, "✗ 7 queries have outputs of shape"),
        (lambda q, k, v, kernel: q * torch.nan, "✗ Some outputs are NaN"),
        (weighted_mean, "✗ This is the weighted mean"),
        (wrong_side, "✗ You go the wrong way"),
        (lambda q, k, v, kernel: 2 * LOCAL(q, k, v, kernel), "✗ Values on a straight"),
        (one_line_for_all, "✗ Right on lines"),
    ],
)
def test_the_check_of_local_lines(function, message):
    assert LINES["check_local_linear"](function).startswith(message)


TRAINING = names_on(
    "x_training_transformers.ipynb",
    "setup",
    "block",
    "reverser",
    "train",
    "initializations",
    "train-from",
    "exercise-check-code",
    "exercise-solution",
)
GPT2 = TRAINING["initialize_gpt2_solved"]


def changed_after(change, ending):
    """Return the solution, after which parameters of such names are changed."""

    def initialize(model, std=0.1):
        GPT2(model, std)
        for name, parameter in model.named_parameters():
            if name.endswith(ending):
                change(parameter.data)

    return initialize


def as_in_each_block(model, std=0.1):
    GPT2(model, std)
    for block in model.blocks:
        for layer in (block.attention.W_O, block.feed_forward.W_2):
            layer.weight.data *= 2**0.5


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (GPT2, "✓"),
        (lambda model, std: None, "⬜"),
        (lambda model, std: TRAINING["initialize_xavier"](model), "✗ blocks.0.attent"),
        (lambda model, std: GPT2(model, 0.1), "✗ blocks.0.attention.W_Q.weight has a"),
        (as_in_each_block, "✗ Divided by the root of 8 blocks"),
        (changed_after(lambda w: w.mul_(4), "W_2.weight"), "✗ blocks.0.feed_forward.W"),
        (
            changed_after(lambda w: w.normal_(std=0.1), "norm1.weight"),
            "✗ blocks.0.norm",
        ),
        (changed_after(lambda w: w.fill_(0.1), "W_Q.bias"), "✗ blocks.0.attention.W_Q"),
        (
            changed_after(lambda w: w.fill_(torch.nan), "norm2.weight"),
            "✗ blocks.0.norm",
        ),
        (changed_after(lambda w: w.fill_(torch.nan), "W_1.weight"), "✗ blocks.0.feed_"),
        (changed_after(lambda w: w.abs_(), "W_V.weight"), "✗ blocks.0.attention.W_V"),
        (changed_after(lambda w: w.add_(0.05), "W_V.weight"), "✗ blocks.0.attention."),
        (
            changed_after(lambda w: w.sign_().mul_(0.1), "W_K.weight"),
            "✗ blocks.0.attention.W_K.weight is not normal",
        ),
        (changed_after(lambda w: w.zero_(), "out.weight"), "✗ Leave out.weight"),
        (changed_after(lambda w: w.zero_(), "embedding.weight"), "✗ Leave embedding"),
    ],
)
def test_the_check_of_gpt2_s_initialization(function, message):
    assert TRAINING["check_gpt2"](function).startswith(message)


@pytest.mark.parametrize("accuracy", [0.1, float("nan")])
def test_an_initialization_that_does_not_learn_does_not_pass(accuracy, monkeypatch):
    monkeypatch.setitem(TRAINING, "train_from", lambda initialize: "trained")
    accuracies = {"trained": accuracy}
    monkeypatch.setitem(TRAINING, "test_accuracy", accuracies.get)
    assert TRAINING["check_gpt2"](GPT2).startswith("✗ The weights look right")
