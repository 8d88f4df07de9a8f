"""Solutions of chapter 8, and edits of them that must be caught or must pass."""

from einops import rearrange
from torch import nn


def split_heads(x, heads):
    """Cut the last axis of x (batch, token, d_model) into heads."""
    return rearrange(x, "batch token (head d_k) -> batch head token d_k", head=heads)


class SeveralHeads(nn.Module):
    """Multi-head attention that works."""

    def __init__(self, d_model, heads):
        super().__init__()
        # 1. and 2. Nobody has set d_k and probability, and neither is needed.
        self.heads = heads
        # 3. The layers serve all heads at once, so they lead to d_model numbers.
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)

    def forward(self, queries, keys, values, mask=None):
        """Read (batch, query, d_model); a mask holds for every head."""
        # 4. Nothing cuts the heads apart. With an axis for them the unsqueeze is right.
        split = "batch token (head d_k) -> batch head token d_k"
        Q = rearrange(self.W_Q(queries), split, head=self.heads)
        K = rearrange(self.W_K(keys), split, head=self.heads)
        V = rearrange(self.W_V(values), split, head=self.heads)
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        if mask is not None:  # 5. masked_fill fills where it is True: it takes ~mask
            scores = scores.masked_fill(~mask.unsqueeze(1), -1e9)
        # 6. A query shares out its weight over the keys, which are the last axis.
        context = scores.softmax(dim=-1) @ V  # (batch, head, query, d_k)
        # 7. Nothing joins the heads before W_O.
        join = "batch head token d_k -> batch token (head d_k)"
        return self.W_O(rearrange(context, join))


def head_terms(context, W_O):
    """Return what each head adds to the output, without the bias of W_O."""
    heads, d_k = context.shape[1], context.shape[-1]
    rows = W_O.weight.T.reshape(heads, d_k, -1)  # rows[i] belongs to head i
    return context @ rows  # (batch, head, token, d_model)


def prune(score, heads, loss):
    """Return the heads that are kept, a list in rising order."""
    kept = list(range(heads))
    enough = score(kept) - loss
    while len(kept) > 1:
        candidates = [[head for head in kept if head != out] for out in kept]
        best = max(candidates, key=score)
        if score(best) < enough:
            break
        kept = best
    return kept


ANSWERS = {
    # Q of one head is 100 × 8, and each row of Q Kᵀ is a sum of multiples of the
    # 8 rows of Kᵀ, so the rank is at most 8. The four layers have 64² weights and
    # 64 biases each, however many heads share them.
    "8.5": {"rank": 8, "parameters": 16_640},
}
WRONG_ANSWERS = [
    ("8.5", {"rank": 64, "parameters": 16_640}, "rank-of-model"),
    ("8.5", {"rank": 100, "parameters": 16_640}, "rank-of-scores"),
    ("8.5", {"rank": 100, "parameters": 1_560}, "rank-of-scores"),
    ("8.5", {"rank": 8, "parameters": 16_384}, "no-biases"),
    ("8.5", {"rank": 8, "parameters": 133_120}, "times-heads"),
    ("8.5", {"rank": 8, "parameters": 12_480}, "no-W_O"),
    ("8.5", {"rank": 7, "parameters": 16_640}, "value"),
]

_SPLIT = 'rearrange(x, "batch token (head d_k) -> batch head token d_k", head=heads)'
_FOURTH = "        # 4. Nothing cuts"


def _instead(cut, join):
    """Return code that cuts x and joins the context in another way, and returns."""
    return f"""
        layers = (self.W_Q, queries), (self.W_K, keys), (self.W_V, values)
        Q, K, V = ({cut} for x in (W(tokens) for W, tokens in layers))
        context = (Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5).softmax(dim=-1) @ V
        return self.W_O({join})
{_FOURTH}"""


