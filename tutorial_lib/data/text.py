"""Text as numbers: sentences to words, words to indices, pairs to padded batches.

A word that the vocabulary lacks becomes ``<unk>``; nothing is ever cut. In a batch a
source sentence is its words and no more; a target sentence stands between ``<bos>``
and ``<eos>``.

This module knows no corpus and no model.
"""

import random
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch

from tutorial_lib.data.counts import check_counts

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
    if it occurs at least ``min_count`` times, 1 or more. ``words`` lists ``<pad>``,
    ``<bos>``, ``<eos>``, ``<unk>`` and then the words, the frequent ones first.
    """

    def __init__(self, sentences, *, min_count=1):
        check_counts(min_count=min_count)
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


def pad(sentences, vocabulary):
    """Encode source sentences, lists of words, as one tensor for a model.

    Returns indices (batch, token), filled with ``PAD``, and lengths (batch,). Raises
    ValueError, naming the sentence, if one is empty or a string that was not tokenized.
    """
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            raise ValueError(f"{sentence!r} is not a list of words: tokenize it first")
        if not sentence:
            raise ValueError(f"a sentence must have a word, number {number} has none")
    return pad_rows([vocabulary.encode(sentence) for sentence in sentences])


def encode_prompt(text, vocabulary):
    """Encode the beginning of a text, words between blanks, for a model to go on with.

    Returns indices (1, token), the first of them ``BOS``: an empty text is a text's
    beginning. Raises ValueError for a word that the vocabulary lacks, since a model
    that reads ``<unk>`` goes on with something else.
    """
    words = text.split()
    unknown = sorted({word for word in words if word not in vocabulary})
    if unknown:
        raise ValueError(
            f"the vocabulary lacks {', '.join(unknown)}: a prompt may use its "
            f"{len(vocabulary)} words, such as {', '.join(vocabulary.words[4:9])}"
        )
    return torch.tensor([[BOS, *vocabulary.encode(words)]])


def pad_rows(rows):
    """Fill lists of indices with ``PAD`` to one tensor (batch, token).

    Returns it and the lengths of the lists (batch,).
    """
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
    padded = torch.full((len(rows), max(map(len, rows), default=0)), PAD)
    for row, indices in zip(padded, rows, strict=True):
        row[: len(indices)] = torch.tensor(indices)
    return padded, lengths


class Batch(NamedTuple):
    """Encoded sentence pairs, padded with ``PAD``: integer tensors and nothing else.

    A target is ``<bos> words <eos>`` and its length counts all of them.
    """

    source: torch.Tensor  # (batch, token)
    source_lengths: torch.Tensor  # (batch,)
    target: torch.Tensor  # (batch, token)
    target_lengths: torch.Tensor  # (batch,)


class Batches:
    """Sentence pairs in padded batches; iterating once is one epoch.

    A batch holds ``size`` pairs, or at most ``tokens`` target tokens, padding counted:
    give one of the two. Shuffled pairs are bucketed by length, so that little is
    padding, and the same seed and epoch give the same batches. With ``shuffle=False``
    the pairs stay in their order. Raises ValueError for a size that is no positive
    whole number, if there is no pair, if one has an empty side, or if one alone has
    more than ``tokens`` target tokens.
    """

    def __init__(
        self,
        pairs,
        source_vocabulary,
        target_vocabulary,
        *,
        size=None,
        tokens=None,
        shuffle=True,
        seed=0,
    ):
        given = [number for number in (size, tokens) if number is not None]
        check_counts(size=size, tokens=tokens)
        if len(given) != 1:
            raise ValueError(
                "give the size of a batch as one of size= (sentence pairs) and "
                f"tokens= (target tokens), got size={size} and tokens={tokens}"
            )
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self._rows = [
            _encode(pair, source_vocabulary, target_vocabulary) for pair in pairs
        ]
        if not self._rows:
            raise ValueError("there is no sentence pair to make batches of")
        lengths = [len(target) for _, target in self._ordered()]
        self._cuts = [0, *accumulate(_batch_sizes(lengths, size, tokens))]

    def set_epoch(self, epoch):
        """Choose the shuffle of the next iteration, as torch's samplers do."""
        self.epoch = epoch

    def __len__(self):
        return len(self._cuts) - 1

    def __iter__(self):
        rows, slices = self._ordered(), list(pairwise(self._cuts))
        if self.shuffle:
            random.Random(f"batches {self.seed} {self.epoch}").shuffle(slices)
        for start, stop in slices:
            sources, targets = zip(*rows[start:stop], strict=True)
            yield Batch(*pad_rows(sources), *pad_rows(targets))

    def _ordered(self):
        """Sort by length, pairs of equal lengths at random, or keep the order."""
        if not self.shuffle:
            return self._rows
        rows = list(self._rows)
        random.Random(f"pairs {self.seed} {self.epoch}").shuffle(rows)
        # Target first: its lengths, and so the cuts, are then alike in every epoch.
        return sorted(rows, key=lambda row: (len(row[1]), len(row[0])))


def _encode(pair, source_vocabulary, target_vocabulary):
    if not pair.source or not pair.target:
        raise ValueError(f"both sides of a pair must have a word, got {pair}")
    target = [BOS, *target_vocabulary.encode(pair.target), EOS]
    return source_vocabulary.encode(pair.source), target


def _batch_sizes(lengths, size, tokens):
    """Yield how many sentences, of these target lengths in turn, make each batch."""
    count = longest = 0
    for length in lengths:
        if tokens is not None and length > tokens:
            raise ValueError(
                f"a target sentence has {length} tokens, <bos> and <eos> counted, and "
                f"tokens={tokens}: raise it, or leave out long sentences (max_words=)"
            )
        longest = max(longest, length)
        full = count == size if tokens is None else (count + 1) * longest > tokens
        if full:
            yield count
            count, longest = 0, length
        count += 1
    yield count
