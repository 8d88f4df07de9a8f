"""Exercises of chapter 4: masks and batches."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.overrides import TorchFunctionMode

from tutorial_exercises import Exercise
from tutorial_exercises.exercise import Wrong
from tutorial_lib.attention import attention_weights, scaled_dot_product_attention
from tutorial_lib.masks import causal_mask, padding_mask, window_mask


@Exercise("4.1", "Several sentences in one row", axes="batch query key")
def packed_mask(sentence):
    """Let each token attend to itself and to the earlier tokens of its sentence."""
    same = sentence[:, :, None] == sentence[:, None, :]  # (batch, query, key)
    is_word = (sentence > 0)[:, None, :]  # (batch, 1, key)
    return same & is_word & causal_mask(sentence.shape[1])


@packed_mask.oracle
def _(sentence):
    batch, tokens = sentence.shape
    mask = torch.zeros(batch, tokens, tokens, dtype=torch.bool)
    for b, i in torch.cartesian_prod(torch.arange(batch), torch.arange(tokens)):
        for j in range(tokens):
            same = sentence[b, i] == sentence[b, j]
            mask[b, i, j] = same and j <= i and sentence[b, j] > 0
    return mask


@packed_mask.cases
def _():
    label = "two sentences, kept apart, without the future"
    yield label, torch.tensor([[1, 1, 2, 2, 2], [1, 2, 3, 4, 4]])
    label = "padding attends to nothing, and nothing attends to it"
    yield label, torch.tensor([[1, 1, 1, 2, 2, 0, 0], [0, 0, 3, 3, 1, 1, 0]])


packed_mask.hints = """
- A query may attend to a key on three conditions: the key is in the same sentence, it
  is not later, and it is not padding.
- `sentence[:, :, None] == sentence[:, None, :]` compares every query with every key:
  (batch, query, key).
- Combine that with `causal_mask(sentence.shape[1])` by `&`. The third condition,
  `sentence > 0`, still lacks an axis for the queries.
"""

packed_mask.mistakes = """
Your mask is inverted: True means that a query may attend to a key.
    return same & is_word & causal_mask(sentence.shape[1]) → return ~(same & is_word & causal_mask(sentence.shape[1]))
Padding attends to padding: all of it has the number 0, so it counts as one sentence.
Require `sentence > 0` as well.
    return same & is_word & causal_mask(sentence.shape[1]) → return same & causal_mask(sentence.shape[1])
Padding attends to itself. It must attend to nothing: its rows are all False.
    return same & is_word & causal_mask(sentence.shape[1]) → mask = same & is_word & causal_mask(sentence.shape[1])
        return mask | torch.eye(sentence.shape[1]).bool()
The sentences are kept apart, but a token attends to later tokens of its sentence. The
mask has to be causal, too.
    is_word & causal_mask(sentence.shape[1]) → is_word
    same & is_word & causal_mask(sentence.shape[1]) → same
A token attends to the earlier sentences of its row. Compare the sentence numbers of
query and key.
    return same & is_word → return is_word
    same & is_word → (same | True)
Your tokens attend to later tokens in place of earlier ones: queries and keys are
swapped in the causal mask.
    (sentence.shape[1]) → ….T
A token may attend to itself, too: keep the diagonal.
    (sentence.shape[1]) → ….tril(-1)
The shapes do not fit. The mask is (batch, query, key): `sentence[:, :, None] ==
sentence[:, None, :]` has these axes, and `sentence > 0`, (batch, key), needs one for
the queries.
    (sentence > 0)[:, None, :] → (sentence > 0)
    sentence[:, :, None] == sentence[:, None, :] → sentence[:, None] == sentence
You take the first sentence for padding. Its number is 1, and only 0 is padding.
    is_word = (sentence > 0)[:, None, :] → is_word = (sentence > 1)[:, None, :]
right:
    sentence > 0 → sentence != 0
    (sentence > 0)[:, None, :] → sentence[:, :, None].bool()
    is_word & causal_mask(sentence.shape[1]) → is_word & torch.ones_like(same).tril()
