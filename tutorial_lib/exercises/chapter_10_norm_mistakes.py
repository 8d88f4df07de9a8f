"""Known wrong answers of chapter 10's exercises on norms, as (code, message, answer).

This module does not know the right answers.
"""


def _averaged(*four):
    numbers, means, batch_numbers, batch_means = four
    return {
        "layer norm": {"numbers in a mean": numbers, "means": means},
        "batch norm": {"numbers in a mean": batch_numbers, "means": batch_means},
    }


AVERAGED = [
    (
        "exchanged",
        "Those are the right numbers at the wrong norm: layer norm stays within one "
        "token, batch norm within one of the d_model columns.",
        _averaged(576, 64, 64, 576),
    ),
]

_ONE_FOR_ALL = (
    "one-for-all",
    "You put the whole batch into one mean. Only the dark cells of one panel of the "
    "figure go into one.",
)

# For each norm: what to say of a wrong number of numbers in a mean.
NUMBERS = {
    "layer norm": {
        18 * 64: (
            "whole-sentence",
            "Your layer norm averages over a whole sentence. It averages over the "
            "numbers of one token, for each token by itself.",
        ),
        32 * 18: (
            "batch-columns",
            "Your layer norm averages over a column, as batch norm does. It averages "
            "over the numbers of one token.",
        ),
        32 * 18 * 64: _ONE_FOR_ALL,
        18: (
            "words-only",
            "Your layer norm averages over the words of a sentence. It averages over "
            "the numbers of one token, and no other token counts.",
        ),
    },
    "batch norm": {
        32: (
            "one-place",
            "Your batch norm has a mean of its own for each place in the sentence. It "
            "averages over all tokens of all sentences: 32 · 18.",
        ),
        18: (
            "one-sentence",
            "Your batch norm averages over the tokens of one sentence. It averages "
            "over all tokens of all sentences: 32 · 18.",
        ),
        32 * 18 * 64: _ONE_FOR_ALL,
        32 * 64: (
            "columns-too",
            "Your batch norm averages over the d_model columns, too. Each column has a "
            "mean of its own.",
        ),
        64: (
            "token",
            "Your batch norm averages over the numbers of one token, as layer norm "
            "does. It averages over a column: all tokens of all sentences.",
        ),
    },
}


def _layer_norm(
    *,
    dims=(-1,),
    center=True,
    divide=lambda variance, epsilon: (variance + epsilon).sqrt(),
    correction=0,
    finish=lambda x, gamma, beta: x * gamma + beta,
):
    def normalize(x, gamma, beta, epsilon=1e-5):
        mean = x.mean(dim=dims, keepdim=True)
        if center:
            variance = x.var(dim=dims, correction=correction, keepdim=True)
            x = x - mean
        else:
            variance = x.square().mean(dim=dims, keepdim=True)
        return finish(x / divide(variance, epsilon), gamma, beta)

    return normalize


NORM = [
    (
        "unbiased",
        "You divide the squares by d_model - 1, as `var` and `std` do by themselves. "
        "Layer norm divides by d_model: `var(dim=-1, correction=0)`.",
        _layer_norm(correction=1),
    ),
    (
        "epsilon-outside",
        "Your epsilon is added to the standard deviation. It belongs inside the root, "
        "beside the variance.",
        _layer_norm(divide=lambda variance, epsilon: variance.sqrt() + epsilon),
    ),
    (
        "no-epsilon",
        "You do not use epsilon: a token of equal numbers is divided by 0.",
        _layer_norm(divide=lambda variance, epsilon: variance.sqrt()),
    ),
    (
        "variance",
        "You divide by the variance. Take its root.",
        _layer_norm(divide=lambda variance, epsilon: variance + epsilon),
    ),
    (
        "token-axis",
        "You average over the tokens of a sentence. Layer norm averages over the "
        "numbers of one token: the last axis.",
        _layer_norm(dims=(-2,)),
    ),
    (
        "sentence-axis",
        "You average over the sentences of the batch. Layer norm averages over the "
        "numbers of one token: the last axis.",
        _layer_norm(dims=(0,)),
    ),
    (
        "everything",
        "You average over all numbers at once: `mean()` and `var()` need `dim=-1`. "
        "Each token is normalized by itself.",
        _layer_norm(dims=(0, 1, 2)),
    ),
    (
        "whole-sentence",
        "You average over all numbers of a sentence. Each token is normalized by "
        "itself: the last axis alone.",
        _layer_norm(dims=(-2, -1)),
    ),
    (
        "batch-norm",
        "That is batch norm: you average over batch and tokens. Average over the "
        "last axis.",
        _layer_norm(dims=(0, 1)),
    ),
    (
        "not-centered",
        "You do not subtract the mean of the token.",
        _layer_norm(center=False),
    ),
    (
        "not-centered",
        "You divide by the standard deviation, but do not subtract the mean of the "
        "token before.",
        lambda x, gamma, beta, epsilon=1e-5: (
            x / (x.var(dim=-1, correction=0, keepdim=True) + epsilon).sqrt() * gamma
            + beta
        ),
    ),
    (
        "raw-squares",
        "Your variance squares x itself. It is the mean square of x - mean.",
        lambda x, gamma, beta, epsilon=1e-5: (
            (x - x.mean(dim=-1, keepdim=True))
            / (x.square().mean(dim=-1, keepdim=True) + epsilon).sqrt()
            * gamma
            + beta
        ),
    ),
    (
        "fixed-epsilon",
        "You wrote 1e-5 where `epsilon` is asked for: whoever calls with another one "
        "gets the same answer.",
        lambda x, gamma, beta, epsilon=1e-5: _layer_norm()(x, gamma, beta),
    ),
    (
        "no-gamma-and-beta",
        "The token is normalized, but gamma and beta are forgotten: multiply by gamma, "
        "then add beta.",
        _layer_norm(finish=lambda x, gamma, beta: x),
    ),
    (
        "no-gamma",
        "You do not multiply by gamma.",
        _layer_norm(finish=lambda x, gamma, beta: x + beta),
    ),
    (
        "no-beta",
        "You do not add beta.",
        _layer_norm(finish=lambda x, gamma, beta: x * gamma),
    ),
    (
        "gamma-last",
        "You multiply the sum with beta by gamma. Multiply first, then add beta.",
        _layer_norm(finish=lambda x, gamma, beta: (x + beta) * gamma),
    ),
]
