"""Decoding: let a model generate, one token after the other.

A model is anything with a method ``decode_step(tokens, state)``: it takes the tokens
(batch, token) that are new since the state, and returns the logits (batch, vocab) of
the next token and the new state. A `GPT` begins with a `KVCache` that is empty and a
prompt; a translator begins with ``encode(source, lengths)`` and ``<bos>``.

A state is a tensor, or a tuple, list or dictionary of states, and the first axis of
every tensor in it is the batch; that is all that beam search needs to know of it.

First greedy decoding, sampling and beam search. Then logits processors, which turn
logits (..., vocab) into others before a token is chosen and leave those they are given
as they are. Last, speculative decoding, for which a model is a function.

Nothing here knows a model class.
"""

from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from tutorial_lib.data.text import BOS, EOS, check_counts, pad
from tutorial_lib.notebook import progress_bar


class Decoded(NamedTuple):
    """What a model generated: token ids, and how likely it found them."""

    tokens: list  # one list of ids per sentence, without the prompt and <eos>
    log_probs: torch.Tensor  # (batch,), <eos> included


@torch.no_grad()
def generate(
    model, tokens, state, sampler, *, max_new_tokens, logits_processors=(), eos=EOS
):
    """Append one token after the other, as ``sampler`` says, until ``<eos>``.

    ``tokens`` (batch, token) are the prompt, and ``state`` is what the model begins
    with. Each of the ``logits_processors`` turns the logits (batch, vocab) into others;
    ``sampler`` takes the log-probabilities (batch, vocab) of the next token and returns
    ids (batch,). A sentence ends with its ``eos`` or, unfinished, after
    ``max_new_tokens``. Dropout is off meanwhile. Raises ValueError for a max_new_tokens
    below 0, and where the logits hold NaN.
    """
    check_counts(max_new_tokens=max_new_tokens, least=0)
    cum_log_probs = torch.zeros(len(tokens), device=tokens.device)
    unfinished = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device)
    output_ids = tokens[:, :0]  # (batch, token)
    with evaluating(model):
        while unfinished.any() and output_ids.shape[1] < max_new_tokens:
            logits, state = model.decode_step(tokens, state)
            for process in logits_processors:
                logits = process(logits)
            log_probs = logits.log_softmax(dim=-1)
            _check_numbers(log_probs[:, 0].where(unfinished, 0), output_ids)
            tokens = sampler(log_probs)[:, None]  # (batch, 1)
            chosen = log_probs.gather(-1, tokens).squeeze(-1)  # (batch,)
            cum_log_probs = cum_log_probs + chosen.where(unfinished, 0)
            unfinished = unfinished & (tokens[:, 0] != eos)
            output_ids = torch.cat((output_ids, tokens), dim=1)
    return Decoded(_sentences(output_ids, eos), cum_log_probs)


def greedy(model, tokens, state, *, max_new_tokens, eos=EOS):
    """Append the likeliest next token, again and again; otherwise as `generate`."""
    options = {"max_new_tokens": max_new_tokens, "eos": eos}
    return generate(model, tokens, state, lambda p: p.argmax(dim=-1), **options)


def sample(
    model, tokens, state, *, max_new_tokens, logits_processors=(), seed=None, eos=EOS
):
    """Draw each next token from the model's probabilities, until ``<eos>``.

    The log-probabilities are those that were drawn from, after ``logits_processors``
    such as ``lambda logits: top_p(logits, 0.9)``. ``seed`` makes the draws those of
    every other call with it. Otherwise as `generate`.
    """
    generator = _generator(seed, tokens.device)

    def draw(log_probs):
        drawn = torch.multinomial(log_probs.exp(), 1, generator=generator)  # (batch, 1)
        return drawn.squeeze(-1)

    options = {"max_new_tokens": max_new_tokens, "eos": eos}
    return generate(
        model, tokens, state, draw, logits_processors=logits_processors, **options
    )


