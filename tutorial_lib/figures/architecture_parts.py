"""What a reader learns of each part of the Transformer's diagram.

The shapes are in the axis vocabulary. This module knows the parts by name, not where
they stand in the diagram, and no code of theirs.
"""

from typing import NamedTuple

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
        "An encoder reads the English sentence once. A decoder writes the French one, "
        "looking back at its own words and across at the encoder's.",
        "English words (batch, token), their lengths (batch,), French words so far "
        "(batch, token)",
        "logits (batch, token, vocab)",
    ),
    "encoder": About(
        "encoder",
        "Turns the English words into the memory: one row for each word, informed by "
        "all the others.",
        "words (batch, token), lengths (batch,)",
        f"memory {STREAM}",
    ),
    "decoder": About(
        "decoder",
        "Turns the French words so far into logits for the word after each of them.",
        "words (batch, token), and a state made of the memory",
        "logits (batch, token, vocab), and the state for the next word",
    ),
    "embedding": About(
        "embedding",
        "Looks up a vector for each word and multiplies it by √d_model. The class adds "
        "the position, too.",
        "words (batch, token)",
        STREAM,
    ),
    "position": About(
        "position",
        "Adds sines and cosines of the place, so that a word knows where it stands. "
        "Nothing in it is learned.",
        STREAM,
        STREAM,
    ),
    "encoder block": About(
        "encoder block",
        "Every word looks at all words, then computes by itself. N such blocks follow "
        "each other, each with weights of its own.",
        f"{STREAM}, mask (batch, 1, key)",
        STREAM,
    ),
    "decoder block": About(
        "decoder block",
        "Every word looks back, then across at the memory, then computes by itself. N "
        "such blocks follow each other, and each gets keys and values from the memory.",
        f"{STREAM}; keys and values (batch, head, key, d_k) of the words before, and "
        "of the memory",
        f"{STREAM}, and the words before with the new ones",
    ),
    "self-attention": About(
        "attention",
        "English words ask and English words answer: queries, keys and values come "
        "from the same tokens.",
        ASKED,
        "(batch, query, d_model)",
    ),
    "causal self-attention": About(
        "attention",
        "French words ask, and they and the French words before them answer. What "
        "follows is hidden.",
        ASKED,
        "(batch, query, d_model)",
    ),
    "cross-attention": About(
        "attention",
        "French words ask and English words answer: queries come from below, keys and "
        "values from the memory, projected once.",
        ASKED,
        "(batch, query, d_model)",
        ("def project(", "def read("),
    ),
    "mask of self-attention": About(
        "length mask",
        "Hides the padding: every English word may look at all English words.",
        "lengths (batch,)",
        "mask (batch, 1, key)",
    ),
    "mask of causal self-attention": About(
        "causal mask",
        "Hides the future: query i may look at keys 0 to i.",
        "the number of tokens",
        "mask (token, token)",
    ),
    "mask of cross-attention": About(
        "length mask",
        "Hides the padding of the source: every French word may look at all English "
        "words. The rectangle is as high as the target and as wide as the source.",
        "lengths (batch,) of the source",
        "mask (batch, 1, key)",
    ),
    "feed-forward": About(
        "feed-forward",
        "Gives every token the same small network of d_ff neurons. No token sees "
        "another.",
        STREAM,
        STREAM,
    ),
    "add & norm": About(
        "residual",
        "Adds what the layer computed to the stream that went around it, then "
        "normalizes each token: the paper's order, norm_first=False.",
        f"the stream and the layer's change, both {STREAM}",
        STREAM,
        ("x + self.dropout(change)", "else self.norm(x)"),
    ),
    "linear": About(
        "decoder",
        "Gives every word of the French vocabulary a logit for being the next. It is "
        "the decoder's last layer, vocab.",
        STREAM,
        "logits (batch, token, vocab)",
        ("self.vocab",),
    ),
    "tied": About(
        "model",
        "With tied=True one table (vocab, d_model) reads and writes French words: the "
        "linear map takes its weights from the embedding.",
        "the embedding's table (vocab, d_model)",
        "the linear map's weights (vocab, d_model)",
        ("if tied", "decoder.vocab.weight"),
    ),
    "softmax": About(
        "softmax",
        "Turns the last word's logits into probabilities of the next word. It is no "
        "part of the model: whoever writes takes it, and so does the loss.",
        "logits (batch, vocab)",
        "probabilities (batch, vocab)",
        ("softmax",),
    ),
}
PARTS = tuple(dict.fromkeys(about.part for about in ABOUT.values()))
