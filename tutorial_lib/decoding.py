"""Decoding: let a model write, one word after the other.

A model is anything with two methods, whatever it is made of:

- ``start(source, lengths)`` reads the source (batch, token) and returns a state;
- ``step(tokens, state)`` takes the last word of each sentence, (batch,), and returns
  the logits (batch, vocab) of the next one and the new state.

A state is a tensor, or a tuple, list or dict of states, and the first axis of every
tensor in it is the batch; that is all that beam search needs to know of it.

Nothing here knows a model class.
"""

from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn

from tutorial_lib.data.text import BOS, EOS, pad
from tutorial_lib.progress_bar import progress_bar


class Decoded(NamedTuple):
    """What a model wrote: words as numbers, and how likely it found them."""

    tokens: list  # one list of numbers per sentence, without <bos> and <eos>
    log_probabilities: torch.Tensor  # (batch,), <eos> included


@torch.no_grad()
def greedy(model, source, lengths, *, max_tokens, bos=BOS, eos=EOS):
    """Write the likeliest next word, again and again, until ``<eos>``.

    ``source`` is (batch, token) with ``lengths`` (batch,). A sentence ends with its
    ``eos`` or, unfinished, after ``max_tokens`` words. Dropout is off meanwhile.
    """
    with evaluating(model):
        state = model.start(source, lengths)
        last = torch.full((len(source),), bos, device=source.device)
        total = torch.zeros(len(source), device=source.device)
        unfinished = torch.ones_like(last, dtype=torch.bool)
        written = []
        while unfinished.any() and len(written) < max_tokens:
            logits, state = model.step(last, state)
            best, last = logits.log_softmax(dim=-1).max(dim=-1)  # (batch,)
            total = total + best.where(unfinished, 0)
            unfinished = unfinished & (last != eos)
            written.append(last)
    return Decoded(_sentences(written, eos), total)


@torch.no_grad()
def beam_search(
    model,
    source,
    lengths,
    *,
    width,
    max_tokens,
    length_penalty=0.0,
    bos=BOS,
    eos=EOS,
):
    """Keep the ``width`` likeliest beginnings of each sentence, and the best at last.

    Beginnings compete by log-probability. The result is the one with the largest
    log-probability divided by ((5 + words) / 6) ** ``length_penalty``, ``<eos>``
    counted: Wu et al. (2016), equation 14. Log-probabilities are negative, so a
    positive penalty favors long sentences. Otherwise as ``greedy``, which is
    ``width=1``. Raises ValueError if ``width`` is smaller than 1.
    """
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")
    batch, device = len(source), source.device
    with evaluating(model):
        state = model.start(source, lengths)
        beams = torch.arange(batch, device=device).repeat_interleave(width)
        state = select(state, beams)
        written = torch.full((batch * width, 1), bos, device=device)
        total = torch.full((batch, width), -torch.inf, device=device)
        total[:, 0] = 0  # all beams begin alike: only the first may branch
        while written.shape[1] <= max_tokens:
            logits, state = model.step(written[:, -1], state)
            scores = _continue(logits.log_softmax(dim=-1), written, eos)
            scores = scores.view(batch, width, -1) + total.unsqueeze(-1)
            total, best = scores.flatten(1).topk(width)  # (batch, width)
            rows, words = best // scores.shape[-1], best % scores.shape[-1]
            rows = rows + torch.arange(batch, device=device).unsqueeze(1) * width
            state = select(state, rows.flatten())
            written = torch.cat((written[rows.flatten()], words.view(-1, 1)), 1)
            if (written[:, -1] == eos).all():
                break
    return _choose(written[:, 1:].view(batch, width, -1), total, length_penalty, eos)


def translate(model, sentences, data, *, width=1, size=250, progress=True):
    """Translate ``sentences``, lists of words, into lists of words.

    ``data`` has the model's ``source_vocabulary`` and ``target_vocabulary``; ``width``
    above 1 is beam search with a length penalty of 1, and ``size`` sentences are
    translated at a time. No translation exceeds twice its longest source and 10
    words. Raises ValueError for an empty sentence.
    """
    device = next(model.parameters()).device
    outputs = []
    with progress_bar(len(sentences), unit="sentence", shown=progress) as bar:
        for i in range(0, len(sentences), size):
            source, lengths = pad(sentences[i : i + size], data.source_vocabulary)
            source, lengths = source.to(device), lengths.to(device)
            limit = 2 * source.shape[1] + 10
            if width == 1:
                found = greedy(model, source, lengths, max_tokens=limit)
            else:
                settings = {"width": width, "max_tokens": limit, "length_penalty": 1}
                found = beam_search(model, source, lengths, **settings)
            outputs += [data.target_vocabulary.decode(words) for words in found.tokens]
            bar.update(len(found.tokens))
    return outputs


class Recomputing(nn.Module):
    """A translator that reads everything anew for every word: slow, and the same.

    ``model`` is called as in training, model(source, lengths, target); its own state,
    and whatever is computed once in it, are not used.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model

    def start(self, source, lengths):
        """Keep the source, and no words yet."""
        return source, lengths, source[:, :0]

    def step(self, tokens, state):
        """Append ``tokens`` (batch,), and predict the word after all of them."""
        source, lengths, written = state
        written = torch.cat((written, tokens.unsqueeze(1)), dim=1)
        return self.model(source, lengths, written)[:, -1], (source, lengths, written)


@contextmanager
def evaluating(model):
    """Switch dropout off within a ``with`` block, and back to what it was after it."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def select(state, rows):
    """Pick ``rows`` of the batch from a state: beams are copied, moved or dropped."""
    if isinstance(state, torch.Tensor):
        return state.index_select(0, rows)
    if isinstance(state, dict):
        return {name: select(part, rows) for name, part in state.items()}
    if not isinstance(state, (list, tuple)):
        return state
    parts = [select(part, rows) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)


def _continue(scores, written, eos):
    """Let a finished beam go on with ``eos`` alone, at no cost."""
    finished = (written[:, -1:] == eos).expand_as(scores)
    silence = torch.full_like(scores, -torch.inf)
    silence[:, eos] = 0
    return torch.where(finished, silence, scores)


def _choose(written, total, length_penalty, eos):
    ended = (written == eos).any(dim=-1)
    words = (written != eos).sum(dim=-1) + ended  # (batch, width): <eos> counts
    best = (total / ((5 + words) / 6) ** length_penalty).argmax(dim=-1)  # (batch,)
    rows = torch.arange(len(written), device=written.device)
    return Decoded(_sentences(written[rows, best].unbind(1), eos), total[rows, best])


def _sentences(written, eos):
    """Cut every sentence before its ``eos``; ``written`` has one (batch,) per step."""
    rows = torch.stack(list(written), dim=1).tolist()
    return [row[: row.index(eos)] if eos in row else row for row in rows]