"""


@Exercise("4.2", "A mask to add", axes="query key")
def additive_mask(mask, dtype):
    """Turn a boolean mask into one that is added to scores of this dtype."""
    lowest = torch.finfo(dtype).min / 2  # half of it, so that the sum stays a number
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)


@additive_mask.oracle
def _(mask, dtype):
    added = torch.zeros(mask.shape, dtype=dtype)
    for i, j in (~mask).nonzero().tolist():
        added[i, j] = torch.finfo(dtype).min / 2
    return added


VISIBLE = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [1, 0, 1, 1]]).bool()
EMPTY_ROW = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]).bool()
DTYPES = torch.float32, torch.bfloat16, torch.float16


@additive_mask.demand(
    "0 where a query may attend, below 0 elsewhere, of the right dtype"
)
def _(answer):
    for dtype in DTYPES:
        added = answer(EMPTY_ROW.clone(), dtype)
        if getattr(added, "shape", None) != EMPTY_ROW.shape:
            return answer.same()
        if added.dtype != dtype:
            return f"Asked for {dtype}, you returned {added.dtype}."
        if added[EMPTY_ROW].any():
            return "Where a query may attend to a key, exactly 0 must be added."
        if not (added[~EMPTY_ROW] < 0).all():
            return (
                "Where a query may not attend to a key, a number far below 0 must be "
                "added, also in a row in which every key is masked."
            )


@additive_mask.demand("masked keys get a weight of exactly 0")
def _(answer):
    for dtype in DTYPES:
        scores = torch.where(VISIBLE, -1000.0, 1000.0).to(dtype)
        weights = (scores + answer(VISIBLE.clone(), dtype)).softmax(dim=-1)
        if weights[~VISIBLE].any():
            return (
                "A masked key still gets a weight. Its score may be 1000, and those of "
                "the visible keys −1000: your number must outweigh that."
            )


@additive_mask.demand("no row is NaN, whatever the dtype")
def _(answer):
    for dtype in DTYPES:
        for score in (0, -1000, 1000):
            scores = torch.full(EMPTY_ROW.shape, score, dtype=dtype)
            weights = (scores + answer(EMPTY_ROW.clone(), dtype)).softmax(dim=-1)
            if not weights.isfinite().all():
                return (
                    f"In {str(dtype)[6:]}, a row in which every key is masked is NaN "
                    f"when its scores are {score}: with your mask added they are all "
                    "−∞, and the softmax of that is NaN."
                )


additive_mask.hints = """
- Begin with zeros of the right dtype, and fill in a number where the mask is False.
- −∞ gives NaN in a row in which every key is masked. The lowest number of the dtype
  plus a negative score may be −∞ again. What lies between?
- `torch.finfo(dtype)` knows the lowest number of a dtype. A good part of it, but not
  all, leaves room for scores on both sides.
"""

additive_mask.mistakes = """
Where a query may attend to a key you multiply 0 by −∞, and that is NaN. Fill in the
number instead: `masked_fill` or `torch.where`.
    torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest) → (~mask).to(dtype) * -torch.inf
    torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest) → (1 - mask.to(dtype)) * -torch.inf
You lower the scores of the keys that a query MAY attend to. True means that it may: add
0 there.
    (mask.shape, dtype=dtype).masked_fill(~mask, lowest) → (mask.shape, dtype=dtype).masked_fill(mask, lowest)
    ~mask, lowest → mask, -torch.inf
You return the mask itself, as 1 and 0. Adding 0 to a score does not mask it.
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest) → return mask.to(dtype)
Your number is too low for float16, whose lowest is −65,504: it becomes −∞ there, and a
row in which every key is masked becomes NaN. Ask `torch.finfo(dtype)`.
    .zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest) → .where(mask, 0.0, -1e9).to(dtype)
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest) → return (-1e6 * ~mask).to(dtype)
Your number is too low for float16, whose lowest is −65,504. Ask `torch.finfo(dtype)`.
    torch.finfo(dtype).min / 2 → -1e9
    torch.finfo(dtype).min / 2 → torch.finfo(torch.float32).min / 2
−∞ masks a key, but in a row in which every key is masked all sums are −∞, and the
softmax of that is NaN. Use a low number that is finite.
    (~mask, lowest) → (~mask, -torch.inf)
You add the very lowest number of the dtype. A negative score takes the sum below it, to
−∞, and a row in which every key is masked becomes NaN. Leave room.
    .min / 2  # → .min  #
right:
    torch.finfo(dtype).min / 2 → -1e4
    torch.finfo(dtype).min / 2 → -0.9 * torch.finfo(dtype).max
    torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest) → (~mask).to(dtype) * lowest
