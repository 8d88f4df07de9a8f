"""Exercises of chapter 4: masks and batches."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from tutorial_exercises import Exercise
from tutorial_exercises.verdict import false_alarms, first_unseen
from tutorial_exercises.watch import Watch
from tutorial_lib.attention import masked_softmax, scaled_dot_product_attention
from tutorial_lib.masks import causal_mask, padding_mask, window_mask


@Exercise("4.1", "More keys than queries", axes="batch query key")
def cached_mask(is_token, num_queries):
    """Let each of the last queries attend to the tokens up to its own position."""
    num_keys = is_token.shape[1]
    causal = causal_mask(num_keys)[num_keys - num_queries :]  # (query, key)
    return causal & is_token[:, None, :]  # (batch, query, key)


@cached_mask.oracle
def _(is_token, num_queries):
    batch, num_keys = is_token.shape
    mask = torch.zeros(batch, num_queries, num_keys, dtype=torch.bool)
    for b, i, j in (~mask).nonzero().tolist():
        mask[b, i, j] = is_token[b, j] and j <= num_keys - num_queries + i
    return mask


@cached_mask.cases
def _():
    yield "the last three of five positions", torch.ones(2, 5).bool(), 3
    yield "one query attends to all keys", torch.ones(2, 6).bool(), 1
    yield "as many queries as keys", torch.ones(2, 4).bool(), 4
    padded = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]])
    yield "nothing attends to padding", padded.bool(), 3
    # Texts padded behind the prompt, and continued: padding in the middle, or at the end
    padded = torch.tensor([[1, 1, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 1, 0]])
    yield "nothing attends to padding", padded.bool(), 3


cached_mask.hints = """
- At which positions are the queries? With six keys and two queries, at 4 and 5.
- The mask of all positions is the causal mask. Which of its rows are those of the last
  queries?
- `is_token` says something about the keys, the same for all queries: it lacks an axis.
"""

cached_mask.mistakes = """
You align the mask at the top left, as `is_causal=True` does: your queries are the first
positions. They are the last: row 0 is that of position `num_keys - num_queries`.
    [num_keys - num_queries :] → [:num_queries]
Your mask is inverted: True means that a query may attend.
    causal & is_token[:, None, :] → ~(causal & is_token[:, None, :])
You align the queries to the number of tokens. Padding takes up positions, too: the queries
stand at the last positions of the row.
    causal = causal_mask(num_keys)[num_keys - num_queries :] → last = is_token.sum(dim=1)[:, None, None] - num_queries
        causal = torch.arange(num_keys) <= last + torch.arange(num_queries)[:, None]
Queries attend to padding. Combine the causal mask with `is_token`.
    causal & is_token[:, None, :] → causal.expand(len(is_token), -1, -1)
Queries attend to later tokens. Which of the keys are not in their future?
    causal & is_token[:, None, :] → is_token[:, None, :].repeat(1, num_queries, 1)
A query may attend to itself, too: keep the diagonal.
    causal_mask(num_keys) → causal_mask(num_keys).tril(-1)
You mask the rows of queries that are padding. Mask the columns of keys that are.
    is_token[:, None, :] → is_token[:, num_keys - num_queries :, None]
The shapes do not fit. The causal mask is (query, key), and `is_token` is (batch, key):
it needs an axis for the queries.
    is_token[:, None, :] → is_token
right:
    causal_mask(num_keys)[num_keys - num_queries :] → torch.ones(num_queries, num_keys).tril(num_keys - num_queries).bool()
    [num_keys - num_queries :] → [-num_queries:]
