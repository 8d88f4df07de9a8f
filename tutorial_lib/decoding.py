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
import torch.nn.functional as F
from torch import nn

from tutorial_lib.data.text import BOS, EOS, check_counts, pad
from tutorial_lib.progress_bar import progress_bar
from tutorial_lib.recording import is_recorded


class Decoded(NamedTuple):
    """What a model wrote: words as numbers, and how likely it found them."""

    tokens: list  # one list of numbers per sentence, without <bos> and <eos>
    log_probabilities: torch.Tensor  # (batch,), <eos> included


@torch.no_grad()
def generate(
    model, source, lengths, choose, *, max_tokens, change=None, bos=BOS, eos=EOS
):
    """Write one word after the other, as ``choose`` says, until ``<eos>``.

    ``source`` is (batch, token) with ``lengths`` (batch,). ``choose`` takes the
    log-probabilities (batch, vocab) of the next word and returns the words (batch,).
    ``change(logits)``, if there is one, returns the logits to choose by in place of the
    model's. A sentence ends with its ``eos`` or, unfinished, after ``max_tokens``
    words. Dropout is off meanwhile. Raises ValueError for a max_tokens below 0, and
    where the logits hold NaN.
    """
    check_counts(max_tokens=max_tokens, least=0)
    if not len(source):
        return Decoded([], torch.zeros(0, device=source.device))
    with evaluating(model):
        state = model.start(source, lengths)
        last = torch.full((len(source),), bos, device=source.device)
        total = torch.zeros(len(source), device=source.device)
        unfinished = torch.ones_like(last, dtype=torch.bool)
        written = [last]
        while unfinished.any() and len(written) <= max_tokens:
            logits, state = model.step(last, state)
            chances = (change(logits) if change else logits).log_softmax(dim=-1)
            _check_numbers(chances[:, 0].where(unfinished, 0), len(written))
            last = choose(chances)
            chance = chances.gather(-1, last[:, None]).squeeze(-1)  # (batch,)
            total = total + chance.where(unfinished, 0)
            unfinished = unfinished & (last != eos)
            written.append(last)
    return Decoded(_sentences(torch.stack(written, dim=1)[:, 1:], eos), total)


def greedy(model, source, lengths, *, max_tokens, bos=BOS, eos=EOS):
    """Write the likeliest next word, again and again; otherwise as `generate`."""
    options = {"max_tokens": max_tokens, "bos": bos, "eos": eos}
    return generate(model, source, lengths, lambda c: c.argmax(dim=-1), **options)


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

    Beginnings compete by log-probability, and those that ended with ``eos`` compete on
    as they are. The result is the best of all that ever ended among them, and only if
    none did, the best of those that ``max_tokens`` cut off: the one with the largest
    log-probability divided by ((5 + words) / 6) ** ``length_penalty``, ``<eos>``
    counted, as in Wu et al. (2016), equation 14. Log-probabilities are negative, so a
    positive penalty favors long sentences.

    Otherwise as ``greedy``, which is ``width=1``. Raises ValueError for a width below 1
    too, and for one above 1 within ``record_attention``: the beams change places, so
    that the maps would be nobody's.
    """
    _check_search(model, width, max_tokens)
    if not len(source):
        return Decoded([], torch.zeros(0, device=source.device))
    batch, device = len(source), source.device
    sentence = torch.arange(batch, device=device)[:, None]  # (batch, 1)
    last = torch.full((batch, width), bos, device=device)
    written = last[..., None][..., :0]  # (batch, width, token)
    total = torch.full((batch, width), -torch.inf, device=device)
    total[:, 0] = 0  # all beams begin alike: only the first may branch
    ended = torch.zeros_like(last, dtype=torch.bool)
    best = _Best(total[:, 0] - torch.inf, written[:, 0], total[:, 0])  # none so far
    with evaluating(model):
        state = select(model.start(source, lengths), sentence.repeat_interleave(width))
        while written.shape[-1] < max_tokens and not ended.all():
            logits, state = model.step(last.flatten(), state)
            total, beams, last = _branch(logits, total, ended, eos)
            _check_numbers(total, written.shape[-1] + 1)
            state = select(state, (sentence * width + beams).flatten())
            written = torch.cat((written[sentence, beams], last[..., None]), dim=-1)
            ended = (written == eos).any(dim=-1)
            best = _better(best, written, total, ended, length_penalty, eos)
    nothing = (best.score == -torch.inf)[:, None]  # ended: any beam may be returned
    best = _better(best, written, total, nothing, length_penalty, eos)
    return Decoded(_sentences(best.words, eos), best.log_probability)


def translate(model, sentences, data, *, width=1, size=250, progress=True):
    """Translate ``sentences``, lists of words, into lists of words.

    ``data`` has the model's ``source_vocabulary`` and ``target_vocabulary``; ``width``
    above 1 is beam search with a length penalty of 1, and ``size`` sentences are
    translated at a time. No translation exceeds twice its longest source and 10
    words. Raises ValueError for an empty sentence, and for a size below 1.
    """
    check_counts(size=size)
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


class _Best(NamedTuple):
    """The best sentence found so far for each source."""

    score: torch.Tensor  # (batch,), -inf where none was found
    words: torch.Tensor  # (batch, token), filled up with eos
    log_probability: torch.Tensor  # (batch,)


def _branch(logits, total, ended, eos):
    """Return the likeliest continuations (batch, width) of all beams of a sentence.

    They are the log-probabilities, the beams that go on, and the words they go on with:
    one that has ended goes on with ``eos`` alone, at no cost.
    """
    scores = logits.log_softmax(dim=-1).view(*total.shape, -1)
    silence = torch.full_like(scores, -torch.inf)
    silence[..., eos] = 0
    scores = silence.where(ended[..., None], scores) + total[..., None]
    total, chosen = scores.flatten(1).topk(total.shape[1])
    return total, chosen // scores.shape[-1], chosen % scores.shape[-1]


def _better(best, written, total, allowed, length_penalty, eos):
    """Replace the best sentence where an ``allowed`` beam (batch, width) beats it."""
    words = (written != eos).sum(dim=-1) + (written == eos).any(dim=-1)  # <eos> counts
    scores = total / ((5 + words) / 6) ** length_penalty
    score, beam = scores.where(allowed, -torch.inf).max(dim=-1)  # (batch,)
    row, won = torch.arange(len(beam), device=beam.device), score > best.score
    longer = written.shape[-1] - best.words.shape[-1]
    return _Best(
        score.where(won, best.score),
        written[row, beam].where(
            won[:, None], F.pad(best.words, (0, longer), value=eos)
        ),
        total[row, beam].where(won, best.log_probability),
    )


def _sentences(written, eos):
    """Cut every sentence of ``written`` (batch, token) before its ``eos``."""
    rows = written.tolist()
    return [row[: row.index(eos)] if eos in row else row for row in rows]


def _check_search(model, width, max_tokens):
    check_counts(width=width)
    check_counts(max_tokens=max_tokens, least=0)
    if width > 1 and is_recorded(model):
        raise ValueError(
            "a beam search cannot be recorded, because its beams change places: search "
            "first, then record model(source, lengths, target) on what it wrote"
        )


def _check_numbers(total, words):
    if total.isnan().any():
        raise ValueError(
            f"the model gives no probabilities for word {words}, because its logits "
            "are NaN or infinite: look for the first layer whose output is not finite"
        )
