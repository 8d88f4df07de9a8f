"""Text as numbers: sentences to words and back, words to indices and back.

A word that the vocabulary lacks becomes ``<unk>``; nothing is ever cut.

This module knows no corpus, no batch and no model.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

import torch

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD, BOS, EOS, UNK = range(4)

# Numbers, points in a row, words with inner hyphens; any other sign stands alone.
_COMMON = r"\d+(?:[.,:]\d+)+|\.{2,}|\w+(?:-\w+)*|\S"
_WORDS = {
    "en": re.compile(rf"(?<=\w)'\w+|{_COMMON}"),
    "fr": re.compile(
        r"\b(?:\w+-)*(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)'|\w+(?:['-]\w+)+|"
        + _COMMON
    ),
}


@dataclass(frozen=True)
class SentencePair:
    """A sentence and its translation, as words, with what a grammar knows of them.

    ``alignment`` holds pairs (position in the target, position in the source), from 0;
    ``tags`` the part of speech of each source word; ``clauses`` their number. They are
    None where nobody knows.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: frozenset[tuple[int, int]] | None = None
    tags: tuple[str, ...] | None = None
    clauses: int | None = None


def tokenize(sentence, language):
    """Split a sentence in ``language``, "en" or "fr", into lower-cased words.

    Punctuation stands apart. An apostrophe divides: English keeps it on the right
    (``don't`` is ``don 't``), French elision on the left (``l'oiseau`` is
    ``l' oiseau``, but ``aujourd'hui`` stays whole). Curly apostrophes become straight,
    accents are composed (NFC), spaces of every width only separate.
    """
    if language not in _WORDS:
        raise ValueError(f'language must be "en" or "fr", got {language!r}')
    text = unicodedata.normalize("NFC", sentence).lower()
    return _WORDS[language].findall(re.sub("[‘’ʼ]", "'", text))


def detokenize(words):
    """Join words into a sentence, as it is written but for capitals: for BLEU.

    Undoes the splitting of ``tokenize``; no space stands before ``! ? : ;`` in either
    language. Returns a string.
    """
    text = re.sub(r"([([{]|\b\w+(?:-\w+)*') ", r"\1", " ".join(words))
    text = re.sub(r" ([.,!?;:%)\]}]|'\w)", r"\1", text)
    return re.sub(r"(?<!\w)([\"']) (.+?) \1(?!\w)", r"\1\2\1", text)  # quotations


class Vocabulary:
    """The words that a model knows, each with an index.

    ``sentences`` are word sequences, those of the training part only; a word is kept
    if it occurs at least ``min_count`` times. ``words`` lists ``<pad>``, ``<bos>``,
    ``<eos>``, ``<unk>`` and then the words, the frequent ones first.
    """

    def __init__(self, sentences, *, min_count=1):
        counts = Counter(word for sentence in sentences for word in sentence)
        kept = [word for word in counts if counts[word] >= min_count]
        kept = sorted(set(kept) - set(SPECIAL), key=lambda word: (-counts[word], word))
        self.words = [*SPECIAL, *kept]
        self._indices = {word: index for index, word in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self._indices

    def encode(self, words):
        """Return the index of each word as a list; an unknown word's is ``UNK``."""
        return [self._indices.get(word, UNK) for word in words]

    def decode(self, indices):
        """Return the words up to the first ``<eos>``, without ``<bos>`` and ``<pad>``.

        ``indices`` is a sequence of whole numbers or a tensor (token,).
        """
        indices = [int(index) for index in indices]
        end = indices.index(EOS) if EOS in indices else len(indices)
        return [self.words[i] for i in indices[:end] if i not in (PAD, BOS)]


def pad(sentences, vocabulary, *, max_words=None):
    """Encode source sentences, lists of words, as one tensor for a model.

    Returns indices (batch, token), filled with ``PAD``, and lengths (batch,). Raises
    ValueError, naming the sentence, if one is empty, is longer than ``max_words`` or
    is a string that was not tokenized.
    """
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise ValueError(f"{sentence!r} is not a list of words: tokenize it first")
        if not sentence:
            raise ValueError(f"a sentence must have a word, number {number} has none")
        if max_words is not None and len(sentence) > max_words:
            raise ValueError(
                f"{' '.join(sentence)!r} has {len(sentence)} words, more than "
                f"max_words={max_words}: shorten it, nothing is cut off silently"
            )
    return pad_rows([vocabulary.encode(sentence) for sentence in sentences])


def pad_rows(rows):
    """Fill lists of indices with ``PAD`` to one tensor (batch, token).

    Returns it and the lengths of the lists (batch,).
    """
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
    padded = torch.full((len(rows), max(map(len, rows), default=0)), PAD)
    for row, indices in zip(padded, rows, strict=True):
        row[: len(indices)] = torch.tensor(indices)
    return padded, lengths
