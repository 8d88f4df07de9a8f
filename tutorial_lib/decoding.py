"""Decoding: let a model generate, one token after the other.

A model is anything with a method ``decode_step(tokens, state)``: it takes the tokens
(batch, token) that are new since the state, and returns the logits (batch, vocab) of
what follows them and the new state. A `GPT` begins with a prompt and an empty
`KVCache`; a translator with ``<bos>`` and ``encode(source, lengths)``.

First one token a step, chosen by a function of the logits; then beam search; last,
speculative decoding, for which a model is a function from tokens to logits.
"""

from copy import copy
from numbers import Number
from typing import NamedTuple

import torch
import torch.nn.functional as F

from tutorial_lib.data.text import BOS, EOS, pad
from tutorial_lib.notebook import progress_bar
from tutorial_lib.sizes import check_counts


def _check_prompt(tokens, state=()):
    """Raise ValueError for tokens that begin no text, and for no state."""
    if tokens.ndim != 2 or not tokens.shape[1]:
        raise ValueError(
            "the prompt must be (batch, token) and have a token, as <bos>, got "
            f"{tuple(tokens.shape)}"
        )
    if state is None:
        raise ValueError("give a state to begin with, such as KVCache(), not None")


@torch.no_grad()
def generate(model, tokens, state, choose, *, max_new_tokens, eos=None, **options):
    """Append one token after the other, until each text has its ``eos``.

    ``tokens`` (batch, token) are the prompt; ``choose(logits, **options)`` turns logits
    (batch, vocab) into tokens (batch, 1). Without an ``eos`` a text has
    ``max_new_tokens``. Returns the new tokens (batch, token). Raises ValueError for an
    empty prompt.
    """
    check_counts(least=0, max_new_tokens=max_new_tokens, eos=eos)
    _check_prompt(tokens, state)
    state = copy(state)  # a cache is extended, and the caller's stays as it is
    new_tokens = tokens[:, :0]
    for _ in range(max_new_tokens):
        logits, state = model.decode_step(tokens, state)
        tokens = choose(logits, **options)  # (batch, 1)
        new_tokens = torch.cat([new_tokens, tokens], dim=1)
        if eos is not None and (new_tokens == eos).any(dim=1).all():
            break
    return new_tokens


def greedy(logits):
    """Choose the likeliest token: (batch, 1)."""
    return logits.argmax(dim=-1, keepdim=True)


def sample(logits, *, temperature=1.0, top_k=None, top_p=None):
    """Draw a token from the distribution that the sampling parameters leave."""
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    return torch.multinomial(logits.softmax(dim=-1), num_samples=1)  # (batch, 1)


def apply_temperature(logits, temperature):
    """Sharpen the distribution with a temperature below 1, flatten it above."""
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    return logits / temperature


def keep_top_k(logits, k):
    """Forbid all tokens but the k likeliest: Fan et al. (2018)."""
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"top_k must be from 1 to {logits.shape[-1]}, got {k}")
    smallest_kept = logits.topk(k).values[..., -1:]
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def keep_top_p(logits, p):
    """Keep the fewest likely tokens that have probability p: Holtzman et al. (2020)."""
    if not 0 < p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {p}")
    sorted_probs, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    mass = sorted_probs.cumsum(dim=-1)
    mass_before = F.pad(mass[..., :-1], (1, 0))  # of likelier tokens, from 0
    is_removed = mass_before >= p  # in sorted order
    is_removed = is_removed.scatter(-1, order, is_removed)  # in vocabulary order
    return logits.masked_fill(is_removed, -torch.inf)


@torch.no_grad()
def beam_search(model, tokens, state, *, num_beams, max_new_tokens, eos=EOS):
    """Keep the ``num_beams`` likeliest beginnings of one text at every step.

    ``tokens`` are (1, token). Returns the new tokens, as a list that ends with ``eos``,
    and their log-probability: those of the likeliest text that ended, and only if none
    did, of the likeliest that ``max_new_tokens`` cut off. Raises ValueError for several
    texts and for an empty prompt.
    """
    _check_prompt(tokens, state)
    if len(tokens) != 1:
        raise ValueError(f"beam search takes one text, got {len(tokens)}")
    check_counts(num_beams=num_beams)
    check_counts(least=0, max_new_tokens=max_new_tokens, eos=eos)
    eos = -1 if eos is None else eos  # no token
    beams = torch.zeros(num_beams, dtype=torch.long, device=tokens.device)
    tokens = tokens[beams]  # (beam, token)
    state = select(state, beams)
    texts = tokens[:, :0]
    log_probs = torch.full((num_beams,), -torch.inf, device=tokens.device)
    log_probs[0] = 0.0  # all beams begin alike: only the first may branch
    best_text = []
    best_log_prob = -torch.inf
    for _ in range(max_new_tokens):
        logits, state = model.decode_step(tokens, state)
        scores = log_probs[:, None] + logits.log_softmax(dim=-1)  # (beam, vocab)
        log_probs, index = scores.flatten().topk(num_beams)
        beams = index // scores.shape[1]
        tokens = (index % scores.shape[1])[:, None]  # (beam, 1)
        texts = torch.cat([texts[beams], tokens], dim=1)
        state = select(state, beams)
        for text, log_prob in zip(texts.tolist(), log_probs.tolist(), strict=True):
            if text[-1] == eos and log_prob > best_log_prob:
                best_text = text
                best_log_prob = log_prob
        log_probs = log_probs.masked_fill(tokens[:, 0] == eos, -torch.inf)
        if log_probs.max() <= best_log_prob:  # and a longer text is less likely still
            break
    if best_log_prob == -torch.inf:  # no text has ended
        best_text = texts[log_probs.argmax()].tolist()
        best_log_prob = log_probs.max().item()
    return best_text, best_log_prob


