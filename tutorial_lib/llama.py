"""Llama: a GPT with another norm, another network, rotated positions, fewer keys.

Touvron et al. (2023): RMSNorm, SwiGLU and rotary encoding, and no biases; from Ainslie
et al. (2023) heads of queries that share keys and values. `from_llama2c` loads small
models that were published.

This module knows no words, no losses, nor how the next token is chosen.
"""

import math
import struct
from itertools import accumulate, pairwise
from pathlib import Path

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from tutorial_lib.attention import MultiHeadAttention, add_causal
from tutorial_lib.position import RotaryEncoding
from tutorial_lib.shapes import check_mask


class RMSNorm(nn.Module):
    """Divide a token by the root of its mean square: Zhang and Sennrich (2019)."""

    def __init__(self, d_model, *, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x):
        """Normalize tokens ``x`` (..., token, d_model)."""
        mean_square = x.float().square().mean(dim=-1, keepdim=True)  # (..., token, 1)
        return x * torch.rsqrt(mean_square + self.eps).to(x.dtype) * self.weight


class SwiGLU(nn.Module):
    """Give every token a small network with gates: Shazeer (2020), equation 6."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        """Compute on each token of ``x`` (..., token, d_model) by itself."""
        return self.W_down(F.silu(self.W_gate(x)) * self.W_up(x))


class GroupedQueryAttention(MultiHeadAttention):
    """Attention whose ``num_heads`` heads of queries share ``num_kv_heads`` of keys.

    As many are multi-head attention, one is multi-query attention. ``rotary`` rotates
    queries and keys; a KV cache holds keys before rotation. Raises ValueError unless
    num_kv_heads divides num_heads, and that d_model. Ainslie et al. (2023), figure 2.
    """

    def __init__(self, d_model, num_heads, num_kv_heads, *, rotary=None):
        super().__init__(d_model, num_heads, bias=False)
        if num_kv_heads < 1 or num_heads % num_kv_heads:
            raise ValueError(
                "num_kv_heads must divide num_heads: "
                f"{num_kv_heads} does not divide {num_heads}"
            )
        self.d_k, self.rotary = d_model // num_heads, rotary
        self.W_K = nn.Linear(d_model, num_kv_heads * self.d_k, bias=False)
        self.W_V = nn.Linear(d_model, num_kv_heads * self.d_k, bias=False)

    def split_heads(self, x):
        """Cut queries, keys or values into (batch, head, token, d_k)."""
        split = "batch token (head d_k) -> batch head token d_k"
        return rearrange(x, split, d_k=self.d_k)

    def attend(self, Q, K, V, mask, causal):
        """Return the context (batch, head, query, d_k); each group shares a key."""
        if self.rotary is not None:
            Q, K = self.rotary(Q, start=K.shape[-2] - Q.shape[-2]), self.rotary(K)
        if causal and mask is not None:
            shape = (*Q.shape[:-1], K.shape[-2])  # (batch, head, query, key)
            mask, causal = add_causal(mask, shape, device=Q.device), False
        check_mask(mask, (*Q.shape[:-1], K.shape[-2]), causal=causal)
        mask = None if mask is None else torch.atleast_2d(mask)
        return F.scaled_dot_product_attention(
            Q, K, V, attn_mask=mask, is_causal=causal, enable_gqa=True
        )


class LlamaBlock(nn.Module):
    """Let tokens attend to those before them, then compute on each; norms come first.

    Sizes and errors as in GroupedQueryAttention.
    """

    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, *, rotary):
        super().__init__()
        self.attention = GroupedQueryAttention(
            d_model, num_heads, num_kv_heads, rotary=rotary
        )
        self.feed_forward = SwiGLU(d_model, d_ff)
        self.norm1, self.norm2 = RMSNorm(d_model), RMSNorm(d_model)

    def forward(self, x, *, kv_cache=None):
        """Update ``x`` (batch, token, d_model), which follows what ``kv_cache`` has."""
        y = self.norm1(x)
        x = x + self.attention(y, y, y, causal=True, kv_cache=kv_cache)
        return x + self.feed_forward(self.norm2(x))


class Llama(nn.Module):
    """Predict each next token of a text from the tokens before it.

    Sizes as those of `GPT`, with ``num_kv_heads``; ``d_ff`` is 8/3 · d_model if left
    out. Input and output embeddings are one table, but for ``tied=False``. Touvron et
    al. (2023), section 2.
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        num_kv_heads,
        num_layers,
        *,
        max_tokens,
        d_ff=None,
        tied=True,
    ):
        super().__init__()
        d_ff = 4 * math.ceil(2 * d_model / 3) if d_ff is None else d_ff
        self.max_tokens = max_tokens
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        sizes = d_model, num_heads, num_kv_heads, d_ff
        rotary = RotaryEncoding(d_model // num_heads)
        self.layers = nn.ModuleList(
            LlamaBlock(*sizes, rotary=rotary) for _ in range(num_layers)
        )
        self.norm = RMSNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        if tied:
            self.output.weight = self.token_embedding.weight
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                adds = name.endswith(("W_O.weight", "W_down.weight"))
                nn.init.normal_(
                    weight, std=0.02 / (2 * num_layers if adds else 1) ** 0.5
                )

    def forward(self, tokens, kv_cache=None):
        """Return the logits (batch, token, vocab) of what follows each token.

        As in `GPT`: tokens follow those of a ``kv_cache``. Raises ValueError for no
        tokens, and for more than max_tokens.
        """
        end = tokens.shape[1] + (kv_cache.length if kv_cache else 0)
        if not 0 < tokens.shape[1] <= end <= self.max_tokens:
            raise ValueError(f"give 1 to {self.max_tokens} tokens in all, not {end}")
        x = self.token_embedding(tokens)
        for layer in self.layers:
            x = layer(x, kv_cache=kv_cache)
        return self.output(self.norm(x))

    def decode_step(self, tokens, kv_cache):
        """Go on after ``tokens`` (batch, token), as the method of `GPT` does."""
        return self(tokens, kv_cache)[:, -1], kv_cache


def from_llama2c(path):
    """Make a `Llama` of a file in the first format of github.com/karpathy/llama2.c.

    Seven int32 are its sizes; float32 weights follow, one kind after the other, each
    for all layers. Raises ValueError for a file that is none, and for one that has more
    or fewer weights than its sizes ask for.
    """
    content = Path(path).read_bytes()
    d_model, d_ff, num_layers, num_heads, num_kv_heads, vocab, max_tokens = _sizes(
        content, path
    )
    sizes = abs(vocab), d_model, num_heads, num_kv_heads, num_layers
    model = Llama(*sizes, max_tokens=max_tokens, d_ff=d_ff, tied=vocab > 0)
    weights = _in_their_order(model, torch.empty(max_tokens, d_model // num_heads))
    ends = accumulate((weight.numel() for weight in weights), initial=0)
    numbers = torch.frombuffer(bytearray(content[28:]), dtype=torch.float32)
    with torch.no_grad():
        for weight, (start, end) in zip(weights, pairwise(ends), strict=True):
            weight.copy_(numbers[start:end].view_as(weight))
    return model.eval()


def _sizes(content, path):
    """Return the seven sizes, or raise ValueError if the file does not fit them."""
    sizes = struct.unpack("<7i", content[:28].ljust(28, b"\0"))
    d_model, d_ff, num_layers, num_heads, num_kv_heads, vocab, max_tokens = sizes
    positive = min(*sizes[:5], abs(vocab), max_tokens) > 0
    fits = positive and d_model % (2 * num_heads) == num_heads % num_kv_heads == 0
    if not fits or max(sizes) > 2**24:
        raise ValueError(
            f"{path} is no checkpoint in the first format of llama2.c: it does not "
            "begin with the seven sizes of a model"
        )
    d_k = d_model // num_heads
    per_layer = 2 * d_model * (num_heads + num_kv_heads) * d_k
    per_layer += 3 * d_model * d_ff + 2 * d_model
    embeddings = abs(vocab) * d_model * (1 if vocab > 0 else 2)
    numbers = embeddings + num_layers * per_layer + d_model + max_tokens * d_k
    if len(content) != 28 + 4 * numbers:
        raise ValueError(
            f"{path} has {len(content):,} bytes, and a model of its sizes needs "
            f"{28 + 4 * numbers:,}: download or export it again"
        )
    return sizes


def _in_their_order(model, angles):
    """List the weights as a file has them, with a place for its table of angles."""
    weights = [model.token_embedding.weight]
    for name in (
        *("norm1", "attention.W_Q", "attention.W_K", "attention.W_V", "attention.W_O"),
        *("norm2", "feed_forward.W_gate", "feed_forward.W_down", "feed_forward.W_up"),
    ):
        weights += [layer.get_submodule(name).weight for layer in model.layers]
    weights += [model.norm.weight, angles]
    if model.output.weight is not model.token_embedding.weight:
        weights.append(model.output.weight)
    return weights