@torch.no_grad()
def beam_search(model, tokens, state, *, num_beams, max_new_tokens, eos=EOS):
    """Keep the ``num_beams`` likeliest beginnings of each sentence, and the best last.

    Beginnings compete by log-probability, and those that ended with ``eos`` compete on
    as they are. The result is the best of all that ever ended among them, and only if
    none did, the best of those that ``max_new_tokens`` cut off. Otherwise as `greedy`,
    which is ``num_beams=1``. Raises ValueError for fewer beams, too.
    """
    check_counts(num_beams=num_beams)
    check_counts(max_new_tokens=max_new_tokens, least=0)
    batch, device = len(tokens), tokens.device
    row = torch.arange(batch, device=device)[:, None]  # (batch, 1)
    output_ids = tokens.new_zeros(batch, num_beams, 0)  # (batch, beam, token)
    cum_log_probs = torch.full((batch, num_beams), -torch.inf, device=device)
    cum_log_probs[:, 0] = 0  # all beams begin alike: only the first may branch
    ended = torch.zeros(batch, num_beams, dtype=torch.bool, device=device)
    best = _Best(output_ids[:, 0], cum_log_probs[:, 0] - torch.inf)  # none so far
    rows = row.repeat_interleave(num_beams)
    tokens = tokens.index_select(0, rows)
    with evaluating(model):
        state = select(state, rows)
        while output_ids.shape[-1] < max_new_tokens and not ended.all():
            logits, state = model.decode_step(tokens, state)
            cum_log_probs, beams, new = _branch(logits, cum_log_probs, ended, eos)
            _check_numbers(cum_log_probs, output_ids[:, 0])
            state = select(state, (row * num_beams + beams).flatten())
            output_ids = torch.cat((output_ids[row, beams], new[..., None]), dim=-1)
            tokens = new.flatten()[:, None]
            ended = (output_ids == eos).any(dim=-1)
            best = _better(best, output_ids, cum_log_probs, ended, eos)
    none_ended = best.log_probs.isneginf()[:, None]  # any beam may be returned
    best = _better(best, output_ids, cum_log_probs, none_ended, eos)
    return Decoded(_sentences(best.output_ids, eos), best.log_probs)


def translate(model, sentences, data, *, num_beams=1, batch_size=250, progress=True):
    """Translate ``sentences``, lists of words, into lists of words.

    ``data`` has the model's ``source_vocabulary`` and ``target_vocabulary``;
    ``num_beams`` above 1 is beam search, and ``batch_size`` sentences are translated at
    a time. No translation exceeds twice its longest source and 10 words. Raises
    ValueError for an empty sentence, and for a batch_size below 1.
    """
    check_counts(batch_size=batch_size)
    decode = partial(beam_search, num_beams=num_beams)
    if num_beams == 1:
        decode = greedy  # the same in four fifths of the time
    device, outputs = next(model.parameters()).device, []
    with progress_bar(len(sentences), unit="sentence", shown=progress) as bar:
        for i in range(0, len(sentences), batch_size):
            source, lengths = pad(sentences[i : i + batch_size], data.source_vocabulary)
            with torch.no_grad(), evaluating(model):
                state = model.encode(source.to(device), lengths.to(device))
            tokens = torch.full((len(source), 1), BOS, device=device)
            longest = 2 * source.shape[1] + 10
            found = decode(model, tokens, state, max_new_tokens=longest)
            outputs += [data.target_vocabulary.decode(ids) for ids in found.tokens]
            bar.update(len(found.tokens))
    return outputs


@contextmanager
def evaluating(model):
    """Switch dropout off within a ``with`` block, and back to what it was after it."""
    parts = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    training = [part.training for part in parts]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part, was in zip(parts, training, strict=True):
            part.training = was


def select(state, rows):
    """Pick ``rows`` of the batch from a state: beams are copied, moved or dropped."""
    if isinstance(state, torch.Tensor):
        return state.index_select(0, rows)
    if isinstance(state, dict):
        return type(state)((name, select(part, rows)) for name, part in state.items())
    if not isinstance(state, (list, tuple)):
        return state
    parts = [select(part, rows) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)


class _Best(NamedTuple):
    """The best sentence found so far for each row of the batch."""

    output_ids: torch.Tensor  # (batch, token), filled up with eos
    log_probs: torch.Tensor  # (batch,), -inf where none was found


