"""Checks for chapter 13: reading attention honestly.

The definitions here are slow loops; this module does not know the vectorized ones.
"""

import math

import torch

from tutorial_exercises.exercise import Exercise

__all__ = ["back", "backward", "covering", "follow"]


follow = Exercise(
    "13.1",
    "Rollout",
    name="attention_rollout",
    returns="batch query key",
    fallback="tutorial_lib.ablation:rollout",
    hints=[
        "Begin with the identity: before the first layer every token is itself.",
        "In a layer a token is half what it reads and half itself: the mean over the "
        "heads plus the identity, divided by 2.",
        "The second layer reads what the first has made: multiply it from the left, "
        "`half @ total`.",
    ],
)


@follow.spec
def attention_rollout(maps):
    """Let every token collect what its sources have collected."""
    batch, heads, tokens, _ = maps[0].shape
    total = torch.eye(tokens).repeat(batch, 1, 1)
    for weights in maps:
        after = torch.zeros(batch, tokens, tokens)
        for b in range(batch):
            for i in range(tokens):
                after[b, i] += total[b, i] / 2
                for j in range(tokens):
                    share = sum(weights[b, h, i, j] for h in range(heads)) / heads
                    after[b, i] += share * total[b, j] / 2
        total = after
    return total


def _maps(layers, batch=2, heads=3, tokens=4):
    maps = 2 * torch.randn(layers, batch, heads, tokens, tokens)
    return [*maps.softmax(dim=-1)]


@follow.step("one layer")
def _(probe):
    probe.shape(probe(_maps(1)), batch=2, query=4, key=4)
    probe.same()


@follow.step("two layers and three, one after the other")
def _(probe):
    for layers in (2, 3):
        found = probe(_maps(layers))
        probe.same()
        probe.sums_to_one(found)


@follow.step("as many heads as words")
def _(probe):
    probe(_maps(2, batch=3, heads=3, tokens=3))
    probe.same()


back = Exercise(
    "13.2",
    "A head by hand",
    name="look_back",
    returns={"W_Q": "place d_k", "W_K": "place d_k"},
    hints=[
        "Word i is row i of the identity, so its query is row i of W_Q and its key row "
        "i of W_K: you write all queries and keys down directly.",
        "Query i shall meet key i - 1 and no other. Let query i be the vector i of the "
        "identity: then key i - 1 has to be that vector, too.",
        "A score of 1 decides little. Make one matrix large: ten times the root of "
        "`tokens`, since the scores are divided by it.",
    ],
)


@back.spec
def look_back(tokens):
    """Write one pair of matrices of the many that do it."""
    W_Q, W_K = torch.zeros(2, tokens, tokens)
    for i in range(tokens):
        W_Q[i, i] = 10 * math.sqrt(tokens)
        if i > 0:
            W_K[i - 1, i] = 1
    return W_Q, W_K


def _looks(probe, tokens):
    """Return the weights (token, token) of a causal head with the student's W."""
    W_Q, W_K = probe(tokens)
    probe.shape(W_Q, place=tokens, d_k=tokens)
    probe.shape(W_K, place=tokens, d_k=tokens)
    scores = W_Q @ W_K.mT / math.sqrt(tokens)  # of the words' places, the identity
    later = torch.ones(tokens, tokens).triu(1).bool()
    return scores.masked_fill(later, -torch.inf).softmax(dim=-1)


_WAYS = {
    0: ("itself", "Every word looks at itself: shift one of the two matrices by one."),
    2: ("two-back", "Your words look two back: you have shifted both matrices."),
}


@back.step("every word but the first looks one back")
def _(probe):
    weights = _looks(probe, 6)
    probe.require(
        bool(weights.isfinite().all()), "not-finite", "Your weights are not finite."
    )
    for far, (code, message) in _WAYS.items():
        seen = weights.diagonal(-far)[1:]
        probe.require(not bool((seen > 0.9).all()), code, message)
    even = 1 / torch.arange(1, len(weights) + 1)
    probe.require(
        not probe.close(weights.max(dim=-1).values, even),
        "even",
        "No word that may be seen gets more than another. Either all scores are the "
        "same, or they are high for the word after, which is hidden.",
    )
    one_back = weights.diagonal(-1)
    told = f"the word before gets {one_back.min():.2f} where it gets least."
    probe.require(
        bool((one_back > weights.max(dim=-1).values[1:] - 1e-6).all()),
        "elsewhere",
        f"Some word looks hardest at another than the one before it; {told}",
    )
    probe.require(
        bool((one_back > 0.99).all()),
        "weak",
        f"It looks back, but weakly: {told} Above 0.99 is asked for. Make the scores "
        "larger.",
    )


