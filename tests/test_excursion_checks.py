"""The checks of five excursions' exercises tell right answers from likely mistakes.

They stand on the pages: their cells are run here.
"""

from pathlib import Path

import pytest
import torch

from tools.notebooks import read_notebook, source_of

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def names_on(page, *cells):
    """Run cells of a page by name, and return what they define."""
    names = {"torch": torch}
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
        (lambda weight, heads, kv: weight, "✗ 2 KV heads with d_k = 4"),
        (added, "✗ You add"),
        (taken_in_turn, "✗ You take the heads in turn"),
        (first_of_each_group, "✗ Row i"),
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


REAL = names_on(
    "x_real_language_model.ipynb",
    "score-check-code",
    "score-solution",
    "lens-check-code",
    "lens-solution",
    "rest-check-code",
    "rest-solution",
)


def on_diagonal(distance, first, last):
    """Return a score from the entries of one diagonal of a map."""

    def score(weights, length):
        return weights.diagonal(offset=-distance(length))[first:last].mean()

    return score


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (REAL["induction_score_solved"], "✓"),
        (on_diagonal(lambda n: n - 1, 2, -1), "✓"),
        (lambda weights, length: None, "⬜"),
        (lambda weights, length: weights[0], "✗ A score is one number"),
        (lambda weights, length: weights[0, 1] / 0 - weights[0, 1] / 0, "✗ The score"),
        (on_diagonal(lambda n: n, 1, -1), "✗ This is the weight on the earlier copy"),
        (on_diagonal(lambda n: n - 2, 3, -1), "✗ One token too far"),
        (lambda weights, n: weights.diagonal(offset=-1)[n:-1].mean(), "✗ This is the"),
        (on_diagonal(lambda n: n - 1, 0, None), "✗ Queries of the first half"),
        (on_diagonal(lambda n: n - 1, 2, None), "✗ The last token"),
        (lambda weights, length: weights.mean(), "✗ With 5 tokens expected"),
    ],
)
def test_the_check_of_the_induction_score(function, message):
    assert REAL["check_induction_score"](function).startswith(message)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (REAL["logit_lens_solved"], "✓"),
        (lambda hidden_states, norm, unembedding, token: None, "⬜"),
        (lambda h, norm, u, token: norm(h) @ u.T, "✗ 4 layers have 4 probabilities"),
        (
            lambda h, norm, u, token: (h @ u.T).softmax(-1)[:, token],
            "✗ Not yet: the norm",
        ),
        (lambda h, norm, u, token: (norm(h) @ u.T)[:, token], "✗ Not yet: these are l"),
        (lambda h, norm, u, t: (norm(h) @ u.T).softmax(0)[:, t], "✗ Not yet: the soft"),
        (lambda h, norm, u, token: torch.full((4,), torch.nan), "✗ Expected"),
    ],
)
def test_the_check_of_the_logit_lens(function, message):
    assert REAL["check_logit_lens"](function).startswith(message)


def with_rest(change):
    """Return a function of (weights, values) from what it makes of the weights."""
    return lambda weights, values: change(weights.clone()) @ values


def first_removed(weights):
    weights[1:, 0] = 0
    return weights


def first_removed_for_all(weights):
    weights[:, 0] = 0
    return weights / weights.sum(dim=1, keepdim=True)


def first_query_doubled(weights):
    weights = first_removed(weights)
    weights = weights / weights.sum(dim=1, keepdim=True)
    weights[0] *= 2
    return weights


def last_removed(weights):
    weights[1:, -1] = 0
    return weights / weights.sum(dim=1, keepdim=True) + 0.1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (REAL["without_first_key_solved"], "✓"),
        (lambda weights, values: None, "⬜"),
        (lambda weights, values: weights, "✗ The outputs are (query, d_k)"),
        (with_rest(first_removed_for_all), "✗ There is nan"),
        (with_rest(first_removed), "✗ The first value is gone"),
        (with_rest(lambda w: first_removed(w).softmax(dim=1)), "✗ A second softmax"),
        (with_rest(lambda weights: weights), "✗ Nothing is masked"),
        (with_rest(last_removed), "✗ The second query's output"),
        (with_rest(first_query_doubled), "✗ The first query attends to itself"),
    ],
)
def test_the_check_of_a_head_without_its_first_key(function, message):
    assert REAL["check_without_first_key"](function).startswith(message)


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
    monkeypatch.setitem(TRAINING, "test_accuracy", lambda model: accuracy)
    assert TRAINING["check_gpt2"](GPT2).startswith("✗ The weights look right")
