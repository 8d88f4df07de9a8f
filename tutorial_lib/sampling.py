"""Sampling: draw the next word instead of taking the likeliest.

First functions that change logits (..., vocab) before the draw, each of which returns
new logits and leaves its own as they are. Then drawing whole sentences, and drawing
them with fewer calls of a large model, by the drafts of a small one.

A model is what ``decoding`` describes: ``start`` and ``step``. Nothing here knows a
model class.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from tutorial_lib.data.text import BOS, EOS, check_counts
from tutorial_lib.decoding import generate


def temper(logits, temperature):
    """Divide ``logits`` by a ``temperature``: below 1 the likely grow likelier.

    Raises ValueError for a temperature that is not above 0.
    """
    if not temperature > 0:
        raise ValueError(
            f"temperature must be above 0, got {temperature}: for the likeliest word "
            "each time use greedy, or top_k(logits, 1)"
        )
    return logits / temperature


def top_k(logits, k):
    """Keep the ``k`` likeliest words, and forbid the others: Fan et al. (2018).

    Words that are as likely as the last one kept are kept, too. Raises ValueError for
    a k below 1; one above the vocabulary keeps all.
    """
    check_counts(k=k)
    least = logits.topk(min(k, logits.shape[-1])).values[..., -1:]  # (..., 1)
    return logits.masked_fill(logits < least, -torch.inf)


def top_p(logits, p):
    """Keep the fewest words that have a share ``p`` of the probability together.

    They are the likeliest, and the last of them is the one with which the sum reaches
    p, up to rounding: Holtzman et al. (2020), the nucleus. Raises ValueError unless
    0 < p <= 1.
    """
    _check_share("top_p", p)
    probabilities, order = logits.softmax(dim=-1).sort(descending=True, stable=True)
    before = probabilities.cumsum(dim=-1) - probabilities  # what likelier words have
    forbidden = torch.zeros_like(before, dtype=torch.bool)
    forbidden.scatter_(-1, order, (before >= p - 1e-6) & (p < 1))
    forbidden.scatter_(-1, order[..., :1], False)  # whatever rounding does to the sum
    return logits.masked_fill(forbidden, -torch.inf)


def min_p(logits, p):
    """Keep the words that are at least ``p`` times as likely as the likeliest one.

    Raises ValueError unless 0 < p <= 1. Nguyen et al. (2025).
    """
    _check_share("min_p", p)
    probabilities = logits.softmax(dim=-1)
    least = p * probabilities.amax(dim=-1, keepdim=True)
    return logits.masked_fill(probabilities < least, -torch.inf)


def sample(
    model, source, lengths, *, max_tokens, change=None, seed=None, bos=BOS, eos=EOS
):
    """Draw each next word from the model's probabilities, until ``<eos>``.

    ``change(logits)`` returns the logits (batch, vocab) to draw from, such as
    ``lambda logits: top_p(temper(logits, 0.8), 0.9)``; without it they are the model's
    own. ``seed`` makes the draws those of every other call with it. The
    log-probabilities are those that were drawn from. Otherwise as `generate`; the
    source of a `GPT` is the prompt.
    """
    generator = _generator(seed, source.device)

    def draw(chances):
        drawn = torch.multinomial(chances.exp(), 1, generator=generator)  # (batch, 1)
        return drawn.squeeze(-1)

    options = {"max_tokens": max_tokens, "change": change, "bos": bos, "eos": eos}
    return generate(model, source, lengths, draw, **options)


class Speculated(NamedTuple):
    """What `speculate` wrote, and what it took."""

    tokens: list  # without <bos> and <eos>
    calls: int  # of the large model
    kept: int  # drafted words that were accepted


@torch.no_grad()
def speculate(
    large: Callable,
    small: Callable,
    prompt,
    *,
    ahead,
    max_tokens,
    seed=None,
    eos=EOS,
):
    """Draw from a ``large`` model in fewer calls, with the drafts of a ``small`` one.

    Each model is a function of tokens (1, token) that returns logits (1, token, vocab).
    The small one draws ``ahead`` words, one call each; the large one looks at them all
    in one call. A drafted word is kept with probability min(1, large / small); the
    first that is not is drawn anew from what large has more than small. So the text
    has exactly the large model's probabilities: Leviathan et al. (2023), algorithm 1.

    ``prompt`` (token,) begins with ``<bos>``. Raises ValueError for no prompt, and for
    an ``ahead`` below 1.
    """
    check_counts(ahead=ahead)
    check_counts(max_tokens=max_tokens, least=0)
    if not len(prompt):
        raise ValueError("there is nothing to go on from: begin with <bos>")
    generator = _generator(seed, prompt.device)
    text, calls, kept = prompt.tolist(), 0, 0
    while len(text) - len(prompt) < max_tokens and eos not in text[len(prompt) :]:
        drafted, guesses = _draft(small, text, ahead, prompt.device, generator)
        tokens = torch.tensor([text + drafted], device=prompt.device)
        truths = large(tokens)[0, -ahead - 1 :].softmax(dim=-1)  # (ahead + 1, vocab)
        calls += 1
        accepted = _accept(drafted, guesses, truths, generator)
        kept += len(accepted) - 1
        text += accepted
    written = text[len(prompt) :][:max_tokens]
    ends = written.index(eos) if eos in written else len(written)
    return Speculated(written[:ends], calls, kept)


def _draft(small, text, ahead, device, generator):
    """Let the small model draw words, and return them with their distributions."""
    drafted, guesses = [], []
    for _ in range(ahead):
        tokens = torch.tensor([text + drafted], device=device)
        guesses.append(small(tokens)[0, -1].softmax(dim=-1))  # (vocab,)
        drafted.append(_draw(guesses[-1], generator))
    return drafted, guesses


def _accept(drafted, guesses, truths, generator):
    """Return the drafted words that are kept, and the one that is drawn after them."""
    for i, (word, guess) in enumerate(zip(drafted, guesses, strict=True)):
        chance = torch.rand((), generator=generator, device=guess.device)
        if chance * guess[word] >= truths[i, word]:
            left = (truths[i] - guess).clamp(min=0)  # what the drafts give too little
            left = left if left.sum() > 0 else truths[i]  # alike but for rounding
            return [*drafted[:i], _draw(left, generator)]
    return [*drafted, _draw(truths[-1], generator)]


def _draw(probabilities, generator):
    """Draw a word by ``probabilities`` (vocab,), which need not sum to 1."""
    return torch.multinomial(probabilities, 1, generator=generator).item()


def _generator(seed, device):
    return None if seed is None else torch.Generator(device).manual_seed(seed)


def _check_share(name, p):
    if not 0 < p <= 1:
        raise ValueError(
            f"{name} must be above 0 and at most 1, got {p}: for the likeliest word "
            "each time use greedy, or top_k(logits, 1)"
        )