def _branch(logits, cum_log_probs, ended, eos):
    """Return the likeliest continuations (batch, beam) of all beams of a sentence.

    They are the log-probabilities, the beams that go on, and the tokens they go on
    with: one that has ended goes on with ``eos`` alone, at no cost.
    """
    scores = logits.log_softmax(dim=-1).view(*cum_log_probs.shape, -1)
    silence = torch.full_like(scores, -torch.inf)
    silence[..., eos] = 0
    scores = silence.where(ended[..., None], scores) + cum_log_probs[..., None]
    cum_log_probs, chosen = scores.flatten(1).topk(cum_log_probs.shape[1])
    return cum_log_probs, chosen // scores.shape[-1], chosen % scores.shape[-1]


def _better(best, output_ids, cum_log_probs, allowed, eos):
    """Replace the best sentence where an ``allowed`` beam (batch, beam) beats it."""
    log_probs, beam = cum_log_probs.where(allowed, -torch.inf).max(dim=-1)  # (batch,)
    row, won = torch.arange(len(beam), device=beam.device), log_probs > best.log_probs
    longer = output_ids.shape[-1] - best.output_ids.shape[-1]
    padded = F.pad(best.output_ids, (0, longer), value=eos)
    return _Best(
        output_ids[row, beam].where(won[:, None], padded),
        log_probs.where(won, best.log_probs),
    )


def _sentences(output_ids, eos):
    """Cut every sentence of ``output_ids`` (batch, token) before its ``eos``."""
    rows = output_ids.tolist()
    return [row[: row.index(eos)] if eos in row else row for row in rows]


def _check_numbers(log_probs, output_ids):
    if log_probs.isnan().any():
        raise ValueError(
            f"the model gives no probabilities for token {output_ids.shape[1] + 1}, "
            "because its logits are NaN or infinite: look for the first layer whose "
            "output is not finite"
        )


def apply_temperature(logits, temperature):
    """Divide ``logits`` by a ``temperature``: below 1 the likely grow likelier.

    Raises ValueError for a temperature that is not above 0.
    """
    if not temperature > 0:
        raise ValueError(
            f"temperature must be above 0, got {temperature}: for the likeliest token "
            "each time use greedy, or top_k(logits, 1)"
        )
    return logits / temperature


def top_k(logits, k):
    """Keep the ``k`` likeliest tokens, and forbid the others: Fan et al. (2018).

    Tokens that are as likely as the last one kept are kept, too. Raises ValueError for
    a k below 1; one above the vocabulary keeps all.
    """
    check_counts(k=k)
    least = logits.topk(min(k, logits.shape[-1])).values[..., -1:]  # (..., 1)
    return logits.masked_fill(logits < least, -torch.inf)


def top_p(logits, p):
    """Keep the fewest tokens that have probability ``p`` together: the nucleus.

    They are the likeliest, and the last of them is the one with which the sum reaches
    p, up to rounding: Holtzman et al. (2020). Of equally likely tokens the first are
    kept. Raises ValueError unless 0 < p <= 1.
    """
    _check_probability("top_p", p)
    precise = torch.promote_types(logits.dtype, torch.float32)  # for the sum
    probs = logits.softmax(dim=-1, dtype=precise)
    probs, order = probs.sort(descending=True, stable=True)
    before = probs.cumsum(dim=-1) - probs  # what likelier tokens have
    forbidden = torch.zeros_like(before, dtype=torch.bool)
    forbidden.scatter_(-1, order, (before >= p - 1e-6) & (p < 1))
    forbidden.scatter_(-1, order[..., :1], False)  # whatever rounding does to the sum
    return logits.masked_fill(forbidden, -torch.inf)


def min_p(logits, p):
    """Keep the tokens that are at least ``p`` times as likely as the likeliest one.

    Raises ValueError unless 0 < p <= 1. Nguyen et al. (2025).
    """
    _check_probability("min_p", p)
    probs = logits.softmax(dim=-1)
    least = p * probs.amax(dim=-1, keepdim=True)
    return logits.masked_fill(probs < least, -torch.inf)


