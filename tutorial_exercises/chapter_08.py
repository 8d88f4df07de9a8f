"""Exercises of chapter 8: multi-head attention."""

import torch
from einops import rearrange
from torch import nn

from tutorial_exercises import Exercise


@Exercise("8.1", "Split the heads", axes="batch head token d_k")
def split_heads(x, num_heads):
    """Cut the last axis of x (batch, token, d_model) into heads."""
    split = "batch token (head d_k) -> batch head token d_k"
    return rearrange(x, split, head=num_heads)


@split_heads.oracle
def _(x, num_heads):
    """Put every number where it belongs, one after the other."""
    d_k = x.shape[-1] // num_heads
    parts = x.new_zeros(x.shape[0], num_heads, x.shape[1], d_k)
    for head in range(num_heads):
        for i in range(d_k):
            parts[:, head, :, i] = x[:, :, head * d_k + i]
    return parts


@split_heads.cases
def _():
    yield "every head gets its own columns of every token", torch.randn(2, 5, 12), 3
    scattered = torch.randn(6, 2, 4).transpose(0, 1)
    yield "also for inputs that do not lie in one piece of memory", scattered, 2


split_heads.hints = """
- First cut the last axis alone: (batch, token, head, d_k). Nothing moves.
- Then the token axis and the head axis change places.
- `x.view(batch, token, num_heads, d_k).transpose(1, 2)`, or with rearrange `"batch
  token (head d_k) -> batch head token d_k"`.
"""

split_heads.mistakes = """
You read the numbers in their old order into new axes, so that a head gets parts of
several tokens. Cut the last axis first, then exchange token and head.
    return rearrange(x, split, head=num_heads) → return x.reshape(len(x), num_heads, x.shape[1], -1)
Head 0 gets columns 0, h, 2h, …: with `(d_k head)` the head runs fastest. Its columns
stand side by side: `(head d_k)`.
    head d_k → d_k head
You cut d_model / h heads of h numbers. Cut h heads, each of d_model / h numbers that
stand side by side.
    return rearrange(x, split, head=num_heads) → return x.unflatten(-1, (-1, num_heads)).movedim(2, 1)
Your axes are (batch, token, head, d_k): token and head have still to change places.
    head token → token head
You fold the heads into the batch. They need an axis of their own: (batch, head, token,
d_k).
    batch head → (…)
Every head has all columns of a token. It gets d_model / h of them, its own.
    return rearrange(x, split, head=num_heads) → return x.unsqueeze(1).expand(-1, num_heads, -1, -1)
right:
    return rearrange(x, split, head=num_heads) → return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    return rearrange(x, split, head=num_heads) → return x.reshape(*x.shape[:2], num_heads, -1).permute(0, 2, 1, 3)
"""


@Exercise("8.2", "Seven bugs", axes="batch query d_model")
class SeveralHeads(nn.Module):
    """Multi-head attention that works."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        # 1. and 2. Nobody has set d_k and probability, and neither is needed.
        self.num_heads = num_heads
        # 3. The layers serve all heads at once, so they lead to d_model numbers.
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)

    def forward(self, queries, keys, values, mask=None):
        """Read (batch, query, d_model); a mask holds for every head."""
        # 4. Nothing cuts the heads apart. With an axis for them the unsqueeze is right.
        split = "batch token (head d_k) -> batch head token d_k"
        Q = rearrange(self.W_Q(queries), split, head=self.num_heads)
        K = rearrange(self.W_K(keys), split, head=self.num_heads)
        V = rearrange(self.W_V(values), split, head=self.num_heads)
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        if mask is not None:  # 5. masked_fill fills where it is True: it takes ~mask
            scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
        # 6. A query shares out its weight over the keys, which are the last axis.
        context = scores.softmax(dim=-1) @ V  # (batch, head, query, d_k)
        # 7. Nothing joins the heads before W_O.
        join = "batch head token d_k -> batch token (head d_k)"
        return self.W_O(rearrange(context, join))


@SeveralHeads.oracle
class _(nn.Module):
    """Compute one head, one query at a time; hidden keys are left out."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, queries, keys, values, mask=None):
        """Go through sentences, heads and queries."""
        Q, K, V = self.W_Q(queries), self.W_K(keys), self.W_V(values)
        d_k, joined = Q.shape[-1] // self.num_heads, torch.zeros_like(Q)
        for b in range(len(Q)):
            for start in range(0, Q.shape[-1], d_k):
                own = slice(start, start + d_k)
                for i, query in enumerate(Q[b, :, own]):
                    seen = slice(None) if mask is None else mask[b, i]
                    scores = (K[b, seen, own] * query).sum(dim=1) / d_k**0.5
                    shares = scores.softmax(dim=0)[:, None]
                    joined[b, i, own] = (shares * V[b, seen, own]).sum(dim=0)
        return self.W_O(joined)


