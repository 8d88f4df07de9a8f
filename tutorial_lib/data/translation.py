"""Translation: one form for sentence pairs of every origin.

This module knows no corpus, no file and no model.
"""

from dataclasses import dataclass

from tutorial_lib.data.batches import Batches
from tutorial_lib.data.text import SentencePair, Vocabulary

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, repr=False)
class Translation:
    """English sentences with their French translations, in three parts.

    ``references`` maps each source sentence of ``valid`` and ``test`` to all its
    translations; of Tatoeba's several, the pair has the first. ``left_out`` counts the
    pairs that were not taken, by reason. ``attribution`` says whom to name.
    """

    name: str
    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    attribution: str
    references: dict[tuple[str, ...], list[tuple[str, ...]]]
    left_out: dict[str, int]

    def batches(self, part="train", *, size=None, tokens=None, shuffle=True, seed=0):
        """Return the ``Batches`` of one part, "train", "valid" or "test"."""
        if part not in PARTS:
            raise ValueError(f'part must be "train", "valid" or "test", got {part!r}')
        return Batches(
            getattr(self, part),
            self.source_vocabulary,
            self.target_vocabulary,
            size=size,
            tokens=tokens,
            shuffle=shuffle,
            seed=seed,
        )

    def __repr__(self):
        sizes = ", ".join(f"{len(getattr(self, part)):,} {part}" for part in PARTS)
        english, french = len(self.source_vocabulary), len(self.target_vocabulary)
        left_out = [f"{count:,} {reason}" for reason, count in self.left_out.items()]
        return (
            f"{self.name}: {sizes} pairs; {english:,} English and {french:,} French "
            f"words; left out: {', '.join(left_out) or 'none'}"
        )
