"""What models made of real captions: the results of ``benchmarks/captions.py``."""

import json
from pathlib import Path


def load_caption_results():
    """Return how three models translated captions of Multi30k: numbers, no data.

    The models are "fixed context", "attention" and "Transformer". ``["bleu"]`` maps
    each to its BLEU, 0 to 100, in five groups of unseen captions; ``["words"]`` is
    the mean number of English words of each group, and ``["bleu_of_all"]`` maps a model
    to its BLEU on all of them. ``["ours"]`` are three captions written for the book.
    ``["translations"]`` maps a model to its translations of these, and ``["maps"]`` to
    the first one's words, ``source`` and ``target``, and its attention ``weights``
    (target, source).
    """
    path = Path(__file__).with_suffix(".json")
    return json.loads(path.read_text(encoding="utf-8"))