def tokens(queries, keys):
    """Make queries, keys and values of two sentences."""
    return [torch.randn(2, count, 12) for count in (queries, keys, keys)]


@SeveralHeads.cases
def _():
    yield "three heads read what they should", (12, 3), *tokens(4, 4)
    yield "there may be more keys than queries", (12, 3), *tokens(4, 5)
    mask = torch.rand(2, 4, 5) < 0.6
    mask[..., 0] = True  # every query may look at something
    yield "a mask holds for every head", (12, 3), *tokens(4, 5), mask
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None, None]
    label = "as many sentences as heads, each with its own mask"
    yield label, (12, 2), *tokens(4, 5), mask.expand(2, 4, 5)


@SeveralHeads.demand("the layer does the same while it is trained")
def _(answer):
    answer.build(12, 3).train()
    answer(*tokens(4, 5))
    if answer.same():
        return (
            "In training mode your layer returns something else. Is there still a "
            "dropout? This layer has none."
        )


@SeveralHeads.demand("gradients reach all four layers")
def _(answer):
    weights = answer.build(12, 3).named_parameters()
    answer(*tokens(4, 5))
    answer.gradients(*(weight for name, weight in weights if name != "W_K.bias"))


SeveralHeads.hints = """
- `d_k = d_model // num_heads` in `__init__`, but each of the four layers is
  `nn.Linear(d_model, d_model)`: it serves all heads at once.
- After the projections split Q, K and V into (batch, head, token, d_k). Then the scores
  have a head axis, and `mask.unsqueeze(1)` is right.
- `masked_fill` fills where its mask is True: give it `~mask`. Each query shares its
  weight among the keys: softmax over the last axis.
- Join the heads before W_O: `rearrange(context, "batch head token d_k -> batch token
  (head d_k)")`.
"""