"""


@Exercise("4.2", "An additive mask", axes="query key")
def additive_mask(mask, dtype):
    """Turn a boolean mask into one that is added to scores of this dtype."""
    fill = torch.finfo(dtype).min / 2  # half of it, so that the sum is finite
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, fill)


@additive_mask.oracle
def _(mask, dtype):
    fill = torch.finfo(dtype).min / 2
    entries = torch.zeros(mask.shape, dtype=dtype)
    for row, column in (~mask).nonzero().tolist():
        entries[row, column] = fill
    return entries


# In the last row every key is masked.
MASK = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]).bool()
DTYPES = torch.float32, torch.bfloat16, torch.float16


@additive_mask.demand("0 where a query may attend, below 0 elsewhere, in dtype")
def _(answer):
    for dtype in DTYPES:
        added = answer(MASK.clone(), dtype)
        if getattr(added, "shape", None) != MASK.shape:
            return answer.same()
        if added.dtype != dtype:
            return f"Asked for {dtype}, you returned {added.dtype}."
        if added[MASK].any() or not (added[~MASK] < 0).all():
            return "Add 0 where a query may attend to a key, else a number far below 0."


@additive_mask.demand("masked keys get a weight of exactly 0")
def _(answer):
    for dtype in DTYPES:
        mask = MASK[:2].clone()
        scores = torch.where(mask, -1000.0, 1000.0).to(dtype)
        weights = (scores + answer(mask, dtype)).softmax(dim=-1)
        if weights[~mask].any():
            return (
                "A masked key still gets a weight. Its score may be 1000, and those of "
                "the visible keys −1000: your number must outweigh that."
            )


@additive_mask.demand("no row is NaN, whatever the dtype")
def _(answer):
    for dtype in DTYPES:
        for score in (0, -1000, 1000):
            weights = (score + answer(MASK.clone(), dtype)).softmax(dim=-1)
            if not weights.isfinite().all():
                return (
                    f"In {str(dtype)[6:]}, a row in which every key is masked is NaN "
                    f"when its scores are {score}: with your mask they are all −∞."
                )


additive_mask.hints = """
- Begin with zeros of the right dtype, and fill in a number where the mask is False.
- −∞ gives NaN in a fully masked row. The most negative finite value of the dtype
  plus a negative score may be −∞ again. What lies between?
- `torch.finfo(dtype).min` is the most negative finite value of a dtype. A good part of
  it, but not all, leaves room for scores on both sides.
"""

additive_mask.mistakes = """
You multiply 0 by −∞, which is NaN. Fill in the number: `masked_fill` or `torch.where`.
    torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, fill) → (~mask).to(dtype) * -torch.inf
You mask the keys that a query MAY attend to. True means that it may: add 0 there.
    (mask.shape, dtype=dtype).masked_fill(~mask, fill) → (mask.shape, dtype=dtype).masked_fill(mask, fill)
    ~mask, fill → mask, -torch.inf
You return the mask itself, as 1 and 0. Adding 0 to a score does not mask it.
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, fill) → return mask.to(dtype)
Float16 ends at −65,504: your number becomes −∞ there, and a fully masked row becomes
NaN. Ask `torch.finfo(dtype)`.
    .zeros(mask.shape, dtype=dtype).masked_fill(~mask, fill) → .where(mask, 0.0, -1e9).to(dtype)
Float16 ends at −65,504, and refuses your number. Ask `torch.finfo(dtype)`.
    torch.finfo(dtype).min / 2 → -1e9
A fully masked row is NaN, as all its sums are −∞. Take a finite number.
    (~mask, fill) → (~mask, -torch.inf)
You add the most negative finite value of the dtype. A negative score takes the sum
below it, to −∞, and a fully masked row becomes NaN. Leave room.
    .min / 2  # → .min  #
right:
    torch.finfo(dtype).min / 2 → -1e4
    torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, fill) → (~mask).to(dtype) * fill
"""


@Exercise("4.3", "A loop becomes a batch")
def attend_in_batch(sentences):
    """Run self-attention over all sentences in one padded batch."""
    lengths = [len(x) for x in sentences]
    x = pad_sequence(sentences, batch_first=True)  # (batch, token, d_model)
    mask = padding_mask(lengths, num_keys=x.shape[1])
    outputs = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    return [o[:length] for o, length in zip(outputs, lengths, strict=True)]


@attend_in_batch.oracle
def _(sentences):
    x = torch.cat(sentences)  # all in one row
    owner = torch.tensor([b for b, x in enumerate(sentences) for _ in x])
    scores = torch.stack([x @ query for query in x]) / math.sqrt(x.shape[1])
    scores[owner[:, None] != owner] = -torch.inf
    outputs = scores.softmax(dim=1) @ x
    return list(outputs.split([len(x) for x in sentences]))


def sentences(*lengths):
    """Make sentences of these lengths, each (token, 8)."""
    return [torch.randn(length, 8) for length in lengths]


@attend_in_batch.cases
def _():
    yield "each sentence gets the output that it gets alone", sentences(3, 5, 2)
    with_zeros = sentences(3, 5, 2)
    with_zeros[1][2, 0] = 0
    with_zeros[1][4] = 0
    yield "a token whose entries are 0 is a token", with_zeros
    yield "an empty sentence does no harm", sentences(2, 0, 4)


@attend_in_batch.demand("one batch, not a loop over the sentences")
def _(answer):
    lengths = [3, 1, 2, 3] * 10  # 90 tokens, but at most 9 weights in a sentence
    with Watch() as seen:
        answer(sentences(*lengths))
    # PyTorch's own attention shows its outputs only: they count in place of weights.
    names = "softmax", "exp", "scaled_dot_product_attention"
    if max(seen.sizes.get(name, 0) for name in names) < sum(lengths):
        return (
            "The outputs are right, but no softmax covered all sentences at once. Pad "
            "them into one batch, and call attention once, with a mask."
        )


attend_in_batch.hints = """
- `pad_sequence` makes the batch. What does it lose that you need later?
- Which keys must no query attend to? The chapter has a function for that mask.
- The outputs of the batch have rows that belong to no sentence.
"""

attend_in_batch.mistakes = """
The lengths do not fit the padded tensor. `pad_sequence` needs `batch_first=True`.
    sentences, batch_first=True → sentences