"""


@Exercise("4.3", "A loop becomes a batch")
def attend_in_batch(sentences):
    """Run self-attention over all sentences in one padded batch."""
    lengths = [len(x) for x in sentences]
    x = pad_sequence(sentences, batch_first=True)  # (batch, token, d_model)
    mask = padding_mask(lengths, keys=x.shape[1])
    outputs, _ = scaled_dot_product_attention(x, x, x, mask)
    return [o[:length] for o, length in zip(outputs, lengths, strict=True)]


@attend_in_batch.oracle
def _(sentences):
    tokens = torch.cat(sentences)  # all in one row
    owner = [b for b, x in enumerate(sentences) for _ in x]
    scores = torch.full((len(tokens), len(tokens)), -torch.inf)
    for i, query in enumerate(tokens):
        for j, key in enumerate(tokens):
            if owner[i] == owner[j]:
                scores[i, j] = sum(query * key) / math.sqrt(len(key))
    outputs = scores.softmax(dim=1) @ tokens
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


class LargestWeights(TorchFunctionMode):
    """Notes the most weights that were made at once.

    PyTorch's own attention shows its outputs only: they count in place of its weights.
    """

    entries = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function and look at the size of its result."""
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name in ("softmax", "exp", "scaled_dot_product_attention"):
            self.entries = max(self.entries, result.numel())
        return result


@attend_in_batch.demand("one batch, not a loop over the sentences")
def _(answer):
    lengths = [3, 1, 2, 3] * 10  # 90 tokens, but at most 9 weights in a sentence
    with LargestWeights() as largest:
        answer(sentences(*lengths))
    if largest.entries < sum(lengths):
        return (
            "The outputs are right, but no softmax covered the tokens of all sentences "
            "at once. Do you call attention for one sentence after the other? Pad them "
            "into one (batch, token, d_model) tensor, and call it once, with a mask."
        )


attend_in_batch.hints = """
- `pad_sequence(sentences, batch_first=True)` makes the batch; keep the lengths.
- Mask the padding for every query: `padding_mask(lengths, keys=x.shape[1])`.
- Cut each output to its length: `[o[:n] for o, n in zip(outputs, lengths)]`.
"""

attend_in_batch.mistakes = """
`scaled_dot_product_attention` returns outputs AND weights, and you loop over these two.
Keep the first: `outputs, _ = …`.
    outputs, lengths, strict=True → (outputs, _), lengths, strict=False
The lengths do not fit your padded tensor. Is the batch its first axis? `pad_sequence`
puts it second unless it is told `batch_first=True`.
    sentences, batch_first=True → sentences
    sentences, batch_first=True → sentences
    and keys=x.shape[1] → keys=max(lengths)
Return a list with one tensor of outputs for each sentence.
    [o[:length] for o, length in zip(outputs, lengths, strict=True)] → outputs
You return the outputs of the padding, too. Cut each output to the length of its
sentence.
    [:length] →
The tokens of the shorter sentences attend to padding. Mask its columns, with a mask
(batch, 1, key): a mask (batch, query, 1) would mask rows.
    (x, x, x, mask) → (x, x, x)
    (x, x, x, mask) → (x, x, x, mask.mT)
Your tokens attend to earlier tokens only. Here every token may attend to all tokens of
its sentence.
    (x, x, x, mask) → (x, x, x, mask, causal=True)
The scores are not divided by √d_model, which is d_k here.
    outputs, _ = scaled_dot_product_attention(x, x, x, mask) → outputs, _ = scaled_dot_product_attention(x * x.shape[-1] ** 0.5, x, x, mask)
Your softmax runs over the queries. The attention weights of each token sum to 1 over
the KEYS, which are the last axis.
    outputs, _ = scaled_dot_product_attention(x, x, x, mask) → scores = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(~mask, -1e9)
        outputs = scores.softmax(dim=-2) @ x
Your softmax runs over the sentences of the batch. The attention weights of each token
sum to 1 over the KEYS, which are the last axis.
    outputs, _ = scaled_dot_product_attention(x, x, x, mask) → scores = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(~mask, -1e9)
        outputs = scores.softmax(dim=0) @ x
You take every 0 for padding, and mask a token that has a 0 in it. Only the lengths tell
tokens from padding.
    padding_mask(lengths, keys=x.shape[1]) → (x != 0).all(dim=-1)[:, None]
You take zeros for padding, and mask a token whose entries are all 0. Only the lengths
tell tokens from padding.
    padding_mask(lengths, keys=x.shape[1]) → (x.abs().sum(dim=-1) > 0)[:, None]
Your mask is inverted: it masks the tokens and not the padding.
    (x, x, x, mask) → (x, x, x, ~mask)
You put all sentences into one row, where they attend to one another. Give each a row of
its own, or keep them apart by a mask.
    return [o[:length] for o, length in zip(outputs, lengths, strict=True)] → x = torch.cat(sentences)
        outputs, _ = scaled_dot_product_attention(x, x, x)
        return list(outputs.split(lengths))
right:
    padding_mask(lengths, keys=x.shape[1]) → (torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None])[:, None]
    outputs, _ = scaled_dot_product_attention → outputs = torch.nn.functional.scaled_dot_product_attention
    outputs, _ = scaled_dot_product_attention(x, x, x, mask) → powers = (x @ x.mT / x.shape[-1] ** 0.5).exp() * mask
        outputs = powers / powers.sum(dim=-1, keepdim=True) @ x
    x = pad_sequence(sentences, batch_first=True)  # (batch, token, d_model) → x = torch.cat(sentences)  # one row, kept apart by a mask
        number = torch.arange(len(lengths)).repeat_interleave(
            torch.tensor(lengths)
        )
        mask = number[:, None] == number
        outputs, _ = scaled_dot_product_attention(x, x, x, mask)
        return list(outputs.split(lengths))
"""