def _check_probability(name, p):
    if not 0 < p <= 1:
        raise ValueError(
            f"{name} must be above 0 and at most 1, got {p}: for the likeliest token "
            "each time use greedy, or top_k(logits, 1)"
        )


class Speculated(NamedTuple):
    """What `speculative_decode` generated, and what it took."""

    tokens: list  # without the prompt and <eos>
    calls: int  # of the target model
    accepted: int  # draft tokens


@torch.no_grad()
def speculative_decode(
    target, draft, prompt, *, num_draft_tokens, max_new_tokens, seed=None, eos=EOS
):
    """Draw from a ``target`` model in fewer calls, with drafts of a smaller model.

    Both are functions of tokens (1, token) that return logits (1, token, vocab). The
    ``draft`` model draws ``num_draft_tokens``, one call each; the target model verifies
    all of them in one call. A token is accepted with probability
    min(1, target / draft); the first that is rejected is drawn anew from what target
    has more than draft. So the text has exactly the target model's probabilities:
    Leviathan et al. (2023), algorithm 1.

    ``prompt`` (token,) begins with ``<bos>``. No more tokens are drafted than are left
    to write. Raises ValueError for no prompt, for no draft tokens, and for models of
    two vocabularies.
    """
    check_counts(num_draft_tokens=num_draft_tokens)
    check_counts(max_new_tokens=max_new_tokens, least=0)
    if not len(prompt):
        raise ValueError("there is nothing to go on from: begin with <bos>")
    _check_one_vocabulary(target(prompt[None, :1]), draft(prompt[None, :1]))
    generator = _generator(seed, prompt.device)
    text, calls, accepted = prompt.tolist(), 0, 0
    while len(text) - len(prompt) < max_new_tokens and eos not in text[len(prompt) :]:
        left = max_new_tokens - (len(text) - len(prompt))
        count = min(num_draft_tokens, left - 1)  # the target itself writes the last
        drafted, draft_probs = _draft(draft, text, count, prompt.device, generator)
        tokens = torch.tensor([text + drafted], device=prompt.device)
        logits = target(tokens)[0, -count - 1 :]
        target_probs = logits.softmax(dim=-1)  # (draft token + 1, vocab)
        calls += 1
        new = _verify(drafted, draft_probs, target_probs, generator)
        accepted += len(new) - 1
        text += new
    output_ids = text[len(prompt) :]
    end = output_ids.index(eos) if eos in output_ids else len(output_ids)
    return Speculated(output_ids[:end], calls, accepted)


def _check_one_vocabulary(target_logits, draft_logits):
    sizes = target_logits.shape[-1], draft_logits.shape[-1]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"target and draft must have one vocabulary, got {sizes[0]} and {sizes[1]} "
            "tokens"
        )


def _draft(draft, text, num_draft_tokens, device, generator):
    """Let the draft model draw tokens; return them with their distributions."""
    drafted, draft_probs = [], []
    for _ in range(num_draft_tokens):
        tokens = torch.tensor([text + drafted], device=device)
        draft_probs.append(draft(tokens)[0, -1].softmax(dim=-1))  # (vocab,)
        drafted.append(_draw(draft_probs[-1], generator))
    return drafted, draft_probs


def _verify(drafted, draft_probs, target_probs, generator):
    """Return the draft tokens that are accepted, and the one drawn after them."""
    for i, (token, probs) in enumerate(zip(drafted, draft_probs, strict=True)):
        threshold = torch.rand((), generator=generator, device=probs.device)
        if threshold * probs[token] >= target_probs[i, token]:
            residual = (target_probs[i] - probs).clamp(min=0)
            if residual.sum() == 0:  # alike but for rounding
                residual = target_probs[i]
            return [*drafted[:i], _draw(residual, generator)]
    return [*drafted, _draw(target_probs[-1], generator)]


def _draw(probs, generator):
    """Draw a token by ``probs`` (vocab,), which need not sum to 1."""
    return torch.multinomial(probs, 1, generator=generator).item()


def _generator(seed, device):
    return None if seed is None else torch.Generator(device).manual_seed(seed)
