"""GPT: a Transformer's decoder without an encoder, which goes on with what it reads.

Radford et al. (2019): the Transformer's blocks with a causal mask and the norm first,
positions that are learned, and one table that reads words and writes them. `from_gpt2`
takes the weights that were published.

Reading a text at once and writing it word by word are the same code: the model works
from a state that holds keys and values of all earlier tokens.

This module knows no words, no losses, nor how the next word is chosen.
"""

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_lib.position import LearnedEncoding
from tutorial_lib.transformer import EncoderBlock, extend

GELU = partial(F.gelu, approximate="tanh")  # as GPT-2 computes it


class CausalBlock(EncoderBlock):
    """Let tokens look back, then compute on each: the norm comes before each layer.

    Sizes, activation and errors as in EncoderBlock.
    """

    def __init__(self, d_model, heads, d_ff, *, activation=GELU, dropout=0.0):
        options = {"norm_first": True, "activation": activation, "dropout": dropout}
        super().__init__(d_model, heads, d_ff, **options)

    def forward(self, x, prefix):
        """Update the tokens ``x`` (batch, token, d_model) that follow a prefix.

        ``prefix`` are keys and values (batch, head, key, d_k) of the tokens before
        ``x``. Returns ``x`` and the prefix with the new tokens in it.
        """
        look, think = self.residuals
        y = look.before(x)
        prefix, earlier = extend(prefix, self.attention.project(y, y))
        x = look.after(x, self.attention.read(y, *prefix, **earlier))
        return think.after(x, self.feed_forward(think.before(x))), prefix


class GPTState(NamedTuple):
    """What a `GPT` keeps between words; every first axis is the batch."""

    prefixes: tuple  # for each block, K and V (batch, head, key, d_k) of the tokens
    prompt: torch.Tensor  # (batch, token), still to be read after <bos>


