"""The Transformer as a diagram to click through to the code of its parts.

Where the parts stand is in ``diagram``; here is what a reader learns of each, with
shapes in the axis vocabulary. Of the classes and functions that go in, only the source
is read.
"""

import io
import itertools
import tokenize
from typing import NamedTuple

from tutorial_lib.definitions import source_of

from .diagram import drawing, picture
from .figure import Figure

BLANK = (tokenize.NL, tokenize.COMMENT)
BEFORE_STATEMENT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
TEXT = (
    "The Transformer as a diagram, read from the bottom up. Left, the encoder: English "
    "tokens, embedding, position, then N layers of self-attention and feed-forward, "
    "each followed by add and norm; what comes out is the memory. Right, the decoder: "
    "bos and French tokens, embedding, position, then N layers of causal "
    "self-attention, cross-attention and feed-forward, each followed by add and norm; "
    "then a linear map, tied to the French embedding, and softmax for the next French "
    "token. An arrow leads from the memory to the keys and values of cross-attention, "
    "whose queries come from below. Small grids show what each attention hides: "
    "self-attention the padding, causal self-attention the future, cross-attention the "
    "padding of the source."
)
STREAM = "(batch, token, d_model)"
ASKED = "queries (batch, query, d_model), keys and values (batch, key, d_model)"


class About(NamedTuple):
    """What a reader learns of a box, besides the code of its ``part``.

    ``marks`` are texts by which the lines that matter are found in that code.
    """

    part: str
    does: str
    takes: str
    gives: str
    marks: tuple = ()


ABOUT = {
    "Transformer": About(
        "model",
        "An encoder reads the English sentence once. A decoder generates the French "
        "one, with attention to its own tokens so far and to the encoder outputs.",
        "English tokens (batch, token), their lengths (batch,), French tokens so far "
        "(batch, token)",
        "logits (batch, token, vocab)",
    ),
    "encoder": About(
        "encoder",
        "Turns the English tokens into the memory, its outputs: a row for each token, "
        "with information from all the others.",
        "tokens (batch, token), lengths (batch,)",
        f"memory {STREAM}",
    ),
    "decoder": About(
        "decoder",
        "Turns the French tokens so far into logits for the token after each of them.",
        "tokens (batch, token), and the memory (batch, key, d_model)",
        "logits (batch, token, vocab)",
    ),
    "embedding": About(
        "embedding",
        "Looks up a vector for each token and multiplies it by √d_model.",
        "tokens (batch, token)",
        STREAM,
        ("self.token_embedding(source)",),
    ),
    "position": About(
        "position",
        "Adds sines and cosines of the position, so that a token tells where it "
        "stands. Nothing in it is learned.",
        STREAM,
        STREAM,
    ),
    "encoder layer": About(
        "encoder layer",
        "Every token attends to all tokens, then computes by itself. N such layers "
        "follow each other, each with weights of its own.",
        f"{STREAM}, mask (batch, 1, key)",
        STREAM,
    ),
    "decoder layer": About(
        "decoder layer",
        "Every token attends to those before it, then to the memory, then computes by "
        "itself. N such layers follow each other, and each gets keys and values from "
        "the memory.",
        f"{STREAM}, and the memory (batch, key, d_model)",
        STREAM,
    ),
    "self-attention": About(
        "attention",
        "English tokens attend to English tokens: queries, keys and values come from "
        "the same tokens.",
        ASKED,
        "(batch, query, d_model)",
    ),
    "causal self-attention": About(
        "attention",
        "French tokens attend to themselves and to the French tokens before them. What "
        "follows is hidden.",
        ASKED,
        "(batch, query, d_model)",
    ),
    "cross-attention": About(
        "attention",
        "French tokens attend to English tokens: queries come from below, keys and "
        "values from the memory.",
        ASKED,
        "(batch, query, d_model)",
        ("self.W_V(values)",),
    ),
    "mask of self-attention": About(
        "padding mask",
        "Hides the padding: every English token may attend to all English tokens.",
        "lengths (batch,)",
        "mask (batch, 1, key)",
    ),
    "mask of causal self-attention": About(
        "causal mask",
        "Hides the future: query i may attend to keys 0 to i.",
        "the number of tokens",
        "mask (token, token)",
    ),
    "mask of cross-attention": About(
        "padding mask",
        "Hides the padding of the source: every French token may attend to all English "
        "tokens. The rectangle is as high as the target and as wide as the source.",
        "lengths (batch,) of the source",
        "mask (batch, 1, key)",
    ),
    "feed-forward": About(
        "feed-forward",
        "The same feed-forward network with d_ff hidden units, for every token by "
        "itself.",
        STREAM,
        STREAM,
    ),
    "add & norm": About(
        "residual",
        "Adds what the sub-layer computed to the stream that went around it, then "
        "normalizes each token (post-norm), as in the paper.",
        f"the stream and the sub-layer's change, both {STREAM}",
        STREAM,
        ("self.norm1(x + ", "self.norm2(x + "),
    ),
    "linear": About(
        "decoder",
        "Gives every token of the French vocabulary a logit for being the next.",
        STREAM,
        "logits (batch, token, vocab)",
        ("self.token_embedding.weight.T",),
    ),
    "tied": About(
        "decoder",
        "Input and output embeddings share one matrix: the linear map takes its "
        "weights from the embedding.",
        "the embedding's weights (vocab, d_model)",
        "the linear map's weights (vocab, d_model)",
        ("self.token_embedding.weight.T",),
    ),
    "softmax": About(
        "softmax",
        "Turns the logits at the last position into probabilities of the next token. "
        "It is no part of the model: decoding applies it, and so does the loss.",
        "logits (batch, vocab)",
        "probabilities (batch, vocab)",
        ("softmax",),
    ),
}
PARTS = tuple(dict.fromkeys(about.part for about in ABOUT.values()))