SeveralHeads.mistakes = """
That is one head with d_model numbers: `num_heads` is not used. Split Q, K and V after
the projections.
    num_heads = num_heads → num_heads = 1
The softmax runs over the queries. Each query shares out its attention over the keys:
the last axis.
    (dim=-1) @ → (dim=-2) @
The softmax runs over the heads. Each head shares out its own attention over the keys:
the last axis.
    (dim=-1) → (dim=1)
You divide by the root of d_model. The products of a head are sums over its own d_k
numbers: take the root of d_k.
    (-2, -1) / Q.shape[-1] ** 0 → (-2, -1) / queries.shape[-1] ** 0
You divide by d_k itself: by its root, `d_k ** 0.5`.
    [-1] ** 0.5 → [-1]
The scores are not divided by the root of d_k.
    (-2, -1) / Q.shape[-1] ** 0.5 → (-2, -1)
The columns of a head do not stand side by side: with `(d_k head)` the head runs
fastest. Cut and join by `(head d_k)`.
    token (head d_k) -> batch → token (d_k head) -> batch
    token (head d_k) -> batch → token (d_k head) -> batch
    and -> batch token (head d_k) → -> batch token (d_k head)
You read the numbers in their old order into new axes, so that a head gets parts of
several tokens. Cut the last axis first, then exchange token and head.
    split = "batch token (head d_k) -> batch head token d_k" → def cut(part):
            return part.reshape(len(part), self.num_heads, part.shape[1], -1)
    and Q = rearrange(self.W_Q(queries), split, head=self.num_heads) → Q = cut(self.W_Q(queries))
    and K = rearrange(self.W_K(keys), split, head=self.num_heads) → K = cut(self.W_K(keys))
    and V = rearrange(self.W_V(values), split, head=self.num_heads) → V = cut(self.W_V(values))
    split = "batch token (head d_k) -> batch head token d_k" → def cut(part):
            return part.reshape(len(part), self.num_heads, part.shape[1], -1)
    and Q = rearrange(self.W_Q(queries), split, head=self.num_heads) → Q = cut(self.W_Q(queries))
    and K = rearrange(self.W_K(keys), split, head=self.num_heads) → K = cut(self.W_K(keys))
    and V = rearrange(self.W_V(values), split, head=self.num_heads) → V = cut(self.W_V(values))
    and rearrange(context, join) → context.reshape(*queries.shape)
The heads are joined by a view alone, which mixes up tokens and heads: exchange the head
and token axes first.
    rearrange(context, join) → context.reshape(*queries.shape)
You join by `(d_k head)`: W_O expects all numbers of head 0 first, then those of head 1:
`(head d_k)`.
    -> batch token (head d_k) → -> batch token (d_k head)
You make the keys of the queries. `self.W_K(keys)`: a query may look at other tokens
than those that ask.
    W_K(keys) → W_K(queries)
You make keys and values of the queries. `self.W_K(keys)` and `self.W_V(values)`: a
query may look at other tokens than those that ask.
    self.W_K(keys) → self.W_K(queries)
    and self.W_V(values) → self.W_V(queries)
You make the values of the keys: `self.W_V(values)`.
    (values) → (keys)
Your mask is inverted: True means that a query may look. `masked_fill` wants the places
to hide, ~mask; `masked_softmax` takes the mask as it is.
    scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf) → scores = scores.masked_fill(mask.unsqueeze(1), -torch.inf)
You multiply the scores by the mask, and a score of 0 still gets a weight. Set the
hidden scores to −∞.
    scores.masked_fill(~mask.unsqueeze(1), -torch.inf) → scores * mask.unsqueeze(1)
You hide after the softmax, so that the weights that are left no longer sum to 1. Hide
before it: set the hidden scores to −∞.
    context = scores.softmax(dim=-1) @ V  # (batch, head, query, d_k) → shown = 1 if mask is None else mask.unsqueeze(1)
        scores = Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5
        context = (scores.softmax(dim=-1) * shown) @ V  # (batch, head, query, d_k)
The mask is not used.
    mask is not None → False
The joined heads have still to go through W_O.
    return self.W_O(rearrange(context, join)) → return (rearrange(context, join))
The mask is (batch, query, key), but the scores have a head axis: give it one, too,
`mask.unsqueeze(1)`.
    .unsqueeze(1) →
Each of the four layers is `nn.Linear(d_model, d_model)`, and there is nothing else to
learn.
    self.W_O = nn.Linear(d_model, d_model) → pass
    self.W_O = nn.Linear(d_model, d_model) → self.W_O = nn.Linear(d_model // num_heads, d_model // num_heads)
right:
    torch.inf → 1e9
    .unsqueeze(1), -torch.inf → [:, None], float("-inf")
"""


@Exercise("8.3", "Who said what", axes="batch head token d_model")
def head_terms(context, W_O):
    """Return what each head adds to the output, without the bias of W_O."""
    num_heads, d_k = context.shape[1], context.shape[-1]
    rows = W_O.weight.T.reshape(num_heads, d_k, -1)  # rows[i] belongs to head i
    return context @ rows  # (batch, head, token, d_model)


@head_terms.oracle
def _(context, W_O):
    """Let all heads but one be silent, one after the other."""
    batch, num_heads, tokens, d_k = context.shape
    found = []
    for head in range(num_heads):
        joined = context.new_zeros(batch, tokens, num_heads * d_k)
        joined[..., head * d_k : (head + 1) * d_k] = context[:, head]
        found.append(W_O(joined) - (0 if W_O.bias is None else W_O.bias))
    return torch.stack(found, dim=1)


@head_terms.cases
def _():
    label = "each head adds what W_O makes of its numbers"
    yield label, torch.randn(2, 3, 5, 4), nn.Linear(12, 12)


head_terms.hints = """
- The joined heads times W_Oᵀ: which rows of W_Oᵀ does head 0 meet?
- The first d_k rows of `W_O.weight.T` belong to head 0, the next to head 1.
- `rows = W_O.weight.T.reshape(num_heads, d_k, d_model)`; `context @ rows`.
"""

