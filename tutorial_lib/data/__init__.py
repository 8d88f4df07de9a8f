"""Data to learn from: sentence pairs in two languages, and images.

This package knows no model.
"""

from tutorial_lib.data.captions import load_caption_results
from tutorial_lib.data.datasets import (
    CLOTHES,
    ImageBatches,
    Images,
    load_images,
    load_translation,
    sample_clothes,
)
from tutorial_lib.data.downloads import DataError, load_stories260k
from tutorial_lib.data.text import (
    BOS,
    EOS,
    PAD,
    Batch,
    Batches,
    SentencePair,
    Vocabulary,
    detokenize,
    pad,
    tokenize,
)