Return a list with one tensor of outputs for each sentence.
    [o[:length] for o, length in zip(outputs, lengths, strict=True)] → outputs
You return the outputs of the padding, too. Cut each output to its sentence's length.
    [:length] →
Tokens attend to padding. Mask its columns, by a mask (batch, 1, key), not its rows.
    (x, x, x, attn_mask=mask) → (x, x, x)
Your mask is causal. Here every token may attend to all tokens of its sentence.
    (x, x, x, attn_mask=mask) → (x, x, x, attn_mask=mask & causal_mask(x.shape[1]))
The scores are not divided by √d_model, which is d_k here.
    (x, x, x, attn_mask=mask) → (x * x.shape[-1] ** 0.5, x, x, attn_mask=mask)
Your softmax runs over the queries. A token's weights sum to 1 over the keys: dim=-1.
    outputs = F.scaled_dot_product_attention(x, x, x, attn_mask=mask) → outputs = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(~mask, -1e9).softmax(dim=-2) @ x
Your softmax runs over the sentences. A token's weights sum to 1 over the keys: dim=-1.
    outputs = F.scaled_dot_product_attention(x, x, x, attn_mask=mask) → outputs = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(~mask, -1e9).softmax(dim=0) @ x
You mask a token that has a 0 in it. Only the lengths tell tokens from padding.
    padding_mask(lengths, num_keys=x.shape[1]) → (x != 0).all(dim=-1)[:, None]
You mask a token whose entries are all 0. Only the lengths tell tokens from padding.
    padding_mask(lengths, num_keys=x.shape[1]) → (x.abs().sum(dim=-1) > 0)[:, None]
Your mask is inverted: it masks the tokens and not the padding.
    (x, x, x, attn_mask=mask) → (x, x, x, attn_mask=~mask)
You put all sentences into one row without a mask, and they attend to one another.
    [o[:length] for o, length in zip(outputs, lengths, strict=True)] → list(F.scaled_dot_product_attention(*[torch.cat(sentences)[None]] * 3)[0].split(lengths))
right:
    outputs = F.scaled_dot_product_attention(x, x, x, attn_mask=mask) → outputs, _ = scaled_dot_product_attention(x, x, x, mask)
    outputs = F.scaled_dot_product_attention(x, x, x, attn_mask=mask) → powers = (x @ x.mT / x.shape[-1] ** 0.5).exp() * mask
        outputs = powers / powers.sum(dim=-1, keepdim=True) @ x
