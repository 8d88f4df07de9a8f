"""Known wrong answers of the second exercise of chapter 8, as (code, message, answer).

This module does not know the right layer.
"""

from einops import rearrange

_SPLIT = "batch token (head d_k) -> batch head token d_k"
_JOIN = "batch head token d_k -> batch token (head d_k)"


def _layer(
    *,
    heads=None,
    cut=lambda x, heads: rearrange(x, _SPLIT, head=heads),
    scale=lambda Q: Q.shape[-1] ** 0.5,
    hide=lambda mask: ~mask,
    axis=-1,
    join=lambda context: rearrange(context, _JOIN),
    project=True,
    sources=("queries", "keys", "values"),
    late=False,
):
    """Return a function that makes a mistaken class of the right one."""

    def forward(self, queries, keys, values, mask=None):
        read = {"queries": queries, "keys": keys, "values": values}
        layers = zip((self.W_Q, self.W_K, self.W_V), sources, strict=True)
        Q, K, V = (cut(W(read[name]), heads or self.heads) for W, name in layers)
        scores = Q @ K.transpose(-2, -1) / scale(Q)
        if mask is not None and hide is not None and not late:
            scores = scores.masked_fill(hide(mask.unsqueeze(1)), -1e9)
        weights = scores.softmax(dim=axis)
        if mask is not None and late:
            weights = weights * mask.unsqueeze(1)
        context = join(weights @ V)
        return self.W_O(context) if project else context

    return lambda right: type("Mistaken", (right,), {"forward": forward})


def _every_third(x, heads):
    return rearrange(x, "batch token (d_k head) -> batch head token d_k", head=heads)


def _by_view(x, heads):
    return x.reshape(x.shape[0], heads, x.shape[1], x.shape[2] // heads)


def _joined_by_view(context):
    return context.reshape(*context.shape[::2], -1)


def _in_columns(context):
    return rearrange(context, "batch head token d_k -> batch token (d_k head)")


_EVERY_THIRD = (
    "The columns of a head do not stand side by side: with `(d_k head)` the head runs "
    "fastest. Cut and join by `(head d_k)`."
)

_VIEW_ALONE = (
    "You read the numbers in their old order into new axes, so that a head gets parts "
    "of several tokens. Cut the last axis first, then exchange token and head."
)

_INVERTED = (
    "Your mask is inverted: True means that a query may look. `masked_fill` wants the "
    "places to hide, ~mask; `masked_softmax` takes the mask as it is."
)

LAYER = [
    (
        "one-head",
        "That is one head with d_model numbers: `heads` is not used. Split Q, K and V "
        "after the projections.",
        _layer(heads=1),
    ),
    (
        "wrong-axis",
        "The softmax runs over the queries. Each query shares out its attention over "
        "the keys: the last axis.",
        _layer(axis=-2),
    ),
    (
        "scaled-by-model",
        "You divide by the root of d_model. The products of a head are sums over its "
        "own d_k numbers: take the root of d_k.",
        _layer(scale=lambda Q: (Q.shape[1] * Q.shape[-1]) ** 0.5),
    ),
    (
        "scaled-by-size",
        "You divide by d_k itself: by its root, `d_k ** 0.5`.",
        _layer(scale=lambda Q: Q.shape[-1]),
    ),
    (
        "unscaled",
        "The scores are not divided by the root of d_k.",
        _layer(scale=lambda Q: 1),
    ),
    ("every-third", _EVERY_THIRD, _layer(cut=_every_third)),
    ("every-third", _EVERY_THIRD, _layer(cut=_every_third, join=_in_columns)),
    ("view-alone", _VIEW_ALONE, _layer(cut=_by_view)),
    ("view-alone", _VIEW_ALONE, _layer(cut=_by_view, join=_joined_by_view)),
    (
        "joined-by-view",
        "The heads are joined by a view alone, which mixes up tokens and heads: "
        "exchange the head and token axes first.",
        _layer(join=_joined_by_view),
    ),
    (
        "joined-in-order",
        "You join by `(d_k head)`: W_O expects all numbers of head 0 first, then those "
        "of head 1: `(head d_k)`.",
        _layer(join=_in_columns),
    ),
    (
        "keys-from-queries",
        "You make the keys of the queries. `self.W_K(keys)`: a query may look at other "
        "tokens than those that ask.",
        _layer(sources=("queries", "queries", "values")),
    ),
    (
        "keys-from-queries",
        "You make keys and values of the queries. `self.W_K(keys)` and "
        "`self.W_V(values)`: a query may look at other tokens than those that ask.",
        _layer(sources=("queries", "queries", "queries")),
    ),
    (
        "values-from-keys",
        "You make the values of the keys: `self.W_V(values)`.",
        _layer(sources=("queries", "keys", "keys")),
    ),
    ("mask-inverted", _INVERTED, _layer(hide=lambda mask: mask)),
    (
        "mask-after-softmax",
        "You hide after the softmax, so that the weights that are left no longer sum "
        "to 1. Hide before it: set the hidden scores to -1e9.",
        _layer(late=True),
    ),
    ("unmasked", "The mask is not used.", _layer(hide=None)),
    ("no-W_O", "The joined heads have still to go through W_O.", _layer(project=False)),
]
