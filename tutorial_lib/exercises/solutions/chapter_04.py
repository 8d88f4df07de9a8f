"""Solutions of chapter 4, and edits of them that must be caught or must pass."""

import torch
from torch.nn.utils.rnn import pad_sequence

from tutorial_lib.attention import scaled_dot_product_attention
from tutorial_lib.masks import causal_mask, length_mask


def packed_mask(sentence):
    """Let each token look at itself and at what came before it in its sentence."""
    same = sentence[:, :, None] == sentence[:, None, :]  # (batch, query, key)
    is_word = (sentence > 0)[:, None, :]  # (batch, 1, key)
    return same & is_word & causal_mask(sentence.shape[1])


def additive_mask(mask, dtype):
    """Turn a boolean mask into numbers to add to scores of this type."""
    lowest = torch.finfo(dtype).min / 2  # half of it, so that the sum stays a number
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)


def attend_in_batch(sentences):
    """Run self-attention over all sentences in one padded batch."""
    lengths = [len(x) for x in sentences]
    x = pad_sequence(sentences, batch_first=True)  # (batch, token, d_model)
    mask = length_mask(lengths, keys=x.shape[1])
    outputs, _ = scaled_dot_product_attention(x, x, x, mask)
    return [o[:length] for o, length in zip(outputs, lengths, strict=True)]


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


ANSWERS = {}
WRONG_ANSWERS = []

MUTANTS = [
    (
        "packed_mask",
        "same & is_word & causal_mask(sentence.shape[1])",
        "~(same & is_word & causal_mask(sentence.shape[1]))",
        "inverted",
    ),
    ("packed_mask", "& is_word ", "", "padding-sees-padding"),
    (
        "packed_mask",
        "return same & is_word & causal_mask(sentence.shape[1])",
        "mask = same & is_word & causal_mask(sentence.shape[1])\n"
        "    return mask | torch.eye(sentence.shape[1]).bool()",
        "padding-itself",
    ),
    ("packed_mask", " & causal_mask(sentence.shape[1])", "", "not-causal"),
    (
        "packed_mask",
        "same & is_word & causal_mask(sentence.shape[1])",
        "same",
        "not-causal",
    ),
    ("packed_mask", "same & is_word &", "is_word &", "one-sentence"),
    (
        "packed_mask",
        "same & is_word & causal_mask(sentence.shape[1])",
        "(same | True) & causal_mask(sentence.shape[1])",
        "one-sentence",
    ),
    ("packed_mask", "shape[1])", "shape[1]).T", "future"),
    ("packed_mask", "shape[1])", "shape[1]).tril(-1)", "not-itself"),
    ("packed_mask", "(sentence > 0)[:, None, :]", "(sentence > 0)", "axes"),
    ("packed_mask", "sentence > 0", "sentence > 1", "value"),
    (
        "packed_mask",
        "return same & is_word & causal_mask(sentence.shape[1])",
        "return (same & is_word & causal_mask(sentence.shape[1])).float()",
        "dtype",
    ),
    ("packed_mask", "return same", "same", "no-return"),
    ("additive_mask", "~mask, lowest", "mask, lowest", "inverted"),
    ("additive_mask", "~mask, lowest", "~mask, -torch.inf", "minus-infinity"),
    ("additive_mask", "~mask, lowest", "~mask, -10", "too-high"),
    ("additive_mask", ".min / 2", ".min", "no-room"),
    ("additive_mask", ".min / 2", ".max / 2", "hidden"),
    (
        "additive_mask",
        "torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)",
        "(~mask).to(dtype) * -torch.inf",
        "zero-times-infinity",
    ),
    (
        "additive_mask",
        "torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)",
        "(1 - mask.to(dtype)) * -torch.inf",
        "zero-times-infinity",
    ),
    (
        "additive_mask",
        "torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)",
        "mask.to(dtype)",
        "ones-and-zeros",
    ),
    (
        "additive_mask",
        "torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)",
        "torch.where(mask, 0.0, -1e9).to(dtype)",
        "out-of-range",
    ),
    (
        "additive_mask",
        "torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)",
        "(-1e6 * ~mask).to(dtype)",
        "out-of-range",
    ),
    ("additive_mask", "~mask, lowest", "~mask, -1e9", "out-of-range"),
    ("additive_mask", "dtype=dtype", "dtype=torch.float32", "dtype"),
    ("attend_in_batch", "[o[:length]", "[o", "not-cut"),
    ("attend_in_batch", ", batch_first=True", "", "batch-first"),
    (
        "attend_in_batch",
        "return [o[:length] for o, length in zip(outputs, lengths, strict=True)]",
        "return [o[:length] for o, length in zip((outputs, _), lengths, strict=False)]",
        "both",
    ),
    ("attend_in_batch", "x, mask)", "x)", "padding-seen"),
    ("attend_in_batch", "x, mask)", "x, mask.mT)", "padding-seen"),
    ("attend_in_batch", "x, mask)", "x, mask, causal=True)", "causal"),
    ("attend_in_batch", "x, mask)", "x, ~mask)", "mask-inverted"),
    (
        "attend_in_batch",
        "attention(x,",
        "attention(x * x.shape[-1] ** 0.5,",
        "no-scale",
    ),
    (
        "attend_in_batch",
        "length_mask(lengths, keys=x.shape[1])",
        "(x != 0).all(dim=-1)[:, None]",
        "zeros-hidden",
    ),
    (
        "attend_in_batch",
        "length_mask(lengths, keys=x.shape[1])",
        "(x.abs().sum(dim=-1) > 0)[:, None]",
        "zeros-hidden",
    ),
    (
        "attend_in_batch",
        "    return [o[:length] for o, length in zip(outputs, lengths, strict=True)]",
        "    x = torch.cat(sentences)\n"
        "    outputs, _ = scaled_dot_product_attention(x, x, x)\n"
        "    return list(outputs.split(lengths))",
        "in-one-row",
    ),
    (
        "attend_in_batch",
        "    lengths = [len(x) for x in sentences]",
        "    return [scaled_dot_product_attention(x, x, x)[0] for x in sentences]",
        "loop",
    ),
    (
        "attend_in_batch",
        "    mask = length_mask(lengths, keys=x.shape[1])",
        "    return [scaled_dot_product_attention(x, x, x)[0] for x in sentences]",
        "loop",
    ),
    (
        "attend_in_batch",
        "    mask = length_mask(lengths, keys=x.shape[1])",
        "    short = [row[:length] for row, length in zip(x, lengths, strict=True)]\n"
        "    return [scaled_dot_product_attention(x, x, x)[0] for x in short]",
        "loop",
    ),
    (
        "attend_in_batch",
        "[o[:length] for o, length in zip(outputs, lengths, strict=True)]",
        "outputs",
        "list",
    ),
    ("leaks", "range(1, 6)", "range(5, 6)", "misses-prefix"),
    ("leaks", "range(1, 6)", "range(1, 5)", "misses-outgrown"),
    ("leaks", "range(1, 6)", "range(1, 2)", "misses-mean-of-all"),
    ("leaks", "(True, False)", "(True,)", "misses-only-in-training"),
    ("leaks", "(True, False)", "(False,)", "misses-only-in-use"),
    ("leaks", "100 * torch", "torch", "misses-small-penalty"),
    (
        "leaks",
        "after[:, :t], before[:, :t]",
        "after[0, :t], before[0, :t]",
        "misses-first-of-batch",
    ),
    (
        "leaks",
        "after[:, :t], before[:, :t]",
        "after[:, :1], before[:, :1]",
        "misses-mean-of-all",
    ),
    ("leaks", "after[:, :t], before[:, :t]", "after, before", "false-alarm"),
    ("leaks", "return True", "return False", "misses-one-too-far"),
    ("leaks", "return True", "assert False", "asserts"),
    ("leaks", "return False", "return True", "false-alarm"),
    ("leaks", "True\n    return False", "False\n    return True", "inverted"),
]

