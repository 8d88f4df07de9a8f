"""Known wrong answers of exercise 10.5, a block's parameters: (code, message, answer).

This module does not know the right answers.
"""

COUNT = [
    (
        "weights-only",
        "You counted the matrices. Biases and norms learn, too.",
        lambda d, f: 4 * d * d + 2 * d * f,
    ),
    (
        "no-biases",
        "You left out the biases: attention has four of d_model numbers, the network "
        "one of d_ff and one of d_model.",
        lambda d, f: 4 * d * d + 2 * d * f + 4 * d,
    ),
    (
        "no-norms",
        "4 · d_model numbers are missing: those of the two norms, each with a gamma "
        "and a beta, or the biases of the four layers of attention.",
        lambda d, f: 4 * d * d + 2 * d * f + 5 * d + f,
    ),
    (
        "half-of-the-norms",
        "There are two norms, and each has a gamma and a beta: 4 · d_model in all.",
        lambda d, f: 4 * d * d + 2 * d * f + 7 * d + f,
    ),
    (
        "no-W_O",
        "Attention has a fourth matrix, W_O, with its bias.",
        lambda d, f: 3 * d * d + 2 * d * f + 8 * d + f,
    ),
    (
        "one-matrix",
        "The network has two matrices, one up to d_ff and one back.",
        lambda d, f: 4 * d * d + d * f + 9 * d + f,
    ),
    (
        "one-matrix",
        "The network has two matrices, one up to d_ff and one back, each with a bias.",
        lambda d, f: 4 * d * d + d * f + 8 * d + f,
    ),
    (
        "no-network-biases",
        "The network's two layers have biases, too: d_ff numbers, and d_model.",
        lambda d, f: 4 * d * d + 2 * d * f + 8 * d,
    ),
    (
        "two-inner-biases",
        "The network's second layer leads back to d_model numbers, and has as many "
        "biases.",
        lambda d, f: 4 * d * d + 2 * d * f + 8 * d + 2 * f,
    ),
    (
        "one-bias-for-attention",
        "Each of attention's four layers, Q, K, V and O, has a bias of its own.",
        lambda d, f: 4 * d * d + 2 * d * f + 6 * d + f,
    ),
    (
        "no-inner-bias",
        "The network's inner layer has a bias, too: d_ff numbers.",
        lambda d, f: 4 * d * d + 2 * d * f + 9 * d,
    ),
    (
        "no-outer-bias",
        "The network's second layer has a bias, too: d_model numbers.",
        lambda d, f: 4 * d * d + 2 * d * f + 8 * d + f,
    ),
    (
        "twelve-squares",
        "12 · d_model² holds where d_ff = 4 · d_model, and counts the matrices alone. "
        "Write it with d_ff, and add biases and norms.",
        lambda d, f: 12 * d * d,
    ),
]