@back.step("in texts of other lengths")
def _(probe):
    for tokens in (2, 3, 24):
        weights = _looks(probe, tokens)
        probe.require(
            bool((weights.diagonal(-1) > 0.99).all()),
            "other-lengths",
            f"With {tokens} words some get less than 0.99 on the word before. The "
            "scores are divided by the root of `tokens`.",
        )


backward = Exercise(
    "13.3",
    "The slopes of attention",
    name="attention_slopes",
    returns={"d_Q": "query d_k", "d_K": "key d_k", "d_V": "key d_v"},
    hints=[
        "Backwards through `outputs = weights @ V`: the slope of V is `weights.mT @ "
        "d_outputs`, that of the weights `d_outputs @ V.mT`.",
        "Through the softmax, row by row: `weights * (d_weights - means)`, where "
        "`means` is the mean of d_weights, weighted by the weights.",
        "Through `Q @ K.mT * scale`: the slope of Q is `d_scores @ K`, that of K "
        "`d_scores.mT @ Q`, and both are scaled.",
    ],
)


@backward.spec
def attention_slopes(Q, K, V, d_outputs):
    """Let autograd do it, number by number of the outputs."""
    with torch.enable_grad():
        rows = [x.detach().clone().requires_grad_() for x in (Q, K, V)]
        scores = rows[0] @ rows[1].mT / math.sqrt(K.shape[-1])
        powers = (scores - scores.detach().max()).exp()
        outputs = powers / powers.sum(dim=-1, keepdim=True) @ rows[2]
        return torch.autograd.grad((outputs * d_outputs).sum(), rows)


def _slopes(queries, keys, d_k, d_v):
    Q, K, V = (torch.randn(n, d) for n, d in ((queries, d_k), (keys, d_k), (keys, d_v)))
    return Q, K, V, torch.randn(queries, d_v)


@backward.step("all sizes alike, so that a transpose can be told")
def _(probe):
    probe(*_slopes(4, 4, 4, 4))
    probe.same()


@backward.step("three queries, four keys")
def _(probe):
    d_Q, d_K, d_V = probe(*_slopes(3, 4, 5, 2))
    probe.shape(d_Q, query=3, d_k=5)
    probe.shape(d_K, key=4, d_k=5)
    probe.shape(d_V, key=4, d_v=2)
    probe.same()


@backward.step("one query, and one key")
def _(probe):
    for sizes in ((1, 5, 2, 3), (3, 1, 4, 2)):
        probe(*_slopes(*sizes))
        probe.same()


covering = Exercise(
    "13.4",
    "Does an explanation survive?",
    name="covered_fall",
    returns="batch",
    hints=[
        "`shares.topk(k, dim=-1).indices` are the places to cover, k in each text.",
        "`inputs.scatter(1, places, blank)` returns a copy with blanks there; the "
        "inputs stay as they are.",
        "How far the answer falls: `answer(inputs) - answer(covered)`. Ask with all k "
        "tokens covered at once.",
    ],
)


@covering.spec
def covered_fall(answer, inputs, shares, k, blank):
    """Cover the largest shares one by one, then ask."""
    covered = inputs.clone()
    for row, share in zip(covered, shares, strict=True):
        order = sorted(range(len(share)), key=lambda place: -float(share[place]))
        for place in order[:k]:
            row[place] = blank
    return answer(inputs) - answer(covered)


def _texts(batch, tokens):
    """Return texts and shares; no two shares of a text are equal in size."""
    words = torch.randint(1, 9, (batch, tokens))
    sizes = torch.stack([torch.randperm(tokens) for _ in range(batch)]) + 1.0
    signs = torch.randint(2, (batch, tokens)) * 2 - 1
    return words, sizes * signs


def _product(words):
    """Answer with something in which words depend on each other."""
    x = words.float()
    return x.sqrt().sum(dim=1) + (x[:, 1:] * x[:, :-1]).sum(dim=1)


@covering.step("one token of each text")
def _(probe):
    words, shares = _texts(4, 6)
    probe.shape(probe(_product, words, shares, 1, 9), batch=4)
    probe.same()


@covering.step("several tokens at once")
def _(probe):
    for k, blank in ((2, 0), (3, 7), (5, 1)):
        probe(_product, *_texts(5, 5), k, blank)
        probe.same()


@covering.step("nothing is covered, nothing falls")
def _(probe):
    probe(_product, *_texts(3, 4), 0, 0)
    probe.same()
