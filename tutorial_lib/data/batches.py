"""Batches: sentence pairs as padded tensors, those of like length together.

A source sentence is its words and no more; a target sentence stands between ``<bos>``
and ``<eos>``.

This module knows no corpus and no model.
"""

import random
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch

from tutorial_lib.data.text import BOS, EOS, pad_rows


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
    the pairs stay in their order. Raises ValueError if there is no pair, if one has an
    empty side, or if one alone has more than ``tokens`` target tokens.
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
        if len(given) != 1 or given[0] < 1:
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
