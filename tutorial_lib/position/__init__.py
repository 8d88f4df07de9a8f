"""Position: telling attention, which sees a set, where each token stands.

``absolute`` adds a vector to each token, ``relative`` changes scores by how far apart
query and key are, ``space`` describes places in pictures, on the line and in graphs.
"""

from tutorial_lib.position.absolute import LearnedEncoding, SinusoidalEncoding
from tutorial_lib.position.relative import (
    LinearBias,
    PositionedAttention,
    RelativeBias,
    RotaryEncoding,
)
from tutorial_lib.position.space import (
    fourier_features,
    laplacian_eigenvectors,
    sinusoidal_grid,
)

__all__ = [
    "LearnedEncoding",
    "LinearBias",
    "PositionedAttention",
    "RelativeBias",
    "RotaryEncoding",
    "SinusoidalEncoding",
    "fourier_features",
    "laplacian_eigenvectors",
    "sinusoidal_grid",
]
