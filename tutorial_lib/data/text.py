"""Text as numbers: sentences to tokens, tokens to ids, sentence pairs to batches.

A token is a word or a punctuation mark. One that the vocabulary lacks becomes
``<unk>``; nothing is ever cut. In a batch a source is its tokens and no more; a target
stands between ``<bos>`` and ``<eos>``.
"""

import math
import random
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from tutorial_lib.sizes import check_counts, number_in

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD, BOS, EOS, UNK = range(4)

# A mark without a composed letter, as in x̂, stays with its letter; what says how an
# emoji looks, with that.
_LETTER = r"[\w\u0300-\u036f]"
_LOOK = r"[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]"
# Numbers, points in a row, words with inner hyphens; any other sign stands alone.
_COMMON = rf"\d+(?:[.,:]\d+)+|\.{{2,}}|{_LETTER}+(?:-{_LETTER}+)*|\S{_LOOK}*"
_TOKENS = {
    "en": re.compile(rf"(?<=\w)'\w+|{_COMMON}"),
    "fr": re.compile(
        r"\b(?:\w+-)*(?:[cdjlmnst]|(?:jus|lors|puis|quoi)?qu)'|\w+(?:['-]\w+)+|"
        + _COMMON
    ),
}


@dataclass(frozen=True)
class SentencePair:
    """A sentence and its translation, as tokens, with what a grammar knows of them.

    ``alignment`` holds pairs (target position, source position), from 0; ``tags`` the
    part of speech of each source token; ``clauses`` their number. They are None where
    nobody knows.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: frozenset[tuple[int, int]] | None = None
    tags: tuple[str, ...] | None = None
    clauses: int | None = None


def tokenize(sentence, language):
    """Split a sentence in ``language``, "en" or "fr", into lower-cased tokens.

    Punctuation stands apart. An apostrophe divides: English keeps it on the right
    (``don't`` is ``don 't``), French elision on the left (``l'oiseau`` is
    ``l' oiseau``, but ``aujourd'hui`` stays whole). Curly apostrophes become straight,
    accents are composed (NFC), spaces of every width only separate. What cannot be seen
    (soft hyphens, marks of direction, control characters) is left out. Raises
    ValueError for another language.
    """
    if language not in _TOKENS:
        raise ValueError(f'language must be "en" or "fr", got {language!r}')
    text = unicodedata.normalize("NFC", sentence).lower()
    if not text.isprintable():
        text = "".join(sign for sign in text if sign.isspace() or not _is_unseen(sign))
    return _TOKENS[language].findall(re.sub("[‘’ʼ]", "'", text))


def _is_unseen(sign):
    return unicodedata.category(sign) in ("Cc", "Cf")


def detokenize(tokens):
    """Join tokens into a sentence, as it is written but for capitals: for BLEU.

    Undoes the splitting of ``tokenize``; no space stands before ``! ? : ;`` in either
    language. Returns a string.
    """
    text = re.sub(r"([([{]|\b\w+(?:-\w+)*') ", r"\1", " ".join(tokens))
    text = re.sub(r" ([.,!?;:%)\]}]|'\w)", r"\1", text)
    return re.sub(r"(?<!\w)([\"']) (.+?) \1(?!\w)", r"\1\2\1", text)  # quotations


class Vocabulary:
    """The tokens that a model knows, each with an id, its index in ``tokens``.

    ``sentences`` are sequences of tokens, those of the training part only; a token is
    kept if it occurs at least ``min_count`` times. ``tokens`` lists the special ones,
    ``<pad>``, ``<bos>``, ``<eos>`` and ``<unk>``, and then the others by frequency.
    """

    def __init__(self, sentences, *, min_count=1):
        check_counts(min_count=min_count)
        counts = Counter(token for sentence in sentences for token in sentence)
        kept = {token for token in counts if counts[token] >= min_count}
        kept -= {*SPECIAL_TOKENS}
        by_frequency = sorted(kept, key=lambda token: (-counts[token], token))
        self.tokens = [*SPECIAL_TOKENS, *by_frequency]
        self._ids = {token: index for index, token in enumerate(self.tokens)}

    def __len__(self):
        return len(self.tokens)

    def __contains__(self, token):
        return token in self._ids

    def encode(self, tokens):
        """Return the id of each token as a list; an unknown token's is ``UNK``.

        Raises ValueError for a string that was not tokenized.
        """
        if isinstance(tokens, str):
            raise ValueError(f"{tokens!r} is not a list of words: tokenize it first")
        return [self._ids.get(token, UNK) for token in tokens]

    def decode(self, ids):
        """Return the tokens up to the first ``<eos>``, without ``<bos>`` and ``<pad>``.

        ``ids`` is a sequence of whole numbers or a tensor (token,). Raises ValueError
        for what is no token's id.
        """
        ids = ids.tolist() if hasattr(ids, "tolist") else [*ids]
        for i in map(number_in, ids):
            if not isinstance(i, Integral) or i not in range(len(self.tokens)):
                raise ValueError(f"no token has the id {i}")
        ids = [int(i) for i in ids]
        end = ids.index(EOS) if EOS in ids else len(ids)
        return [self.tokens[i] for i in ids[:end] if i not in (PAD, BOS)]


def pad(sentences, vocabulary):
    """Encode sentences, lists of tokens, as one tensor, filled up with ``PAD``.

    Returns token ids (batch, token) and the lengths of the sentences (batch,).
    """
    rows = [torch.tensor(vocabulary.encode(tokens)) for tokens in sentences]
    lengths = torch.tensor([len(row) for row in rows])
    return pad_sequence(rows, batch_first=True, padding_value=PAD), lengths


class Batch(NamedTuple):
    """Encoded sentence pairs, padded with ``PAD``: integer tensors and nothing else.

    A target is ``<bos> tokens <eos>`` and its length counts all of them.
    """

    source: torch.Tensor  # (batch, token)
    source_lengths: torch.Tensor  # (batch,)
    target: torch.Tensor  # (batch, token)
    target_lengths: torch.Tensor  # (batch,)


class Batches:
    """Sentence pairs in padded batches of ``batch_size``; iterating once is one epoch.

    Shuffled pairs are bucketed by length, so that little is padding, and the same seed
    and epoch give the same batches. With ``shuffle=False`` the pairs stay in their
    order. Raises ValueError for a batch size that is no positive whole number, if there
    is no pair, and if one has an empty side.
    """

    def __init__(
        self,
        pairs,
        source_vocabulary,
        target_vocabulary,
        *,
        batch_size,
        shuffle=True,
        seed=0,
    ):
        check_counts(batch_size=batch_size)
        self.pairs = list(pairs)
        if not self.pairs:
            raise ValueError("there is no sentence pair to make batches of")
        for pair in self.pairs:
            if not pair.source or not pair.target:
                raise ValueError(f"both sides of a pair must have a word, got {pair}")
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        """Choose the shuffle of the next iteration, as torch's samplers do."""
        self.epoch = epoch

    def __len__(self):
        return math.ceil(len(self.pairs) / self.batch_size)

    def __iter__(self):
        pairs = self.ordered()
        starts = list(range(0, len(pairs), self.batch_size))
        if self.shuffle:
            random.Random(f"batches {self.seed} {self.epoch}").shuffle(starts)
        for start in starts:
            batch = pairs[start : start + self.batch_size]
            sources = [pair.source for pair in batch]
            targets = [("<bos>", *pair.target, "<eos>") for pair in batch]
            source, source_lengths = pad(sources, self.source_vocabulary)
            target, target_lengths = pad(targets, self.target_vocabulary)
            yield Batch(source, source_lengths, target, target_lengths)

    def ordered(self):
        """Return the pairs, if shuffled by length, those of one length at random."""
        if not self.shuffle:
            return self.pairs
        pairs = list(self.pairs)
        random.Random(f"pairs {self.seed} {self.epoch}").shuffle(pairs)
        return sorted(pairs, key=lambda pair: (len(pair.target), len(pair.source)))