@Exercise("4.4", "A test that finds the leak", seconds=20)
def leaks(attend):
    """Tell whether attend(x, training) lets an output depend on a later token."""
    for training in (True, False):
        x = torch.randn(2, 6, 3)
        before = attend(x, training)
        for t in range(1, 6):
            changed = x.clone()
            # Another future, and a large one: it brings small leaks to light.
            changed[:, t:] = 100 * torch.randn(2, 6 - t, 3)
            after = attend(changed, training)
            pasts = after[:, :t], before[:, :t]
            if not torch.allclose(*pasts, atol=1e-4):
                return True
    return False


@leaks.oracle
def _(attend):
    # The gradient of each output with respect to each later token must be exactly 0.
    for training in (True, False):
        x = torch.randn(2, 6, 3)
        attend_once = partial(attend, training=training)
        gradients = torch.autograd.functional.jacobian(attend_once, x)
        if gradients.abs().sum(dim=(0, 2, 3, 5)).triu(diagonal=1).any():
            return True
    return False


CAUSAL, LEAKY = {}, {}  # attentions by their kind; (an attention, advice) by its fault


def causal(kind):
    """Add the decorated function to the attentions that are causal."""

    def add(attend):
        attend.__name__ = "a causal attention"  # as messages call it
        CAUSAL[kind] = attend

    return add


def leaky(fault, advice):
    """Add the decorated function to the attentions that leak."""

    def add(attend):
        attend.__name__ = "an attention that leaks"
        LEAKY[fault] = attend, advice

    return add


def attend_to(x, mask):
    """Return the outputs of self-attention under a mask."""
    return scaled_dot_product_attention(x, x, x, mask)[0]


@causal("computed step by step")
def _(x, training):
    return scaled_dot_product_attention(x, x, x, causal=True)[0]


@causal("computed by PyTorch's own function")
def _(x, training):
    return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@causal("within a window of three tokens")
def _(x, training):
    tokens = x.shape[-2]
    return attend_to(x, causal_mask(tokens) & window_mask(tokens, 2))


@causal("after the mean of the tokens so far is subtracted from each")
def _(x, training):
    count = torch.arange(1, x.shape[-2] + 1)[:, None]
    x = x - x.cumsum(dim=-2) / count
    return scaled_dot_product_attention(x, x, x, causal=True)[0]


@leaky(
    "the mask reaches one position too far",
    "Only the next token leaks into an output: change the tokens from a position on, "
    "and compare all outputs before it, the last one as well.",
)
def _(x, training):
    tokens = x.shape[-2]
    return attend_to(x, torch.ones(tokens, tokens).tril(diagonal=1).bool())


@leaky(
    "the mask is used only in training",
    "It is causal while training is True. Try False as well.",
)
def _(x, training):
    return scaled_dot_product_attention(x, x, x, causal=training)[0]


@leaky(
    "the mask is left out in training",
    "It is causal while training is False. Try True as well.",
)
def _(x, training):
    return scaled_dot_product_attention(x, x, x, causal=not training)[0]


