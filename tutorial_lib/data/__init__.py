"""Data to learn from: sentence pairs in two languages, and images.

This package knows no model.
"""

from tutorial_lib.data.corpora import Translation, load_translation
from tutorial_lib.data.downloads import DataError
from tutorial_lib.data.images import ImageBatches, ImageData, Images, load_images
from tutorial_lib.data.scenes import make_scenes
from tutorial_lib.data.sheets import (
    COLORS,
    Sheets,
    color_sheets,
    count_sheets,
    decoy_sheets,
)
from tutorial_lib.data.subwords import Subwords
from tutorial_lib.data.text import (
    BOS,
    EOS,
    PAD,
    UNK,
    Batch,
    Batches,
    SentencePair,
    Vocabulary,
    detokenize,
    pad,
    tokenize,
)

__all__ = [
    "BOS",
    "COLORS",
    "EOS",
    "PAD",
    "UNK",
    "Batch",
    "Batches",
    "DataError",
    "ImageBatches",
    "ImageData",
    "Images",
    "SentencePair",
    "Sheets",
    "Subwords",
    "Translation",
    "Vocabulary",
    "color_sheets",
    "count_sheets",
    "decoy_sheets",
    "detokenize",
    "load_images",
    "load_translation",
    "make_scenes",
    "pad",
    "tokenize",
]
