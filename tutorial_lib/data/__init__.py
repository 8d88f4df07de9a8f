"""Data to learn from: sentence pairs in two languages.

This package knows no model.
"""

from tutorial_lib.data.batches import Batch, Batches
from tutorial_lib.data.corpora import load_translation
from tutorial_lib.data.downloads import DataError
from tutorial_lib.data.text import (
    BOS,
    EOS,
    PAD,
    UNK,
    SentencePair,
    Vocabulary,
    detokenize,
    pad,
    tokenize,
)
from tutorial_lib.data.translation import Translation

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "Batch",
    "Batches",
    "DataError",
    "SentencePair",
    "Translation",
    "Vocabulary",
    "detokenize",
    "load_translation",
    "pad",
    "tokenize",
]