class GPT(nn.Module):
    """Predict each next word of a text from the words before it.

    ``vocab`` words as vectors of ``d_model`` numbers, in texts of up to ``max_tokens``;
    ``blocks`` blocks of so many ``heads``, whose networks have ``d_ff`` neurons, four
    times d_model if that is left out, and an ``activation``, GPT-2's unless another is
    given. Radford et al. (2019), section 2.3.
    """

    def __init__(
        self,
        vocab,
        d_model,
        heads,
        blocks,
        *,
        max_tokens,
        d_ff=None,
        activation=GELU,
        dropout=0.0,
    ):
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        self.words = nn.Embedding(vocab, d_model)
        self.position = LearnedEncoding(d_model, max_tokens)
        self.dropout = nn.Dropout(dropout)
        options = {"activation": activation, "dropout": dropout}
        self.blocks = nn.ModuleList(
            CausalBlock(d_model, heads, d_ff, **options) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(d_model)
        self._initialize()

    def _initialize(self):
        """Start as GPT-2 did: the deeper the model, the less a layer adds at first."""
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                adds = name.endswith(("W_O.weight", "W_2.weight"))
                depth = (2 * len(self.blocks)) ** 0.5 if adds else 1
                nn.init.normal_(weight, std=0.02 / depth)
            elif "norm" not in name:
                nn.init.zeros_(weight)

    def forward(self, tokens):
        """Predict what follows each of ``tokens`` (batch, token), 0 and up.

        Returns logits (batch, token, vocab), those at t being for token t + 1. Raises
        ValueError for no tokens, and for more than max_tokens.
        """
        return self.read(tokens, self._nothing(tokens))[0]

    def read(self, tokens, prefixes):
        """Go on with ``tokens`` (batch, token) after those that ``prefixes`` hold.

        Returns the logits (batch, token, vocab), and the prefixes with these tokens.
        Raises ValueError as ``forward`` does.
        """
        before, longest = prefixes[0][0].shape[-2], len(self.position.table)
        if not tokens.shape[1]:
            raise ValueError("there is nothing to go on from: begin with <bos>")
        if before + tokens.shape[1] > longest:
            raise ValueError(
                f"{before + tokens.shape[1]} tokens are more than this model's "
                f"{longest}: shorten the prompt or max_tokens, or train a GPT with "
                "larger max_tokens"
            )
        x, after = self.dropout(self.position(self.words(tokens), before)), []
        for block, prefix in zip(self.blocks, prefixes, strict=True):
            x, prefix = block(x, prefix)
            after.append(prefix)
        return self.norm(x) @ self.words.weight.T, tuple(after)

    def start(self, prompt, lengths):
        """Make the state before the first word, as decoding asks for it.

        ``prompt`` (batch, token) are the words after ``<bos>`` with which the texts
        begin, or none. Raises ValueError unless all ``lengths`` are the same.
        """
        if len(lengths) and int(lengths.min()) < prompt.shape[1]:
            raise ValueError(
                "prompts of one batch must be equally long, got lengths "
                f"{lengths.tolist()}: sample one length at a time"
            )
        return GPTState(self._nothing(prompt), prompt)

    def step(self, tokens, state):
        """Write one word after ``tokens`` (batch,): logits (batch, vocab) and state."""
        tokens = torch.cat((tokens[:, None], state.prompt), dim=1)
        logits, prefixes = self.read(tokens, state.prefixes)
        return logits[:, -1], GPTState(prefixes, state.prompt[:, :0])

    def _nothing(self, tokens):
        """Return the prefixes of a batch of texts before their first token."""
        attention = self.blocks[0].attention
        shape = len(tokens), attention.heads, 0, self.words.embedding_dim
        none = self.words.weight.new_empty(*shape[:-1], shape[-1] // attention.heads)
        return tuple((none, none) for _ in self.blocks)


# Ours and GPT-2's name of what a block holds; theirs multiply from the right.
_LAYERS = {
    "residuals.0.norm": "ln_1",
    "residuals.1.norm": "ln_2",
    "attention.W_O": "attn.c_proj",
    "feed_forward.W_1": "mlp.c_fc",
    "feed_forward.W_2": "mlp.c_proj",
}


def from_gpt2(state_dict, *, heads=None):
    """Make a `GPT` of the weights of a GPT-2, whose names are those published.

    ``state_dict`` maps names such as "h.0.attn.c_attn.weight" to tensors, with or
    without "transformer." before them; sizes are read from it. Heads have 64 numbers,
    as in all four GPT-2, unless their number is given. Raises ValueError for weights of
    something else.
    """
    theirs = {name.removeprefix("transformer."): x for name, x in state_dict.items()}
    if not {"wte.weight", "wpe.weight", "h.0.attn.c_attn.weight"} <= theirs.keys():
        raise ValueError(
            "these are not the weights of a GPT-2: wte.weight, wpe.weight or "
            "h.0.attn.c_attn.weight is missing"
        )
    (vocab, d_model), max_tokens = theirs["wte.weight"].shape, len(theirs["wpe.weight"])
    blocks = sum(name.endswith(".attn.c_attn.weight") for name in theirs)
    model = GPT(
        vocab,
        d_model,
        d_model // 64 if heads is None else heads,
        blocks,
        max_tokens=max_tokens,
        d_ff=theirs["h.0.mlp.c_fc.weight"].shape[1],
    )
    ours = {
        "words.weight": theirs["wte.weight"],
        "position.table": theirs["wpe.weight"],
    }
    ours |= {f"norm.{kind}": theirs[f"ln_f.{kind}"] for kind in ("weight", "bias")}
    for i in range(blocks):
        ours |= _block(theirs, f"h.{i}.", f"blocks.{i}.")
    model.load_state_dict(ours)
    return model.eval()


def _block(theirs, old, new):
    """Return the weights of a block by our names, linear maps turned around."""
    ours = {}
    for kind in ("weight", "bias"):
        parts = theirs[f"{old}attn.c_attn.{kind}"].chunk(3, dim=-1)  # Q, K, V
        for name, part in zip("QKV", parts, strict=True):
            ours[f"{new}attention.W_{name}.{kind}"] = part.T if part.ndim == 2 else part
        for name, other in _LAYERS.items():
            x = theirs[f"{old}{other}.{kind}"]
            ours[f"{new}{name}.{kind}"] = x.T if x.ndim == 2 else x
    return ours