@leaky(
    "the mask comes after the softmax",
    "Its weights on later tokens are 0, but the sum in the softmax's denominator "
    "counts them: compare the outputs themselves.",
)
def _(x, training):
    return attention_weights(x, x) * causal_mask(x.shape[-2]) @ x


@leaky(
    "the mean of all tokens is subtracted first",
    "Its mask is right; later tokens come in before it. Compare all outputs before the "
    "change: the first one alone, which attends only to itself, does not show it.",
)
def _(x, training):
    centered = x - x.mean(dim=-2, keepdim=True)
    return scaled_dot_product_attention(centered, centered, x, causal=True)[0]


@leaky(
    "the first two tokens attend to each other",
    "Token 0 attends to token 1, and no other token attends to a later one. Change the "
    "tokens from every position on, one position after the other.",
)
def _(x, training):
    tokens = x.shape[-2]
    return attend_to(x, causal_mask(tokens) | (torch.arange(tokens) < 2))


@leaky(
    "the mask ends after four tokens",
    "Its mask was made for sentences of four tokens; after them nothing is masked. Use "
    "longer sentences, and change the last tokens as well.",
)
def _(x, training):
    mask = causal_mask(x.shape[-2])
    mask[4:] = True
    return attend_to(x, mask)


@leaky(
    "only the first sentence of a batch is masked",
    "Use a batch of at least two sentences, change both and compare both.",
)
def _(x, training):
    mask = causal_mask(x.shape[-2]).repeat(*x.shape[:-2], 1, 1)
    mask[1:] = True
    return attend_to(x, mask)


@leaky(
    "masked scores are lowered, but not enough",
    "It lowers masked scores by 20, which a large score makes up for. Make the new "
    "tokens 100 times as large, or test whether gradients are exactly 0.",
)
def _(x, training):
    scores = x @ x.mT / x.shape[-1] ** 0.5
    return (scores - 20.0 * ~causal_mask(x.shape[-2])).softmax(dim=-1) @ x


def verdict(answer, attend):
    """Return the answer's True or False; else, as a text, what is wrong with it."""
    try:
        found = answer(attend)
    except Wrong:
        if "AssertionError" not in str(answer.error):
            raise
        return (
            "An assertion fails in your test, which ends it. Return the verdict "
            "instead: True if there is a leak, else False."
        )
    return bool(found) if found in (True, False) else "Return True or False."


@leaks.demand("returns False for four attentions that are causal")
def _(answer):
    for kind, attend in CAUSAL.items():
        found = verdict(answer, attend)
        if found:
            return false_alarm(answer, kind) if found is True else found


def false_alarm(answer, kind):
    """Return what to say of an answer that finds a leak in a causal attention."""
    missed = [verdict(answer, attend) is False for attend, _ in LEAKY.values()]
    if sum(missed) > len(missed) / 2:
        return (
            "You return True for a causal attention and False for most of those that "
            "leak. It is the other way round: True means that there is a leak."
        )
    return (
        f"Your test finds a leak where there is none: in causal attention {kind}. The "
        "usual causes: you compare the output at the position that you changed, which "
        "may change, too; you change earlier tokens, not later ones; you compare with "
        "an attention of your own, not the outputs before and after; or you compare "
        "exactly, where the sixth digit may differ."
    )


@leaks.demand("finds nine leaks")
def _(answer):
    found = []
    for fault, (attend, advice) in LEAKY.items():
        seen = verdict(answer, attend)
        if seen is False:
            count = f"Leaks found: {len(found)} of {len(LEAKY)}."
            named = "\n  ✓ ".join([count, *found])  # the hunt for the others is theirs
            return f"{named}\nThe next one passes your test unseen. {advice}"
        if seen is not True:
            return seen
        found.append(fault)


leaks.hints = """
- Make x, call attend; replace all tokens from position t on, call it again; compare
  the outputs before t.
- Do that for every t, for training True and False, and with a batch of two.
- New tokens 100 times as large bring small leaks to light; outputs that should be
  equal may differ in the sixth digit (`torch.allclose`).
"""

leaks.mistakes = """
`!=` and `==` compare two tensors entry by entry. Take `torch.allclose`, which returns a
single True or False.
    not torch.allclose(*pasts, atol=1e-4) → pasts[0] != pasts[1]
`attend` takes two arguments, x and training.
    before = attend(x, training) → before = attend(x)
right:
    torch.allclose(*pasts, atol=1e-4) → (pasts[0] - pasts[1]).abs().max() < 1e-3
"""
