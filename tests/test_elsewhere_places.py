"""Positions, kernels and windows against numbers that others publish or compute.

Each test names the file that it has its numbers from: facts are copied, and no code.
Libraries that take seconds are imported where they are needed, since every worker reads
this file.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from test_elsewhere import within
from torch import nn

from tools.notebooks import read_notebook, source_of
from tutorial_lib.attention import nadaraya_watson
from tutorial_lib.definitions import definitions
from tutorial_lib.kernels import boxcar, epanechnikov, gaussian, triangular
from tutorial_lib.position import (
    alibi,
    apply_rope,
    frequencies,
    sinusoidal_encoding,
)
from tutorial_lib.windows import SwinBlock


def assert_within(ours, published, tolerance):
    published = torch.as_tensor(published).to(ours.dtype)
    torch.testing.assert_close(ours, published, rtol=0, atol=tolerance)


# --- Kernel regression: R's package np, as statsmodels quotes it ---------------------
# statsmodels/nonparametric/tests/test_kernel_regression.py: the data of
# KernelRegressionTestBase, R's numbers in test_continuousdata_lc_cvls.

WIDTHS = torch.tensor([0.6163835, 0.1649656], dtype=torch.float64)
MEANS = [31.49157, 37.29536, 43.72332, 40.58997, 36.80711]
R_SQUARED = 0.956381720885


def data_of_statsmodels():
    """Draw what they draw, in their order: 60 points of two coordinates, and values."""
    random = np.random.RandomState(123456)
    random.binomial(2, 0.7, size=60)
    random.binomial(3, 0.7, size=60)
    first = random.normal(size=60)
    second = random.normal(10, 1, size=60)
    random.normal(10, 2, size=60)
    values = 0.3 + 1.2 * first + 3.7 * second + random.normal(size=60)
    return torch.tensor(np.stack([first, second], axis=1)), torch.tensor(values)


def estimate(widths, *, leave_out=False):
    """Estimate each value with one kernel for each coordinate, multiplied."""
    points, values = data_of_statsmodels()
    first, second = points.T
    by_second = gaussian(widths[1])(second[:, None] - second)  # (query, key)
    left_out = torch.eye(60, dtype=torch.bool) & leave_out

    def kernel(distances):
        similarities = gaussian(widths[0])(distances) * by_second
        return similarities.masked_fill(left_out, 0)

    means, _ = nadaraya_watson(first, first, values, kernel)
    return means, values


def test_means_of_r():
    means, values = estimate(WIDTHS)
    assert_within(means[:5], MEANS, within("kernel regression"))
    estimated = means - values.mean()
    observed = values - values.mean()
    squares = (estimated @ estimated) * (observed @ observed)
    r_squared = (estimated @ observed) ** 2 / squares
    assert r_squared.item() == pytest.approx(R_SQUARED, abs=1e-5)


def test_widths_of_r():
    # R searched for the widths whose error, each point left out in turn, is least. So
    # do we, from others.
    def error(widths):
        means, values = estimate(torch.tensor(widths), leave_out=True)
        return (means - values).square().mean().item()

    options = {"xatol": 1e-7, "fatol": 1e-13}
    best = minimize(error, [0.8, 0.3], method="Nelder-Mead", options=options)
    assert_within(torch.tensor(best.x), WIDTHS, within("its best bandwidths"))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (gaussian, "gaussian"),
        (boxcar, "tophat"),
        (epanechnikov, "epanechnikov"),
        (triangular, "linear"),
    ],
)
def test_kernels(ours, theirs):
    # scikit-learn's are densities: divided by that at 0, they are similarities.
    distances = np.linspace(0, 0.69, 24)[:, None]
    from sklearn.neighbors import KernelDensity

    fitted = KernelDensity(kernel=theirs, bandwidth=0.7).fit([[0.0]])
    density = np.exp(fitted.score_samples(distances))
    similarities = ours(0.7)(torch.tensor(distances[:, 0]))
    close = within("kernels, and regression with them")
    assert_within(similarities, density / density[0], close)


def test_regression():
    points, values = data_of_statsmodels()
    first = points[:, :1]
    from sklearn.neighbors import KNeighborsRegressor

    fitted = KNeighborsRegressor(60, weights=lambda d: np.exp(-((d / 0.5) ** 2) / 2))
    expected = fitted.fit(first.numpy(), values.numpy()).predict(first.numpy())
    outputs, _ = nadaraya_watson(first[:, 0], first[:, 0], values, gaussian(0.5))
    assert_within(outputs, expected, within("kernels, and regression with them"))


# --- Positions ----------------------------------------------------------------------


def test_sines():
    # keras-hub, sine_position_encoding_test.py, test_output_correct_values
    table = sinusoidal_encoding(torch.arange(4), 6)
    assert_within(table[0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0], 0)
    third = [0.14112, -0.98999, 0.13879, 0.99032, 0.00646, 0.99997]
    assert_within(table[3], third, within("sines and cosines of positions"))


@pytest.mark.parametrize(
    ("d_model", "published"),
    [
        (4, [[0, 0, 1, 1], [0.841470957, 9.99999902e-05, 0.540302277, 1],
             [0.909297407, 1.99999980e-04, -0.416146845, 1]]),
        (6, [[0, 0, 0, 1, 1, 1], [0.841470957, 9.99983307e-03, 9.99999902e-05,
                                  0.540302277, 0.999949992, 1],
             [0.909297407, 1.99986659e-02, 1.99999980e-04,
              -0.416146815, 0.999800026, 1]]),
    ],
)  # fmt: skip
def test_sines_of_tensor2tensor(d_model, published):
    # As allennlp quotes them, tests/nn/util_test.py, test_add_positional_features. The
    # paper's last frequency is a step short of 1 / 10,000, and theirs is just that;
    # their sines come first, the paper's and the cosines alternate.
    pairs = d_model // 2
    omega = frequencies(d_model, base=10_000 ** (pairs / (pairs - 1)))
    angles = torch.arange(3)[:, None] * omega  # (token, pair)
    assert_within(torch.cat([angles.sin(), angles.cos()], dim=1), published, 1e-7)
    papers = sinusoidal_encoding(torch.arange(3), d_model)
    assert (papers[1, ::2] - angles[1].sin()).abs().max() > 1e-3


def test_rotary_of_meta():
    # pytorch/torchtune, tests/torchtune/modules/test_position_embeddings.py: computed
    # by Meta's Llama, of random tokens (test_forward). With halves, -2932 and 5.5781.
    torch.manual_seed(0)
    rotated = []
    for text in torch.randn(4, 2048, 32, 128):
        x = text.transpose(0, 1)  # (head, token, d_k)
        rotated.append(apply_rope(x, torch.arange(2048), frequencies(128)))
    close = within("rotary positions")
    assert sum(text.sum().item() for text in rotated) == pytest.approx(2165.7053, close)
    assert max(text.max().item() for text in rotated) == pytest.approx(5.4546, close)


HALVES = [0, 2, 4, 1, 3, 5]  # numbers that rotate together: 0 and 1 here, 0 and 3 there


def test_rotary():
    # keras-hub, rotary_embedding_test.py, test_output_correct_values: tokens of ones
    rotated = apply_rope(torch.ones(4, 6), torch.arange(4), frequencies(6))
    third = [-1.1311, 0.8515, 0.9935, -0.8489, 1.1291, 1.0064]
    assert_within(rotated[0], torch.ones(6), 0)
    assert_within(rotated[3][HALVES], third, 5.1e-5)
    assert (rotated[3] - torch.tensor(third)).abs().max() > 0.1


@pytest.mark.parametrize(
    ("position", "published"),
    [
        (1 / 2, [0.398157001, 0.994987488, 1.357008100, 1.004987478]),
        (2 / 2, [-0.301168621, 0.989950180, 1.381773233, 1.009949803]),
        (12 / 5, [-1.412856817, 0.975714266, -0.061930716, 1.023709655]),
    ],
)
def test_rotary_of_llama(position, published):
    # Computed by Hugging Face's Llama, as keras-hub quotes it: test_rope_scaling and
    # test_rope_scaling_with_kv_cache, positions divided by 2 and by 5.
    rotated = apply_rope(torch.ones(1, 4), torch.tensor([position]), frequencies(4))
    assert_within(rotated[0, [0, 2, 1, 3]], published, 1e-6)


TO_THREE_KEYS = torch.tensor([[-2, -1, 0]])  # from the last query


def test_linear_bias():
    # keras-hub, alibi_bias_test.py, test_correct_output: eight heads, the last query
    published = [[-(2.0**-head), -(2.0 ** -(head + 1)), 0.0] for head in range(8)]
    assert published[7] == [-0.0078125, -0.00390625, 0.0]
    bias = alibi(8, TO_THREE_KEYS)[:, 0]
    assert_within(bias, published, within("ALiBi for 8 heads"))


def test_linear_bias_of_14_heads():
    # test_correct_output_num_heads_not_power_of_two: the slopes of 8 heads, then every
    # other one of 16. By the formula of the paper's text all 14 are evenly spread.
    published = [-1.0, -0.5, -0.25, -0.125, -0.0625, -0.03125, -0.015625, -0.0078125]
    published += [-1.4142135, -0.70710677, -0.35355338, -0.17677669, -0.08838835]
    published += [-0.04419417]
    of_16_heads = alibi(16, TO_THREE_KEYS)
    theirs = torch.cat([alibi(8, TO_THREE_KEYS), of_16_heads[::2][:6]])[:, 0, 0]
    assert_within(theirs, published, 1e-6)
    ours = alibi(14, TO_THREE_KEYS)[:, 0, 0]
    ratios = ours[1:] / ours[:-1]
    assert_within(ratios, torch.full((13,), 2 ** (-8 / 14)), 1e-6)
    assert not ours.sort().values.allclose(theirs.sort().values)


def test_spectrum():
    # networkx, networkx/linalg/tests/test_spectrum.py, test_laplacian_spectrum: the
    # graph of degrees 3, 2, 2, 1 and 0, once with edges of weight 1, once of 0.5.
    # The function stands on the page of the excursion that is about it.
    page = read_notebook(
        Path(__file__).parents[1] / "notebooks" / "x_positions_beyond_text.ipynb"
    )
    [cell] = [source_of(cell) for cell in page["cells"] if cell["id"] == "ring"]
    names = {"torch": torch}
    [lines] = [
        span for name, *span in definitions(cell) if name == "laplacian_eigenvectors"
    ]
    exec("\n".join(cell.split("\n")[slice(*lines)]), names)
    adjacency = torch.zeros(5, 5)
    for i, j in ((0, 1), (0, 2), (0, 3), (1, 2)):
        adjacency[i, j] = 1
        adjacency[j, i] = 1
    for weight in (1, 0.5):
        values, _ = names["laplacian_eigenvectors"](adjacency * weight, 5)
        expected = weight * torch.tensor([0.0, 0, 1, 3, 4])
        assert_within(values, expected, within("eigenvalues of a graph"))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_shifted_windows(shift):
    torch.manual_seed(0)
    from torchvision.models.swin_transformer import ShiftedWindowAttention

    theirs = ShiftedWindowAttention(8, [4, 4], [shift, shift], 2).eval()
    nn.init.normal_(theirs.relative_position_bias_table)
    block = SwinBlock(8, 2, side=8, window_size=4, shift=shift)
    ours = block.attention
    weights = theirs.qkv.weight.chunk(3)
    biases = theirs.qkv.bias.chunk(3)
    for i, W in enumerate([ours.W_Q, ours.W_K, ours.W_V]):
        W.load_state_dict({"weight": weights[i], "bias": biases[i]})
    ours.W_O.load_state_dict(theirs.proj.state_dict())
    ours.bias_table = theirs.relative_position_bias_table
    block.norm1 = nn.Identity()
    nn.init.zeros_(block.feed_forward.W_2.weight)
    nn.init.zeros_(block.feed_forward.W_2.bias)
    x = torch.randn(3, 8, 8, 8)
    assert_within(block(x) - x, theirs(x), within("shifted windows"))