_VIEW = "x.reshape(len(x), self.heads, x.shape[1], -1)"
MUTANTS = [
    ("split_heads", _SPLIT, "x.reshape(len(x), heads, x.shape[1], -1)", "view-alone"),
    (
        "split_heads",
        _SPLIT,
        "x.unflatten(-1, (-1, heads)).movedim(2, 1)",
        "counts-swapped",
    ),
    ("split_heads", "(head d_k)", "(d_k head)", "every-third"),
    ("split_heads", "batch head token d_k", "batch token head d_k", "not-exchanged"),
    ("split_heads", _SPLIT, "x.unsqueeze(1).expand(-1, heads, -1, -1)", "copied"),
    ("SeveralHeads", "self.heads = heads", "self.heads = 1", "one-head"),
    ("SeveralHeads", "softmax(dim=-1)", "softmax(dim=-2)", "wrong-axis"),
    (
        "SeveralHeads",
        "Q.shape[-1] ** 0.5",
        "queries.shape[-1] ** 0.5",
        "scaled-by-model",
    ),
    ("SeveralHeads", "Q.shape[-1] ** 0.5", "Q.shape[-1]", "scaled-by-size"),
    ("SeveralHeads", " / Q.shape[-1] ** 0.5", "", "unscaled"),
    (
        "SeveralHeads",
        "(head d_k) -> batch head",
        "(d_k head) -> batch head",
        "every-third",
    ),
    (
        "SeveralHeads",
        "rearrange(context, join)",
        "context.reshape(*queries.shape)",
        "joined-by-view",
    ),
    (
        "SeveralHeads",
        "-> batch token (head d_k)",
        "-> batch token (d_k head)",
        "joined-in-order",
    ),
    (
        "SeveralHeads",
        _FOURTH,
        _instead(
            "x.unflatten(-1, (-1, self.heads)).movedim(-1, 1)",
            "context.movedim(1, -1).flatten(2)",
        ),
        "every-third",
    ),
    (
        "SeveralHeads",
        _FOURTH,
        _instead(_VIEW, "context.transpose(1, 2).flatten(2)"),
        "view-alone",
    ),
    (
        "SeveralHeads",
        _FOURTH,
        _instead(_VIEW, "context.reshape(*queries.shape)"),
        "view-alone",
    ),
    ("SeveralHeads", "self.W_K(keys)", "self.W_K(queries)", "keys-from-queries"),
    (
        "SeveralHeads",
        _FOURTH,
        "        keys = values = queries\n" + _FOURTH,
        "keys-from-queries",
    ),
    ("SeveralHeads", "self.W_V(values)", "self.W_V(keys)", "values-from-keys"),
    (
        "SeveralHeads",
        "        context = scores.softmax(dim=-1)",
        "        shown = 1 if mask is None else mask.unsqueeze(1)\n"
        "        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5\n"
        "        context = (scores.softmax(dim=-1) * shown)",
        "mask-after-softmax",
    ),
    (
        "SeveralHeads",
        "scores.softmax(dim=-1) @",
        "nn.functional.dropout(scores.softmax(dim=-1), 0.5, self.training) @",
        "dropout",
    ),
    ("SeveralHeads", "~mask.uns", "mask.uns", "mask-inverted"),
    ("SeveralHeads", "mask is not None", "False", "unmasked"),
    ("SeveralHeads", "self.W_O(rearr", "(rearr", "no-W_O"),
    ("SeveralHeads", "~mask.unsqueeze(1)", "~mask", "mask-axis"),
    ("SeveralHeads", "self.W_O = nn.Linear(d_model, d_model)", "pass", "parameters"),
    (
        "SeveralHeads",
        "self.W_O = nn.Linear(d_model, d_model)",
        "self.W_O = nn.Linear(d_model // heads, d_model // heads)",
        "parameters",
    ),
    ("SeveralHeads", "@ V ", "@ V.detach() ", "no-gradient"),
    ("head_terms", "@ rows", "@ rows + W_O.bias", "with-bias"),
    ("head_terms", "@ rows", "@ rows + W_O.bias / heads", "with-bias"),
    ("head_terms", "weight.T", "weight", "not-transposed"),
    (
        "head_terms",
        "reshape(heads, d_k, -1)",
        "reshape(d_k, heads, -1).transpose(0, 1)",
        "every-third",
    ),
    (
        "head_terms",
        "context @ rows",
        "(context @ rows).mean(1, keepdim=True).expand(-1, heads, -1, -1)",
        "equal-shares",
    ),
    ("head_terms", "context @ rows", "(context @ rows).sum(dim=1)", "summed"),
    (
        "head_terms",
        "context @ rows",
        "split_heads((context @ rows).sum(dim=1), heads)",
        "output-cut",
    ),
    (
        "head_terms",
        "context @ rows",
        "W_O(context.transpose(1, 2).flatten(2))",
        "summed",
    ),
    ("head_terms", "return context @ rows", "return (context @ rows)[:, 0]", "shape"),
    ("prune", "max(", "min(", "most-important"),
    (
        "prune",
        "        if score(best) < enough:\n            break\n        kept = best\n",
        "        kept = best\n        if score(best) < enough:\n            break\n",
        "one-too-many",
    ),
    ("prune", "  kept = best\n", "  kept = best\n        break\n", "only-one"),
    (
        "prune",
        "        kept = best\n",
        "        kept, enough = best, score(best) - loss\n",
        "loss-adds-up",
    ),
    ("prune", "return kept", "return sorted(set(range(heads)) - set(kept))", "removed"),
    (
        "prune",
        "    while len(kept) > 1:\n",
        "    kept = [i for i in kept if score([j for j in kept if j != i]) < enough]"
        " or [0]\n    while False:\n",
        "at-once",
    ),
    (
        "prune",
        "    while len(kept) > 1:\n",
        "    order = sorted(kept, key=lambda i: score([j for j in kept if j != i]))\n"
        "    while len(kept) > 1:\n"
        "        if score([i for i in kept if i != order[-1]]) < enough:\n"
        "            break\n"
        "        kept.remove(order.pop())\n"
        "    while False:\n",
        "ranked-once",
    ),
    (
        "prune",
        "    while len(kept) > 1:\n",
        "    for out in range(heads):\n"
        "        fewer = [head for head in kept if head != out]\n"
        "        kept = fewer if fewer and score(fewer) >= enough else kept\n"
        "    while False:\n",
        "in-order",
    ),
    ("prune", "return kept", "return len(kept)", "type"),
    ("prune", "len(kept) > 1", "kept", "empty"),
    ("prune", "score(best) < enough", "score(best) <= enough", "more-than-within"),
    ("prune", "score(kept) - loss", "score(kept) * (1 - loss)", "relative"),
    (
        "prune",
        "max(candidates, key=score)",
        "min(candidates, key=lambda rest: score([i for i in kept if i not in rest]))",
        "weakest-alone",
    ),
    (
        "prune",
        "    while len(kept) > 1:\n",
        "    from itertools import combinations\n"
        "    for size in range(1, heads + 1):\n"
        "        best = max(combinations(kept, size), key=score)\n"
        "        if score(best) >= enough:\n"
        "            return list(best)\n"
        "    while len(kept) > 1:\n",
        "smallest-set",
    ),
]

ACCEPT = [
    ("split_heads", _SPLIT, "x.unflatten(-1, (heads, -1)).transpose(1, 2)"),
    ("split_heads", _SPLIT, "x.reshape(*x.shape[:2], heads, -1).permute(0, 2, 1, 3)"),
    ("SeveralHeads", "-1e9", 'float("-inf")'),
    ("SeveralHeads", "mask.unsqueeze(1)", "mask[:, None]"),
    (
        "head_terms",
        "W_O.weight.T.reshape(heads, d_k, -1)",
        "W_O.weight.unflatten(1, (heads, d_k)).permute(1, 2, 0)",
    ),
    ("prune", "len(kept) > 1", "len(kept) != 1"),
    ("prune", "return kept", "return tuple(kept)"),
]