def select(state, rows):
    """Pick ``rows`` of the batch from a state, the first axis of every tensor in it.

    Numbers and strings in it stay as they are. Raises ValueError for what is neither
    they nor a dictionary, a list or a tuple of them.
    """
    if isinstance(state, torch.Tensor):
        return state[rows]
    if isinstance(state, dict):
        return type(state)({key: select(part, rows) for key, part in state.items()})
    if isinstance(state, (list, tuple)):
        parts = [select(part, rows) for part in state]
        is_named = hasattr(state, "_fields")
        return type(state)(*parts) if is_named else type(state)(parts)
    if state is None or isinstance(state, (Number, str)):
        return state
    raise ValueError(f"no rows can be picked from a {type(state).__name__} in a state")


def translate(model, sentences, data, *, num_beams=1, batch_size=250):
    """Translate ``sentences``, lists of words, into lists of words.

    ``data`` has the ``source_vocabulary`` and ``target_vocabulary``. More than one beam
    is beam search, a sentence at a time; else ``batch_size`` sentences are decoded
    greedily at once. No translation exceeds twice its source and 10 words.
    """
    check_counts(num_beams=num_beams, batch_size=batch_size)
    if num_beams > 1:
        batch_size = 1
    device = next(model.parameters()).device
    translations = []
    with progress_bar(len(sentences), unit="sentence") as bar:
        for i in range(0, len(sentences), batch_size):
            batch = sentences[i : i + batch_size]
            source, lengths = pad(batch, data.source_vocabulary)
            with torch.no_grad():
                state = model.encode(source.to(device), lengths.to(device))
            tokens = torch.full((len(batch), 1), BOS, device=device)
            longest = 2 * source.shape[1] + 10
            if num_beams > 1:
                text, _ = beam_search(
                    model, tokens, state, num_beams=num_beams, max_new_tokens=longest
                )
                rows = [text]
            else:
                rows = generate(
                    model, tokens, state, greedy, max_new_tokens=longest, eos=EOS
                )
            for row, length in zip(rows, lengths.tolist(), strict=True):
                row = row[: 2 * length + 10]  # whatever else is in its batch
                translations.append(data.target_vocabulary.decode(row))
            bar.update(len(batch))
    return translations


def verify(token, target_probs, draft_probs):
    """Accept a token that was drawn from draft_probs, or draw another.

    Returns the token that comes out, and whether the draft token was accepted.
    """
    accept_prob = target_probs[token] / draft_probs[token]
    if torch.rand(()) < accept_prob:  # above 1: always
        return token, True
    residual = (target_probs - draft_probs).clamp(min=0)  # (vocab,)
    return residual.multinomial(1).item(), False  # multinomial normalizes it


@torch.no_grad()
def speculative_step(target, draft, text, num_draft_tokens):
    """Return the draft tokens, and those that one pass of the target model adds."""
    drafted = []
    draft_probs = []  # one (vocab,) for each draft token
    for _ in range(num_draft_tokens):
        logits = draft(torch.tensor([text + drafted]))  # (1, token, vocab)
        probs = logits[0, -1].softmax(dim=-1)  # (vocab,)
        draft_probs.append(probs)
        drafted.append(probs.multinomial(1).item())

    logits = target(torch.tensor([text + drafted]))  # (1, token, vocab)
    logits = logits[0, -num_draft_tokens - 1 :]  # (draft + 1, vocab)
    target_probs = logits.softmax(dim=-1)

    new_tokens = []
    for i in range(num_draft_tokens):
        token, is_accepted = verify(drafted[i], target_probs[i], draft_probs[i])
        new_tokens.append(token)
        if not is_accepted:  # what was drafted after it continues another text
            return drafted, new_tokens
    last = target_probs[-1].multinomial(1).item()  # all were accepted: one more
    return drafted, [*new_tokens, last]


class Speculated(NamedTuple):
    """What `speculative_decode` generated, and what it took."""

    tokens: list  # without the prompt and <eos>
    calls: int  # of the target model
    accepted: int  # draft tokens, up to <eos>


def speculative_decode(
    target, draft, prompt, *, num_draft_tokens, max_new_tokens, eos=EOS
):
    """Draw from a ``target`` model in fewer calls, with drafts of a smaller model.

    Both are functions of tokens (1, token) that return logits (1, token, vocab);
    ``prompt`` is a list of tokens. The text has exactly the target model's
    probabilities: Leviathan et al. (2023), algorithm 1. Raises ValueError for an empty
    prompt.
    """
    tokens = torch.as_tensor(prompt)
    _check_prompt(tokens[None])
    prompt = tokens.tolist()
    check_counts(least=0, num_draft_tokens=num_draft_tokens, eos=eos)
    check_counts(least=0, max_new_tokens=max_new_tokens)
    text = []
    calls = 0
    accepted = 0
    while len(text) < max_new_tokens and eos not in text:
        count = min(num_draft_tokens, max_new_tokens - len(text) - 1)
        _, new_tokens = speculative_step(target, draft, prompt + text, count)
        text = text + new_tokens
        calls += 1
        num_kept = new_tokens.index(eos) + 1 if eos in new_tokens else len(new_tokens)
        accepted += min(num_kept, len(new_tokens) - 1)  # the last is the target's own
    if eos in text:
        text = text[: text.index(eos)]
    return Speculated(text, calls, accepted)
