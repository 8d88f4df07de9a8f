"""Solutions of chapter 6, and edits of them that must be caught or must pass."""

import torch
from torch import nn

from tutorial_lib.attention import masked_softmax
from tutorial_lib.metrics import heaviest_links


def unroll(attention, cell, hidden, memory, mask, steps):
    """Look and step, again and again; return the states (batch, query, d_hidden)."""
    keys = attention.W_K(memory)  # (batch, key, d_attention), once for all steps
    states = []
    for _ in range(steps):
        context = attention.read(hidden.unsqueeze(1), keys, memory, mask)
        hidden = cell(context.squeeze(1), hidden)
        states.append(hidden)
    return torch.stack(states, dim=1)


def alignment_error(weights, sure, possible):
    """Return the alignment error rate of the heaviest links, over all sentences."""
    hits = total = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        links = heaviest_links(sentence)
        hits += len(links & certain) + len(links & (allowed | certain))
        total += len(links) + len(certain)
    return 1 - hits / total


class DotProductReader(nn.Module):
    """Attention that scores by (q W_Q) · (k W_K) / √d_hidden."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def forward(self, queries, keys, values, mask=None):
        """Project the keys, then read."""
        return self.read(queries, self.W_K(keys), values, mask)

    def read(self, queries, projected_keys, values, mask=None):
        """Read (batch, query, d_v), from keys that are projected already."""
        Q = self.W_Q(queries)  # (batch, query, d_hidden)
        scores = Q @ projected_keys.transpose(-2, -1) / Q.shape[-1] ** 0.5
        return masked_softmax(scores, mask) @ values


def coverage(weights, lengths):
    """Add up what each source word was given by the words of the target."""
    is_word = torch.arange(weights.shape[1]) < lengths[:, None]  # (batch, query)
    return (weights * is_word[:, :, None]).sum(dim=1)  # (batch, key)


ANSWERS = {
    # Forward, the states of the words that were read before "bird" stay;
    # backward, those of the words after it. A row of the memory is both states
    # side by side, so that every row knows the whole sentence: the row of
    # "white" can know which noun it belongs to.
    "6.2": {"forward": [2, 3], "backward": [0, 1, 2], "both": [0, 1, 2, 3]},
}
WRONG_ANSWERS = [
    (
        "6.2",
        {"forward": [0, 1, 2], "backward": [2, 3], "both": [0, 1, 2, 3]},
        "forward-swapped",
    ),
    ("6.2", {"forward": [3], "backward": [0, 1], "both": [0, 1, 3]}, "itself"),
    ("6.2", {"forward": [2], "backward": [2], "both": [2]}, "only-itself"),
    (
        "6.2",
        {"forward": [2, 3], "backward": [0, 1, 2], "both": [2]},
        "intersection",
    ),
    ("6.2", [2, 3], "parts"),
    (
        "6.2",
        {"forward": {2, 1, 0}, "backward": range(2, 4), "both": [3, 1, 2, 0]},
        "forward-swapped",
    ),
    (
        "6.2",
        {"forward": [3, 4], "backward": [1, 2, 3], "both": [1, 2, 3, 4]},
        "not-a-row",
    ),
    ("6.2", {"forward": [2], "backward": [2, 1, 0], "both": [0, 1, 2]}, "forward"),
    ("6.2", {"forward": (3, 2), "backward": [1, 2], "both": [1, 2, 3]}, "backward"),
    ("6.2", {"forward": {2, 3}, "backward": {0, 1, 2}, "both": {1, 2, 3}}, "both"),
    ("6.2", {"forward": [2, 3], "backward": 2, "both": [2]}, "parts"),
]

MUTANTS = [
    ("unroll", "hidden.unsqueeze(1)", "hidden", "query-axis"),
    ("unroll", "hidden.unsqueeze(1)", "hidden[None]", "query-axis"),
    ("unroll", "memory, mask)\n", "memory)\n", "padding-read"),
    (
        "unroll",
        "hidden.unsqueeze(1)",
        "(first := states[0] * 0 + first if states else hidden).unsqueeze(1)",
        "first-state",
    ),
    (
        "unroll",
        "        states.append(hidden)\n",
        "        states.append(context[:, 0])\n",
        "contexts",
    ),
    (
        "unroll",
        "        hidden = cell(context.squeeze(1), hidden)\n"
        "        states.append(hidden)\n",
        "        states.append(hidden)\n"
        "        hidden = cell(context.squeeze(1), hidden)\n",
        "one-behind",
    ),
    (
        "unroll",
        "attention.read(hidden.unsqueeze(1), keys, memory, mask)",
        "attention(hidden.unsqueeze(1), memory, memory, mask)",
        "projects-again",
    ),
    ("unroll", "attention.W_K(memory)", "memory @ attention.W_K.weight.T", "bypassed"),
    ("unroll", "attention.W_K(memory)", "memory", "keys-not-projected"),
    ("unroll", "keys, memory, mask", "keys, keys, mask", "values"),
    ("unroll", "attention.W_K(memory)", "attention.W_Q(memory)", "error"),
    ("unroll", "dim=1", "dim=0", "shape"),
    ("alignment_error", "1 - hits / total", "hits / total", "accuracy"),
    ("alignment_error", "(allowed | certain)", "allowed", "sure-not-possible"),
    ("alignment_error", "(allowed | certain)", "certain", "without-possible"),
    (
        "alignment_error",
        "len(links & certain) + len(links & (allowed | certain))\n"
        "        total += len(links) + len(certain)\n",
        "0\n"
        "    A = {link for sentence in weights for link in heaviest_links(sentence)}\n"
        "    S, P = set().union(*sure), set().union(*sure, *possible)\n"
        "    hits, total = len(A & S) + len(A & P), len(A) + len(S)\n",
        "one-set",
    ),
    ("alignment_error", "+ len(certain)", "+ len(allowed | certain)", "over-possible"),
    (
        "alignment_error",
        "heaviest_links(sentence)",
        "{(int(i), j) for j, i in enumerate(sentence.argmax(dim=0))}",
        "by-columns",
    ),
    (
        "alignment_error",
        "heaviest_links(sentence)",
        "{(j, i) for i, j in heaviest_links(sentence)}",
        "transposed",
    ),
    (
        "alignment_error",
        "        total += len(links) + len(certain)\n    return 1 - hits / total",
        "        total += 1 - hits / (len(links) + len(certain))\n"
        "        hits = 0\n"
        "    return total / len(weights)",
        "averaged",
    ),
    (
        "alignment_error",
        "heaviest_links(sentence)",
        "set(enumerate(sentence.argmax(dim=1)))",
        "tensors",
    ),
    ("alignment_error", "len(links & certain) + ", "", "once"),
    ("alignment_error", "return 1", "1", "no-return"),
    ("DotProductReader", " / Q.shape[-1] ** 0.5", "", "unscaled"),
    ("DotProductReader", "[-1] ** 0.5", "[-1]", "scaled-by-size"),
    (
        "DotProductReader",
        "masked_softmax(scores, mask)",
        "scores.softmax(dim=-2)",
        "wrong-axis",
    ),
    (
        "DotProductReader",
        "masked_softmax(scores, mask)",
        "scores.softmax(dim=-1)",
        "unmasked",
    ),
    (
        "DotProductReader",
        "masked_softmax(scores, mask)",
        "masked_softmax(scores, None if mask is None else ~mask)",
        "mask-inverted",
    ),
    (
        "DotProductReader",
        "masked_softmax(scores, mask)",
        "scores.masked_fill(torch.tensor(False) if mask is None else mask, -1e9)"
        ".softmax(-1)",
        "mask-inverted",
    ),
    (
        "DotProductReader",
        "masked_softmax(scores, mask)",
        "scores.masked_fill(torch.tensor(False) if mask is None else mask, -torch.inf)"
        ".softmax(-1)",
        "mask-inverted",
    ),
    (
        "DotProductReader",
        "Q.shape[-1] ** 0.5",
        "queries.shape[-1] ** 0.5",
        "scaled-by-query",
    ),
    ("DotProductReader", "@ values", "@ projected_keys", "reads-keys"),
    (
        "DotProductReader",
        "return self.read(queries, self.W_K(keys), values, mask)",
        "return self.read(queries, keys, values, mask)",
        "error",
    ),
    (
        "DotProductReader",
        "Q = self.W_Q(queries)",
        "Q = self.W_Q(queries).detach()",
        "no-gradient",
    ),
    ("coverage", "(weights * is_word[:, :, None])", "weights", "padding-counted"),
    ("coverage", "sum(dim=1)", "sum(dim=2)", "rows"),
    (
        "coverage",
        "(weights * is_word[:, :, None]).sum(dim=1)",
        "weights.sum(2)",
        "rows",
    ),
    (
        "coverage",
        ".sum(dim=1)",
        ".sum(dim=1) / lengths[:, None]",
        "mean",
    ),
    (
        "coverage",
        "(weights * is_word[:, :, None]).sum(dim=1)",
        "weights.mean(dim=1)",
        "mean",
    ),
    ("coverage", "sum(dim=1)", "amax(dim=1)", "largest"),
    ("coverage", "< lengths", "<= lengths", "one-too-many"),
    ("coverage", "< lengths[:, None]", "< lengths[:, None] - 1", "one-too-few"),
    (
        "coverage",
        "lengths[:, None]",
        "lengths.min().expand(len(lengths), 1)",
        "shortest",
    ),
]

ACCEPT = [
    ("unroll", "context.squeeze(1)", "context[:, 0]"),
    ("unroll", "hidden.unsqueeze(1)", "hidden[:, None]"),
    ("alignment_error", "(allowed | certain)", "allowed.union(certain)"),
    ("DotProductReader", "transpose(-2, -1)", "mT"),
    ("DotProductReader", " / Q.shape[-1] ** 0.5", " * self.W_Q.out_features**-0.5"),
    ("coverage", "is_word[:, :, None]", "is_word.unsqueeze(-1)"),
    (
        "coverage",
        "(weights * is_word[:, :, None]).sum(dim=1)",
        "(is_word.float().unsqueeze(1) @ weights).squeeze(1)",
    ),
]
