"""Llama: a GPT with another norm, another network, rotated positions, fewer keys.

Touvron et al. (2023): RMSNorm, SwiGLU and RoPE, and no biases; from Ainslie et al.
(2023) heads of queries that share keys and values. `tutorial_lib.pretrained` loads
models that were published.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.position import apply_rope, frequencies
from tutorial_lib.sizes import refuse_odd_sizes


class RMSNorm(nn.Module):
    """Divide a token by the root of its mean square: Zhang and Sennrich (2019)."""

    def __init__(self, d_model, *, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        """Normalize tokens ``x`` (batch, token, d_model)."""
        precise = x.to(torch.promote_types(x.dtype, torch.float32))  # not in 16 bits
        mean_square = precise.square().mean(dim=-1, keepdim=True)  # (batch, token, 1)
        normed = precise * torch.rsqrt(mean_square + self.eps)
        return normed.to(x.dtype) * self.weight


class SwiGLU(nn.Module):
    """Give every token a feed-forward network with gates: Shazeer (2020), (6)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_gate = nn.Linear(d_model, d_ff, bias=False)
        self.W_up = nn.Linear(d_model, d_ff, bias=False)
        self.W_down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        """Compute on each token of ``x`` (batch, token, d_model) by itself."""
        gate = F.silu(self.W_gate(x))  # (batch, token, d_ff)
        return self.W_down(gate * self.W_up(x))


class GroupedQueryAttention(MultiHeadAttention):
    """Causal attention whose heads share keys in groups: Ainslie et al. (2023).

    ``num_kv_heads`` as many as ``num_heads`` are multi-head attention, one is
    multi-query attention. Queries and keys are rotated (RoPE).
    """

    def __init__(self, d_model, num_heads, num_kv_heads, *, rope_base=10_000):
        super().__init__(d_model, num_heads, bias=False)
        if num_kv_heads < 1 or num_heads % num_kv_heads:
            raise ValueError(
                "num_kv_heads must divide num_heads: "
                f"{num_kv_heads} does not divide {num_heads}"
            )
        self.group_size = num_heads // num_kv_heads
        self.rope_base = rope_base
        self.W_K = nn.Linear(d_model, num_kv_heads * self.d_k, bias=False)
        self.W_V = nn.Linear(d_model, num_kv_heads * self.d_k, bias=False)

    def forward(self, x, kv_cache=None, layer=0):
        """Update ``x`` (batch, token, d_model), which follows what the cache holds."""
        Q = self.split_heads(self.W_Q(x))  # (batch, head, query, d_k)
        K = self.split_heads(self.W_K(x))  # (batch, kv head, key, d_k)
        V = self.split_heads(self.W_V(x))
        start = 0 if kv_cache is None else kv_cache.num_tokens(layer)
        positions = torch.arange(start, start + x.shape[1], device=x.device)
        omega = frequencies(self.d_k, self.rope_base).to(x.device)
        Q = apply_rope(Q, positions, omega)
        K = apply_rope(K, positions, omega)
        if kv_cache is not None:
            K, V = kv_cache.append(layer, K, V)  # with those of the tokens before
        K = K.repeat_interleave(self.group_size, dim=1)  # (batch, head, key, d_k)
        V = V.repeat_interleave(self.group_size, dim=1)
        key_positions = torch.arange(K.shape[-2], device=x.device)
        mask = positions[:, None] >= key_positions  # causal: (query, key)
        return self.attend(Q, K, V, mask)


class LlamaBlock(nn.Module):
    """Let tokens attend to those up to them, then compute on each."""

    def __init__(self, d_model, num_heads, num_kv_heads, d_ff, *, rope_base, norm_eps):
        super().__init__()
        self.norm1 = RMSNorm(d_model, eps=norm_eps)
        self.attention = GroupedQueryAttention(
            d_model, num_heads, num_kv_heads, rope_base=rope_base
        )
        self.norm2 = RMSNorm(d_model, eps=norm_eps)
        self.feed_forward = SwiGLU(d_model, d_ff)

    def forward(self, x, kv_cache=None, layer=0):
        """Update ``x`` (batch, token, d_model), which follows what the cache holds."""
        x = x + self.attention(self.norm1(x), kv_cache, layer)
        return x + self.feed_forward(self.norm2(x))


class Llama(nn.Module):
    """Predict each next token from the tokens before it: Touvron et al. (2023).

    The first Llama has as many KV heads as heads. Input and output embeddings are one
    table.
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        num_layers,
        *,
        num_kv_heads,
        d_ff,
        rope_base=10_000,
        norm_eps=1e-5,
    ):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        layers = [
            LlamaBlock(
                d_model,
                num_heads,
                num_kv_heads,
                d_ff,
                rope_base=rope_base,
                norm_eps=norm_eps,
            )
            for _ in range(num_layers)
        ]
        self.layers = nn.ModuleList(layers)
        self.norm = RMSNorm(d_model, eps=norm_eps)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.output.weight = self.token_embedding.weight  # tied
        nn.init.normal_(self.output.weight, std=0.02)  # small logits at first

    def forward(self, tokens, kv_cache=None):
        """Return the logits (batch, token, vocab) of what follows each token.

        With a ``kv_cache``, ``tokens`` (batch, token) follow those that it holds.
        """
        x = self.token_embedding(tokens)  # (batch, token, d_model)
        for i, layer in enumerate(self.layers):
            x = layer(x, kv_cache, i)
        return self.output(self.norm(x))

    def decode_step(self, tokens, kv_cache):
        """Return the logits (batch, vocab) after the new tokens, and the cache."""
        logits = self(tokens, kv_cache)
        return logits[:, -1], kv_cache


refuse_odd_sizes(GroupedQueryAttention, Llama)
