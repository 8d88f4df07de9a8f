"""Attention of all the heads of a real language model, for the figure in chapter 13.

    python benchmarks/model_heads.py

SmolLM2-135M-Instruct has 30 layers of 9 heads. Each head gets three scores, means over
eight texts: <|endoftext|>, 50 random tokens, and the same 50 again.

- induction: the weight that a token of the second half gives to the token after its
  earlier copy, 49 positions back. Olsson et al. (2022) call it prefix matching.
- previous: the weight on the token just before.
- first: the weight of all tokens but the first on the first.

And of each head there is the attention map of four short texts, the lower triangle in
8 bits a weight. Scores and maps go to tutorial_figures/model_heads.json, a minute's
work. The file is the same wherever it is made, but for a last bit here and there, and
for zlib.
"""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import torch

from tutorial_lib.data.repeats import repeated_tokens
from tutorial_lib.interpret import record_attention
from tutorial_lib.pretrained import smollm2

STORED = Path(__file__).parents[1] / "tutorial_figures/model_heads.json"
FIRST = "<|endoftext|>"
LENGTH = 50  # random tokens before they are repeated
NUM_TEXTS = 8
RANDOM_WORDS = " river spoon cloud tiger chair bread window lemon piano garden"
# What each text is called, the text, and the query that is shown first.
TEXTS = (
    ("ten random words, twice", 2 * RANDOM_WORDS, 15),
    (
        "a name that is repeated",
        "Mila Vargas lives in Vienna. I repeat: Mila Vargas",
        15,
    ),
    (
        "a pronoun",
        "The animal didn't cross the street because it was too tired.",
        9,
    ),
    ("a short program", "def add(a, b):\n    return a + b\n\nadd(1, 2)", 17),
)


@torch.no_grad()
def attention_of(model, tokens):
    """Return the weights (layer, text, head, query, key) on texts (text, token)."""
    with record_attention(model) as maps:
        model(tokens)
    return torch.stack(list(maps.values()))


def scores_of(weights):
    """Return the three scores of each head, (layer, head), on repeated tokens.

    The last token is left out: what followed its copy began the second half.
    """
    weights = weights[..., :-1, :-1]  # (layer, text, head, query, key)
    # Along this diagonal the queries are 49 to 99, and the second half begins at 51.
    copied = weights.diagonal(offset=1 - LENGTH, dim1=3, dim2=4)[..., 2:]
    before = weights.diagonal(offset=-1, dim1=3, dim2=4)
    first = weights[..., 1:, 0]
    scores = {"induction": copied, "previous": before, "first": first}
    return {name: values.mean(dim=(1, 3)) for name, values in scores.items()}


def readable(token):
    """Return a token's text with line breaks, and blanks that stand alone, as signs."""
    text = token.replace("\n", "↵")
    return text if text.strip() else "␣" * len(text)


def measure(model, tokenizer):
    """Return what the figure is made of."""
    scores = {}
    repeated = attention_of(model, repeated_tokens(NUM_TEXTS, LENGTH, seed=0))
    for name, values in scores_of(repeated).items():
        scores[name] = [round(value, 3) for value in values.flatten().tolist()]
    texts = []
    codes = []
    for name, text, query in TEXTS:
        ids = tokenizer.encode(FIRST + text).ids
        weights = attention_of(model, torch.tensor([ids]))[:, 0]
        rows, columns = np.tril_indices(len(ids))
        lower = weights.numpy()[..., rows, columns]  # (layer, head, cell)
        codes.append(np.round(255 * lower).astype(np.uint8).tobytes())
        tokens = [readable(tokenizer.decode([i], False)) for i in ids]
        texts.append({"name": name, "tokens": tokens, "query": query})
    packed = zlib.compress(b"".join(codes), 9)
    return {
        "model": "SmolLM2-135M-Instruct",
        "layers": len(model.layers),
        "heads": model.layers[0].attention.num_heads,
        "scores": scores,
        "texts": texts,
        "weights": base64.b64encode(packed).decode(),
    }


def main():
    torch.set_num_threads(1)
    stored = json.dumps(measure(*smollm2()), ensure_ascii=False)
    STORED.write_text(f"{stored}\n", encoding="utf-8")
    print(f"{STORED.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