"""


@Exercise("4.4", "A test that finds the leak", seconds=20)
def leaks(attention):
    """Tell whether attention(x, training) lets an output depend on a later token."""
    for training in (True, False):
        for tokens in (2, 6, 9):
            x = torch.randn(2, tokens, 3)
            for t in range(1, tokens):
                changed = x.clone()
                changed[:, t:] = 100 * torch.randn(2, tokens - t, 3)  # small leaks show
                torch.manual_seed(t)  # dropout draws the same numbers in both calls
                before = attention(x, training)[:, :t]
                torch.manual_seed(t)
                after = attention(changed, training)[:, :t]
                if not torch.allclose(before, after, atol=1e-4, equal_nan=True):
                    return True
    return False


@leaks.oracle
def _(attention):
    # The gradient of each output with respect to each later token must be exactly 0.
    for training in (True, False):
        attend_once = partial(attention, training=training)
        x = torch.randn(2, 6, 3)
        gradients = torch.autograd.functional.jacobian(attend_once, x)
        if gradients.abs().sum(dim=(0, 2, 3, 5)).triu(diagonal=1).any():
            return True
    return False


ADVICE = {  # what brings a leak to light
    "the mask reaches one position too far": "Only the next token leaks: compare all "
    "outputs before the change, the last one as well.",
    "the mask is used only in training": "Try training=False as well.",
    "the mask is left out in training": "Try training=True as well.",
    "the mask comes after the softmax": "Its weights on later tokens are 0, but they "
    "count in the softmax's denominator: compare the outputs themselves.",
    "the mean of all tokens is subtracted first": "Later tokens come in before the "
    "mask. Compare all outputs: the first one alone does not show it.",
    "the first two tokens attend to each other": "Token 0 attends to token 1, and no "
    "other token attends to a later one. Change the tokens from every position on.",
    "the mask ends after four tokens": "Use longer sentences, and change the last "
    "tokens as well.",
    "only the first sentence of a batch is masked": "Use a batch of at least two "
    "sentences, change both and compare both.",
    "the weights are divided by their sum after the mask": "Its leak shows as NaN: large "
    "later tokens leave 0/0. Compare by `torch.allclose`, for which NaN is a change.",
    "masked scores are lowered, but not enough": "It lowers masked scores by 20. Make "
    "the new tokens 100 times as large, which makes up for that.",
}


def attention_with(fault):
    """Return causal self-attention, computed step by step, with a fault or None."""

    def attend(x, training):
        mask = causal_mask(x.shape[-2])
        scores = x @ x.mT / x.shape[-1] ** 0.5
        match fault:
            case "the mask reaches one position too far":
                mask = torch.ones_like(mask).tril(diagonal=1)
            case "the mask is used only in training":
                mask = mask | (not training)
            case "the mask is left out in training":
                mask = mask | bool(training)
            case "the mask comes after the softmax":
                return scores.softmax(dim=-1) * mask @ x
            case "the mean of all tokens is subtracted first":
                centered = x - x.mean(dim=-2, keepdim=True)
                return scaled_dot_product_attention(centered, centered, x, mask)[0]
            case "the first two tokens attend to each other":
                mask = mask | (torch.arange(len(mask)) < 2)
            case "the mask ends after four tokens":
                mask[4:] = True
            case "only the first sentence of a batch is masked":
                mask = mask.repeat(*x.shape[:-2], 1, 1)
                mask[1:] = True
            case "masked scores are lowered, but not enough":
                return (scores - 20.0 * ~mask).softmax(dim=-1) @ x
        return masked_softmax(scores, mask) @ x

    return attend


def divided_by_sum(x, training):
    weights = (x @ x.mT / x.shape[-1] ** 0.5).softmax(dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True) @ x


def fused(x, training):
    dropout = 0.5 * training
    return F.scaled_dot_product_attention(x, x, x, dropout_p=dropout, is_causal=True)


def windowed(x, training):
    mask = causal_mask(x.shape[-2]) & window_mask(x.shape[-2], 2)
    return scaled_dot_product_attention(x, x, x, mask)[0]


def centered(x, training):
    x = x - x.cumsum(dim=-2) / torch.arange(1, x.shape[-2] + 1)[:, None]
    return scaled_dot_product_attention(x, x, x, causal_mask(x.shape[-2]))[0]


CAUSAL = {
    "computed step by step": attention_with(None),
    "computed by PyTorch's own function, with dropout in training": fused,
    "within a window of three tokens": windowed,
    "after the mean of the tokens so far is subtracted from each": centered,
}
LEAKY = {fault: attention_with(fault) for fault in ADVICE}
LEAKY["the weights are divided by their sum after the mask"] = divided_by_sum


@leaks.demand("returns False for four attentions that are causal")
def _(answer):
    alarms, inverted = false_alarms(answer, CAUSAL, LEAKY)
    if inverted:
        return (
            "You return True for a causal attention and False for most of those that "
            "leak. It is the other way round: True means that there is a leak."
        )
    if alarms:
        return (
            "Your test finds a leak where there is none: in causal attention "
            f"{alarms[0]}. Change later tokens only, seed each call alike, and compare "
            "the outputs at earlier positions by `torch.allclose`."
        )


@leaks.demand("finds ten leaks")
def _(answer):
    return first_unseen(answer, CAUSAL, LEAKY, ADVICE, "Leaks")


leaks.hints = """
- Make x, call `attention`; replace all tokens from position t on, call it again; compare
  the outputs before t.
- Do that for every t, for training True and False, and with a batch of two.
- New tokens 100 times as large bring small leaks to light; outputs that should be
  equal may differ in the sixth digit (`torch.allclose`).
"""

leaks.mistakes = """
`!=` compares two tensors entry by entry. `torch.allclose` gives one True or False.
    not torch.allclose(before, after, atol=1e-4, equal_nan=True) → before != after
`attention` takes two arguments, x and training.
    before = attention(x, training)[:, :t] → before = attention(x)[:, :t]
right:
    not torch.allclose(before, after, atol=1e-4, equal_nan=True) → not (after - before).abs().max() < 1e-4
"""
