"""GPT: a Transformer's decoder without an encoder, which predicts the next token.

Radford et al. (2019): causal attention, the norm before each sub-layer, learned
position embeddings, and one table for input and output embeddings. `from_gpt2` loads
the weights that were published.

This module knows no words, no losses, nor how the next token is chosen.
"""

from collections.abc import Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.transformer import FeedForward

GELU = partial(F.gelu, approximate="tanh")  # as GPT-2 computes it


class Block(nn.Module):
    """Let tokens attend to those before them, then compute on each.

    Radford et al. (2019), section 2.3: the norm comes before each sub-layer. Sizes and
    errors as in MultiHeadAttention.
    """

    def __init__(self, d_model, num_heads, d_ff, *, activation=GELU, dropout=0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=dropout
        )
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, *, kv_cache=None):
        """Update ``x`` (batch, token, d_model), which follows what ``kv_cache`` has."""
        y = self.norm1(x)
        x = x + self.dropout(self.attention(y, y, y, causal=True, kv_cache=kv_cache))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class GPT(nn.Module):
    """Predict each next token of a text from the tokens before it.

    ``vocab_size`` tokens in ``d_model`` dimensions, texts of up to ``max_tokens``;
    ``num_layers`` blocks of ``num_heads`` each, whose feed-forward networks have
    ``d_ff`` hidden units, 4 · d_model if that is left out, and an ``activation``,
    GPT-2's unless another is given. Radford et al. (2019), section 2.3.
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        num_layers,
        *,
        max_tokens,
        d_ff=None,
        activation=GELU,
        dropout=0.0,
    ):
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        self.dropout = nn.Dropout(dropout)
        options = {"activation": activation, "dropout": dropout}
        self.layers = nn.ModuleList(
            Block(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self._initialize()

    def _initialize(self):
        """Start as GPT-2 did: the deeper the model, the less a layer adds at first."""
        residual_projections = [layer.attention.W_O for layer in self.layers]
        residual_projections += [layer.feed_forward.W_2 for layer in self.layers]
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                std = 0.02
                if module in residual_projections:
                    std /= (2 * len(self.layers)) ** 0.5
                nn.init.normal_(module.weight, std=std)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens, kv_cache=None):
        """Return the logits (batch, token, vocab) of what follows each token.

        ``tokens`` (batch, token) are the text, or with a ``kv_cache`` those after the
        ones it holds; it is then extended. Raises ValueError for no tokens, and for
        more than max_tokens.
        """
        start = kv_cache.length if kv_cache else 0
        end = start + tokens.shape[1]
        self._check(tokens, end)
        positions = torch.arange(start, end, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, kv_cache=kv_cache)
        return self.norm(x) @ self.token_embedding.weight.T

    def _check(self, tokens, end):
        longest = self.position_embedding.num_embeddings
        if not tokens.shape[1]:
            raise ValueError("there is nothing to go on from: begin with <bos>")
        if end > longest:
            raise ValueError(
                f"{end} tokens are more than this model's {longest}: shorten the "
                "prompt or max_new_tokens, or train a GPT with larger max_tokens"
            )

    def decode_step(self, tokens, kv_cache):
        """Go on after ``tokens`` (batch, token), which are new since the cache.

        Returns the logits (batch, vocab) of the next token, and the cache. A text
        begins with an empty `KVCache`.
        """
        return self(tokens, kv_cache)[:, -1], kv_cache


# Our names of what a layer holds, and GPT-2's, whose weights multiply from the right.
_NAMES = {
    "norm1": "ln_1",
    "norm2": "ln_2",
    "attention.W_O": "attn.c_proj",
    "feed_forward.W_1": "mlp.c_fc",
    "feed_forward.W_2": "mlp.c_proj",
}
_BUFFERS = ".attn.bias", ".attn.masked_bias"  # masks that old files hold


def from_gpt2(state_dict, num_heads):
    """Make a `GPT` of the weights of a GPT-2, whose names are those published.

    ``state_dict`` maps names such as "h.0.attn.c_attn.weight" to tensors or arrays,
    with or without "transformer." before them; sizes are read from it, but for
    ``num_heads``: 12, 16, 20 and 25 in the four models of Radford et al. (2019). Raises
    ValueError for weights that are missing, that a GPT does not have, or whose shapes
    are not GPT-2's.
    """
    theirs = _published(state_dict)
    num_layers = sum(name.endswith(".attn.c_attn.weight") for name in theirs)
    parts = {"wte": "token_embedding", "wpe": "position_embedding", "ln_f": "norm"}
    for i in range(max(num_layers, 1)):
        parts |= {f"h.{i}.{_NAMES[part]}": f"layers.{i}.{part}" for part in _NAMES}
        parts[f"h.{i}.attn.c_attn"] = f"layers.{i}.attention"  # Q, K, V in one
    _check_names(theirs, parts)
    _check_axes(theirs)
    vocab_size, d_model = theirs["wte.weight"].shape
    max_tokens, d_ff = len(theirs["wpe.weight"]), len(theirs["h.0.mlp.c_fc.bias"])
    sizes = vocab_size, d_model, num_heads, num_layers
    model = GPT(*sizes, max_tokens=max_tokens, d_ff=d_ff)
    ours = {}
    for name, x in theirs.items():
        part, _, kind = name.rpartition(".")
        x = x.T if x.ndim == 2 and part.startswith("h.") else x
        if part.endswith("c_attn"):
            for own, weight in zip("QKV", x.chunk(3), strict=True):
                ours[f"{parts[part]}.W_{own}.{kind}"] = weight
        else:
            ours[f"{parts[part]}.{kind}"] = x
    _check_shapes(ours, model.state_dict())
    model.load_state_dict(ours)
    return model.eval()


def _published(state_dict):
    """Return the weights by their published names, or raise ValueError."""
    if not isinstance(state_dict, Mapping):
        raise ValueError(
            "state_dict maps names to tensors, as torch.load(path) or model.state_dict "
            f"gives it: got {type(state_dict).__name__}"
        )
    theirs = {
        name.removeprefix("transformer."): torch.as_tensor(x)
        for name, x in state_dict.items()
        if not name.endswith(_BUFFERS)
    }
    table = theirs.get("wte.weight")
    output = theirs.pop("lm_head.weight", table)
    if table is not None and not torch.equal(output, table):
        raise ValueError("lm_head.weight is not wte.weight, and a GPT has one table")
    return theirs


def _check_shapes(ours, expected):
    for name, x in expected.items():
        if ours[name].shape != x.shape:
            raise ValueError(
                f"the weights for {name} are {tuple(ours[name].shape)}, expected "
                f"{tuple(x.shape)}: those of nn.Linear have to be transposed first"
            )


def _check_axes(theirs):
    """Raise ValueError unless biases and norms have one axis, and the others two."""
    for name, x in theirs.items():
        axes = 1 if name.endswith(".bias") or "ln_" in name else 2
        if x.ndim != axes:
            raise ValueError(f"{name} is {tuple(x.shape)}, expected {axes} axes")


def _check_names(theirs, parts):
    """Raise ValueError unless the names are those of all parts, and no others."""
    tables = {"wte", "wpe"}  # which have no bias
    expected = {f"{part}.weight" for part in parts}
    expected |= {f"{part}.bias" for part in parts if part not in tables}
    missing, more = sorted(expected - theirs.keys()), sorted(theirs.keys() - expected)
    for names, said in ((missing, "are missing"), (more, "are not GPT-2's")):
        if names:
            raise ValueError(
                f"{len(names)} weights {said}: {', '.join(names[:3])}"
                f"{', …' * (len(names) > 3)}"
            )
