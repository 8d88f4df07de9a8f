"""Known wrong answers of chapter 5, as (code, message, answer).

This module does not know the right answers.
"""

import random

import torch


def _by_pair(pairs, held_out, seed):
    pairs = sorted(pairs)
    random.Random(seed).shuffle(pairs)
    train, test = pairs[held_out:], pairs[:held_out]
    return train, test, {word for source, _ in train for word in source}


SPLITS = [
    (
        "leak",
        "You shuffle and cut the pairs: a source with several translations stands on "
        "both sides. Cut the list of different sources.",
        _by_pair,
    )
]


def _states(*, stop="own", after="keep"):
    """Return an answer that stops at another place, or does not keep the state."""

    def answer(cell, words, lengths):
        states = torch.zeros(len(words), cell.hidden_size)
        ends = {
            "own": lengths,
            "never": torch.full_like(lengths, words.shape[1]),
            "late": lengths + 1,
            "early": lengths - 1,
            "shortest": torch.full_like(lengths, int(lengths.min())),
        }[stop]
        for t in range(words.shape[1]):
            reading = (t < ends)[:, None]
            others = states if after == "keep" else torch.zeros_like(states)
            states = torch.where(reading, cell(words[:, t], states), others)
        return states

    return answer


def _blanked(cell, words, lengths):
    reading = torch.arange(words.shape[1]) < lengths[:, None]
    return _states(stop="never")(cell, words * reading[..., None], lengths)


def _forgetful(cell, words, lengths):
    """Begin every word from the state 0."""
    zeros = torch.zeros(len(words), cell.hidden_size)
    last = words[torch.arange(len(words)), (lengths - 1).clamp(min=0)]
    return torch.where((lengths > 0)[:, None], cell(last, zeros), zeros)


def _turned_around(cell, words, lengths):
    """Keep the state while the sentence is read, and move it afterwards."""
    states = torch.zeros(len(words), cell.hidden_size)
    for t in range(words.shape[1]):
        reading = (t < lengths)[:, None]
        states = torch.where(reading, states, cell(words[:, t], states))
    return states


def _all(cell, words, lengths, *, frozen=False):
    """Keep the states after every word: (batch, token, d_hidden)."""
    states, kept = torch.zeros(len(words), cell.hidden_size), []
    for t in range(words.shape[1]):
        moved = cell(words[:, t], states)
        states = torch.where((t < lengths)[:, None] | (not frozen), moved, states)
        kept.append(states)
    return torch.stack(kept, dim=1)


def _all_frozen(cell, words, lengths):
    return _all(cell, words, lengths, frozen=True)


def _gathered(cell, words, lengths):
    """Pick the state at length − 1, which may be −1."""
    return _all(cell, words, lengths)[torch.arange(len(words)), lengths - 1]


EVERY = (
    "You return the states after every place: (batch, token, d_hidden). Only one state "
    "of each sentence was asked for."
)


STATES = [
    (
        "padding-read",
        "The cell reads the padding: every sentence is read to the end of the batch. "
        "Keep the old state where t is not below the length.",
        _states(stop="never"),
    ),
    (
        "padding-blanked",
        "You set the padding to 0 and read on. A word of zeros is a word too: the "
        "state moves. The state must stay as it was.",
        _blanked,
    ),
    (
        "state-lost",
        "After its end a sentence's state turns to 0. Keep the old state instead: "
        "`torch.where(reading, new, states)`.",
        _states(after="zero"),
    ),
    (
        "one-too-far",
        "One word of padding is read: counting from 0, the last word is at "
        "length − 1, so read while t < length.",
        _states(stop="late"),
    ),
    (
        "one-too-few",
        "The last word of each sentence is not read: t runs from 0, so read while "
        "t < length.",
        _states(stop="early"),
    ),
    (
        "shortest",
        "All sentences stop where the shortest ends.",
        _states(stop="shortest"),
    ),
    (
        "empty-sentence",
        "An empty sentence gets the state at the end of the padding: its length − 1 is "
        "−1, which picks the last place. Its state must be 0.",
        _gathered,
    ),
    ("every-state", EVERY, _all),
    ("every-state", EVERY, _all_frozen),
    (
        "turned-around",
        "Your states stand still while words are read and move on padding: the two "
        "branches are the wrong way round.",
        _turned_around,
    ),
    (
        "no-memory",
        "Only the last word counts: hand the states of the last step to the cell.",
        _forgetful,
    ),
]