head_terms.mistakes = """
Each of your terms contains the bias of W_O, so that their sum contains it once for
every head. Leave it out.
    rows  # (batch, head, token, d_model) → rows + W_O.bias
You share the bias of W_O out among the heads. It belongs to none of them: leave it out.
    rows  # (batch, head, token, d_model) → rows + W_O.bias / num_heads
You cut `W_O.weight`, but nn.Linear multiplies by its transpose: cut the rows of
`W_O.weight.T`.
    .T.reshape → .reshape
Head 0 meets the first d_k rows of W_Oᵀ, which lie side by side, not every h-th row.
    reshape(num_heads, d_k, -1) → reshape(d_k, num_heads, -1).transpose(0, 1)
You return the whole sum; keep one term for each head.
    return context @ rows  # (batch, head, token, d_model) → return (context @ rows).sum(dim=1)
You return the whole sum, and the bias with it; keep one term for each head.
    return context @ rows  # (batch, head, token, d_model) → return W_O(context.transpose(1, 2).flatten(2))
You cut the finished output into columns. A head adds to all d_model of them: cut what
goes into W_O.
    return context @ rows  # (batch, head, token, d_model) → return split_heads((context @ rows).sum(dim=1), num_heads)
You share the output equally among the heads. Each adds what W_O makes of its own
numbers.
    return context @ rows  # (batch, head, token, d_model) → return (context @ rows).mean(1, keepdim=True).expand(-1, num_heads, -1, -1)
right:
    .T.reshape(num_heads, d_k, -1) → .unflatten(1, (num_heads, d_k)).permute(1, 2, 0)
"""


@Exercise("8.4", "Prune")
def prune(score, num_heads, loss):
    """Return the heads that are kept, a list in rising order."""
    kept = list(range(num_heads))
    enough = score(kept) - loss
    while len(kept) > 1:
        candidates = [[head for head in kept if head != out] for out in kept]
        best = max(candidates, key=score)
        if score(best) < enough:
            break
        kept = best
    return kept


@prune.oracle
def _(score, num_heads, loss):
    """Score every candidate, and go on with the best while it is good enough."""
    kept = list(range(num_heads))
    enough = score(kept) - loss
    while len(kept) > 1:
        scored = [(score([j for j in kept if j != i]), i) for i in kept]
        best, out = max(scored)
        if best < enough:
            break
        kept.remove(out)
    return kept


def worth(heads, pairs=()):
    """Return a score: what heads, and pairs of which one will do, are worth."""

    def score(kept):
        total = sum(heads[i] for i in kept)
        return total + sum(value * (i in kept or j in kept) for i, j, value in pairs)

    return score


@prune.cases
def _():
    yield "a head that is worth nothing goes", worth([0.5, 0.001, 0.4]), 3, 0.02
    score = worth([0.4, 0.01, 0.02], [(1, 2, 0.5)])
    yield "of two heads of which one will do, one stays", score, 3, 0.05
    score = worth([0.04, 0.5, 0.03, 0.01, 0.012, 0.005], [(3, 4, 0.5)])
    yield "the losses together stay within the limit", score, 6, 0.05
    # All sums of these are exact, so that two scores can be equal.
    score = worth([0.5, 0.0, 0.25])
    yield "a head may cost exactly as much as may be lost", score, 3, 0.0
    yield "the limit is a difference, not a ratio", worth([0.9, 0.06, 1.0]), 3, 0.05
    score = worth([0.0, 0.02, 0.03], [(0, 1, 0.4), (0, 2, 0.4)])
    yield "one head goes after the other, whatever other sets would do", score, 3, 0.1
    yield "several heads may go", worth([0.01, 0.5, 0.02, 0.004, 0.4]), 5, 0.05
    yield "one head is kept, whatever it is worth", worth([0.1, 0.3, 0.2]), 3, 2.0


prune.hints = """
- `kept = list(range(num_heads))`, and a loop that takes out one head at a time.
- Every candidate is `[head for head in kept if head != out]` for one `out` in `kept`;
  the best is `max(candidates, key=score)`.
- Stop when the best candidate's score is below `score(all) - loss`, with all heads in
  `all`, or when one head is left.
"""

