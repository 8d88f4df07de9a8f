"""The Vision Transformer: an image read as a sentence, each patch of it a word.

Dosovitskiy et al. (2021). ``model`` is the network, ``torchvision_weights`` brings
the weights of torchvision's into it.
"""

from tutorial_lib.vit.model import (
    GridEncoding,
    ImageTokens,
    PatchEmbedding,
    VisionTransformer,
    check_images,
    check_options,
    stack_blocks,
)
from tutorial_lib.vit.torchvision_weights import (
    from_torchvision,
    interpolate_positions,
)

__all__ = [
    "GridEncoding",
    "ImageTokens",
    "PatchEmbedding",
    "VisionTransformer",
    "check_images",
    "check_options",
    "from_torchvision",
    "interpolate_positions",
    "stack_blocks",
]