def show_architecture(code, *, title=None):
    """Show the encoder-decoder Transformer; a click on a part shows its code.

    ``code`` maps each part to the class or function that computes it: "model",
    "encoder", "decoder", "encoder layer", "decoder layer", "embedding", "position",
    "attention", "padding mask", "causal mask", "feed-forward", "residual", "softmax".
    The norm follows each sub-layer, as in Vaswani et al. (2017), figure 1. Raises
    ValueError for parts that are missing or unknown, and for code without a source in
    Python.
    """
    _check_parts(code)
    sources = {part: _source(part, code[part]) for part in PARTS}
    about = {
        name: {**about._asdict(), "marks": lines_with(sources[about.part], about.marks)}
        for name, about in ABOUT.items()
    }
    listings = {
        part: {"name": code[part].__name__, "cuts": cut_at_comments(source)}
        for part, source in sources.items()
    }
    data = {"about": about, "code": listings, **drawing()}
    return Figure("architecture", data, text=TEXT, title=title, draw=picture)


def _check_parts(code):
    unknown = [part for part in code if part not in PARTS]
    missing = [part for part in PARTS if part not in code]
    for fault, parts in (("does not know", unknown), ("misses", missing)):
        if parts:
            raise ValueError(
                f"the diagram {fault} {', '.join(map(repr, parts))}: map a class or "
                f"function to each of {', '.join(PARTS)}"
            )


def _source(part, value):
    source = source_of(value)
    if source is None:
        raise ValueError(
            f"no source found for {part!r}, got {value!r}: pass a class or function "
            "that is written in Python"
        )
    return source


def cut_at_comments(source):
    """Return the source in parts: code, comment or docstring, code and so on."""
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    cuts = [0]
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        documents = token.type == tokenize.STRING and before in BEFORE_STATEMENT
        if documents or token.type == tokenize.COMMENT:
            cuts += [starts[row - 1] + column for row, column in token[2:4]]
        if token.type not in BLANK:
            before = token.type
    return [source[a:b] for a, b in itertools.pairwise([*cuts, len(source)])]


def lines_with(source, marks):
    """Return which lines, counted from 0, contain one of the texts ``marks``."""

    def marked(line):
        return any(mark in line for mark in marks)

    return [i for i, line in enumerate(source.splitlines()) if marked(line)]