prune.mistakes = """
You stop at a score that is just good enough. A loss of exactly `loss` is still within
the limit: stop only below it.
    (best) < enough: → (best) <= enough:
You take `loss` as a share of the score of all heads. It is a difference: `score(all) -
loss`.
    (kept) - loss → (kept) * (1 - loss)
You look for the smallest set of heads that will do. The exercise takes out one head
after the other, always the one whose loss hurts least.
    enough = score(kept) - loss → …
        from itertools import combinations
        for size in range(1, num_heads + 1):
            best = max(combinations(kept, size), key=score)
            if score(best) >= enough:
                return list(best)
You take out the head that has the lowest score alone. Another may do the same work:
take out the one without which the others have the highest score.
    best = max(candidates, key=score) → best = min(candidates, key=lambda rest: score([i for i in kept if i not in rest]))
You take out every head that can be spared by itself, all at once. Two heads may do the
same work: score anew after each.
    while len(kept) > 1: → kept = [i for i in kept if score([j for j in kept if j != i]) < enough] or [0]
        while False:
You rank the heads once. What a head is worth changes when another has gone: score all
that are left anew after each.
    while len(kept) > 1: → order = sorted(kept, key=lambda i: score([j for j in kept if j != i]))
        while len(kept) > 1:
            if score([i for i in kept if i != order[-1]]) < enough:
                break
            kept.remove(order.pop())
        while False:
You take the heads in their order, each that can be spared when its turn comes. Of all
that are left, take out the one whose loss hurts least.
    while len(kept) > 1: → for out in range(num_heads):
            fewer = [head for head in kept if head != out]
            kept = fewer if fewer and score(fewer) >= enough else kept
        while False:
You compare with the score before the last step, so that small losses add up. Compare
with the score of all heads.
    kept = best → kept, enough = best, score(best) - loss
You take a head out and look at the score afterwards, when it is gone: keep it if the
score would fall too far.
    if score(best) < enough: → kept = best
        …
You take out the head whose loss hurts most: the best candidate is the one with the
highest score.
    best = max(candidates, key=score) → best = min(candidates, key=score)
You stop after one head. Go on as long as the score stays within the limit.
    kept = best → …
        break
You return the heads that were taken out. Return those that are kept.
    return kept → return sorted(set(range(num_heads)) - set(kept))
Return the list of the heads that are kept.
    return kept → return len(kept)
Keep at least one head.
    len(kept) > 1 → kept
right:
    (kept) > 1: → (kept) != 1:
    return kept → return tuple(kept)
"""


@Exercise("8.5", "How much can one head say?")
def one_layer():
    """Q of one head is 100 × 8, and each row of Q Kᵀ is a sum of multiples of the 8 rows
    of Kᵀ, so the rank is at most 8. The four layers have 64² weights and 64 biases
    each, however many heads share them."""
    return {"rank": 8, "parameters": 16_640}


@one_layer.oracle
def _():
    """Count the columns of a head, and the weights of four square layers."""
    one_head = torch.randn(100, 64 // 8) @ torch.randn(64 // 8, 100)
    rank = torch.linalg.matrix_rank(one_head).item()
    four = [nn.Linear(64, 64) for _ in range(4)]
    return {
        "rank": rank,
        "parameters": sum(p.numel() for one in four for p in one.parameters()),
    }


one_layer.hints = """
- The scores of a head are Q Kᵀ. How many columns has its Q?
- A product of a (100, d_k) and a (d_k, 100) matrix has rank d_k at most, for each of
  its rows is a sum of multiples of d_k rows.
- Four layers from 64 to 64 numbers, each with a bias of 64 numbers.
"""

one_layer.mistakes = """
A head has d_model / h columns of Q, not d_model: the rank is at most that.
    "rank": 8 → "rank": 64
100 is the size of the matrix. It is the product of a matrix with d_k columns and one
with d_k rows: its rank is at most d_k.
    "rank": 8 → "rank": 100
Each of the four layers has a bias of 64 numbers, too.
    16_640 → 16384
The heads share the four matrices: the count does not depend on h.
    16_640 → 133120
You give each head matrices of full width, and so count eight times. A head has d_model
/ h = 8 columns of each matrix, and all heads together one square matrix.
    16_640 → 131072
    16_640 → 132672
    16_640 → 102400
    16_640 → 104000
There is a fourth layer, W_O, which joins the heads.
    16_640 → 12480
"""