# all of attend_in_batch after its first line
PADDED = """\
    x = pad_sequence(sentences, batch_first=True)  # (batch, token, d_model)
    mask = length_mask(lengths, keys=x.shape[1])
    outputs, _ = scaled_dot_product_attention(x, x, x, mask)
    return [o[:length] for o, length in zip(outputs, lengths, strict=True)]"""

ACCEPT = [
    ("packed_mask", "(sentence > 0)", "(sentence != 0)"),
    ("packed_mask", "(sentence > 0)[:, None, :]", "sentence[:, :, None].bool()"),
    ("packed_mask", "causal_mask(sentence.shape[1])", "torch.ones_like(same).tril()"),
    ("additive_mask", "torch.finfo(dtype).min / 2", "-1e4"),
    ("additive_mask", "torch.finfo(dtype).min / 2", "-0.9 * torch.finfo(dtype).max"),
    (
        "additive_mask",
        "torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)",
        "(~mask).to(dtype) * lowest",
    ),
    (
        "attend_in_batch",
        "length_mask(lengths, keys=x.shape[1])",
        "(torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None])[:, None]",
    ),
    (
        "attend_in_batch",
        "outputs, _ = scaled_dot_product_attention(x, x, x, mask)",
        "outputs = torch.nn.functional.scaled_dot_product_attention(x, x, x, mask)",
    ),
    (
        "attend_in_batch",
        "outputs, _ = scaled_dot_product_attention(x, x, x, mask)",
        "powers = (x @ x.mT / x.shape[-1] ** 0.5).exp() * mask\n"
        "    outputs = powers / powers.sum(dim=-1, keepdim=True) @ x",
    ),
    (
        "attend_in_batch",
        PADDED,
        "    x = torch.cat(sentences)  # one row, kept apart by a mask\n"
        "    number = torch.arange(len(lengths)).repeat_interleave(\n"
        "        torch.tensor(lengths)\n"
        "    )\n"
        "    mask = number[:, None] == number\n"
        "    outputs, _ = scaled_dot_product_attention(x, x, x, mask)\n"
        "    return list(outputs.split(lengths))",
    ),
    (
        "leaks",
        "torch.allclose(*pasts, atol=1e-4)",
        "(pasts[0] - pasts[1]).abs().max() < 1e-3",
    ),
]
