"""Exercises of chapter 8: multi-head attention."""

from itertools import product

import torch
from einops import rearrange
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.splits import ADVICE, RIGHT, WRONG
from tutorial_exercises.verdict import false_alarms, first_unseen


@Exercise("8.1", "A test that finds wrong heads")
def is_wrong_split(split):
    """Tell whether split(x, num_heads) gives a head columns that are not its own."""
    x = torch.randn(2, 5, 12)  # (batch, token, d_model)
    right = torch.stack(x.split(4, dim=-1), dim=1)  # (batch, head, token, d_k)
    return not torch.equal(split(x, 3), right)


@is_wrong_split.oracle
def _(split):
    x = torch.arange(2 * 5 * 12).view(2, 5, 12)
    heads = split(x, 3)
    if heads.shape != (2, 3, 5, 4):
        return True
    return any(
        heads[b, head, j, column] != x[b, j, 4 * head + column]
        for b, head, j, column in product(range(2), range(3), range(5), range(4))
    )


@is_wrong_split.demand("returns False for three splits that are right")
def _(answer):
    alarms, inverted = false_alarms(answer, RIGHT, WRONG)
    if inverted:
        return "It is the other way round: True means that the split is wrong."
    if alarms:
        return (
            f"Your test refuses a right split: {alarms[0]}. Head i has the columns from "
            "i · d_k on, in their order, and comes second in (batch, head, token, d_k)."
        )


@is_wrong_split.demand("finds seven wrong splits")
def _(answer):
    return first_unseen(answer, RIGHT, WRONG, ADVICE, "Wrong splits")


is_wrong_split.hints = """
- Write down by slices what should come out, and compare.
- With three heads of four columns, head 1 has `x[..., 4:8]`; which axis holds the heads?
- Take sizes that all differ, such as x (2, 5, 12) and three heads, so that no wrong
  split is right by chance. `torch.equal` compares shapes and entries.
"""

is_wrong_split.mistakes = """
Your test stops at a split of another shape, which is wrong, too. Compare shapes first.
    torch.equal → torch.allclose
    return not torch.equal(split(x, 3), right) → return bool((split(x, 3) != right).any())
`!=` compares two tensors entry by entry. `torch.equal` gives one True or False.
    not torch.equal(split(x, 3), right) → split(x, 3) != right
`split` takes two arguments, x and the number of heads.
    split(x, 3), right → split(x), right
right:
    torch.stack(x.split(4, dim=-1), dim=1) → x.view(2, 5, 3, 4).transpose(1, 2)
"""


@Exercise("8.2", "Seven bugs", axes="batch query d_model")
class SeveralHeads(nn.Module):
    """Multi-head attention that works."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        # 1. and 2. Nobody has set d_k and probability, and neither is needed.
        self.num_heads = num_heads
        # 3. The layers serve all heads at once, so each returns d_model dimensions.
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
        # 7. Nothing concatenates the heads before W_O.
        join = "batch head token d_k -> batch token (head d_k)"
        return self.W_O(rearrange(context, join))


@SeveralHeads.oracle
class _(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, queries, keys, values, mask=None):
        Q, K, V = self.W_Q(queries), self.W_K(keys), self.W_V(values)
        d_k = Q.shape[-1] // self.num_heads
        joined = torch.zeros_like(Q)
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
    mask[..., 0] = True  # every query may attend to something
    yield "a mask holds for every head", (12, 3), *tokens(4, 5), mask
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None, None]
    label = "as many sentences as heads, each with its own mask"
    yield label, (12, 2), *tokens(4, 5), mask.expand(2, 4, 5)


@SeveralHeads.demand("the layer does the same while it is trained")
def _(answer):
    answer.build(12, 3).train()
    answer(*tokens(4, 5))
    if answer.same():
        return "In training mode your output is another. Is there still a dropout?"


@SeveralHeads.demand("gradients reach all four layers")
def _(answer):
    weights = answer.build(12, 3).named_parameters()
    answer(*tokens(4, 5))
    answer.gradients(*(weight for name, weight in weights if name != "W_K.bias"))


SeveralHeads.hints = """
- Nobody sets `self.d_k` and `self.probability`, and you need neither. Each of the four
  layers is `nn.Linear(d_model, d_model)`: it serves all heads at once.
- After the projections split Q, K and V into (batch, head, token, d_k). Then the scores
  have a head axis, and `mask.unsqueeze(1)` is right.
- `masked_fill` fills where its mask is True: give it `~mask`. Each query shares its
  weight among the keys: softmax over the last axis.
- Concatenate the heads before W_O: `rearrange(context, "batch head token d_k -> batch token
  (head d_k)")`.
"""

SeveralHeads.mistakes = """
That is one head: `num_heads` is not used. Split Q, K and V after the projections.
    num_heads = num_heads → num_heads = 1
The softmax runs over the queries. A query's weights sum to 1 over the keys: dim=-1.
    (dim=-1) @ → (dim=-2) @
You divide by the root of d_model. A head's dot products have d_k terms: take √d_k.
    (-2, -1) / Q.shape[-1] ** 0 → (-2, -1) / queries.shape[-1] ** 0
You divide by d_k itself: by its root, `d_k ** 0.5`.
    [-1] ** 0.5 → [-1]
The scores are not divided by the root of d_k.
    (-2, -1) / Q.shape[-1] ** 0.5 → (-2, -1)
The columns of a head do not stand side by side. Split and join by `(head d_k)`.
    token (head d_k) -> batch → token (d_k head) -> batch
A reshape alone gives a head parts of several tokens. Cut the last axis, then transpose.
    scores = Q → Q, K, V = (x.transpose(1, 2).reshape(x.shape) for x in (Q, K, V))
        …
A view alone mixes up tokens and heads. Exchange their two axes before you concatenate.
    rearrange(context, join) → context.reshape(*queries.shape)
You concatenate by `(d_k head)`. W_O expects all columns of head 0 first: `(head d_k)`.
    -> batch token (head d_k) → -> batch token (d_k head)
You make the keys of the queries. Make them of the keys: `self.W_K(keys)`.
    W_K(keys) → W_K(queries)
You make keys and values of the queries: `self.W_K(keys)` and `self.W_V(values)`.
    self.W_K(keys) → self.W_K(queries)
    and self.W_V(values) → self.W_V(queries)
You make the values of the keys: `self.W_V(values)`.
    (values) → (keys)
Your mask is inverted: True means that a query may attend. `masked_fill` takes ~mask.
    scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf) → scores = scores.masked_fill(mask.unsqueeze(1), -torch.inf)
You multiply the scores by the mask, but a score of 0 still gets a weight: take −∞.
    scores.masked_fill(~mask.unsqueeze(1), -torch.inf) → scores * mask.unsqueeze(1)
You mask after the softmax, so the weights no longer sum to 1. Mask the scores instead.
    mask is not None → False
    and (dim=-1) @ V → (dim=-1) * (1 if mask is None else mask.unsqueeze(1)) @ V
The mask is not used.
    mask is not None → False
The concatenated heads must still go through W_O.
    return self.W_O(rearrange(context, join)) → return (rearrange(context, join))
The scores have a head axis: give the mask one, too, by `mask.unsqueeze(1)`.
    .unsqueeze(1) →
Each of the four layers is `nn.Linear(d_model, d_model)`, and there are no others.
    self.W_O = nn.Linear(d_model, d_model) → self.W_O = nn.Linear(d_model // num_heads, d_model // num_heads)
right:
    torch.inf → 1e9
"""


@Exercise("8.3", "What each head contributes", axes="batch head token d_model")
def head_terms(context, W_O):
    """Return what each head adds to the output, without the bias of W_O."""
    num_heads, d_k = context.shape[1], context.shape[-1]
    rows = W_O.weight.T.reshape(num_heads, d_k, -1)  # rows[i] belongs to head i
    return context @ rows  # (batch, head, token, d_model)


@head_terms.oracle
def _(context, W_O):
    terms = []
    for head in range(context.shape[1]):
        alone = torch.zeros_like(context)  # all heads but one are silent
        alone[:, head] = context[:, head]
        joined = alone.transpose(1, 2).flatten(2)
        terms.append(W_O(joined) - W_O(torch.zeros_like(joined)))
    return torch.stack(terms, dim=1)


@head_terms.cases
def _():
    label = "each head adds what W_O makes of its output"
    yield label, torch.randn(2, 3, 5, 4), nn.Linear(12, 12)


head_terms.hints = """
- The concatenated heads times W_Oᵀ: which rows of W_Oᵀ does head 0 meet?
- The first d_k rows of `W_O.weight.T` belong to head 0, the next to head 1.
- `rows = W_O.weight.T.reshape(num_heads, d_k, d_model)`; `context @ rows`.
"""

head_terms.mistakes = """
Each of your terms contains the bias of W_O, which belongs to no head: leave it out.
    rows  # (batch, head, token, d_model) → rows + W_O.bias
nn.Linear multiplies by the transpose of its weight: cut the rows of `W_O.weight.T`.
    .T.reshape → .reshape
Head 0 meets the first d_k rows of W_Oᵀ, which lie side by side, not every h-th row.
    reshape(num_heads, d_k, -1) → reshape(d_k, num_heads, -1).transpose(0, 1)
You return the whole sum; keep one term for each head.
    return context @ rows  # (batch, head, token, d_model) → return (context @ rows).sum(dim=1)
You return the whole sum, and the bias with it; keep one term for each head.
    return context @ rows  # (batch, head, token, d_model) → return W_O(context.transpose(1, 2).flatten(2))
You cut the columns of the output. A head adds to all of them: cut what goes into W_O.
    return context @ rows  # (batch, head, token, d_model) → return (context @ rows).sum(dim=1).unflatten(-1, (num_heads, -1)).transpose(1, 2)
right:
    .T.reshape(num_heads, d_k, -1) → .unflatten(1, (num_heads, d_k)).permute(1, 2, 0)
"""


@Exercise("8.4", "Prune")
def prune(evaluate, num_heads, tolerance):
    """Return the heads that are kept, a list in rising order."""
    kept = list(range(num_heads))
    enough = evaluate(kept) - tolerance
    while len(kept) > 1:
        candidates = []
        for out in kept:
            candidates.append([head for head in kept if head != out])
        best = max(candidates, key=evaluate)
        if evaluate(best) < enough:
            break
        kept = best
    return kept


@prune.oracle
def _(evaluate, num_heads, tolerance):
    kept = list(range(num_heads))
    enough = evaluate(kept) - tolerance
    while len(kept) > 1:
        worth_without = {}
        for head in kept:
            others = [other for other in kept if other != head]
            worth_without[head] = evaluate(others)
        least_needed = max(kept, key=lambda head: (worth_without[head], head))
        if worth_without[least_needed] < enough:
            break
        kept.remove(least_needed)
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
  the best is `max(candidates, key=evaluate)`.
- Stop when the best candidate's score is below `evaluate(all) - tolerance`, with all heads in
  `all`, or when one head is left.
"""

prune.mistakes = """
A loss of exactly `tolerance` is still within the limit: stop only below it.
    (best) < enough: → (best) <= enough:
You take `tolerance` as a share of the score. It is a difference: `evaluate(all) - tolerance`.
    (kept) - tolerance → (kept) * (1 - tolerance)
You look for the smallest set that will do. Take out one head after the other instead.
    enough = evaluate(kept) - tolerance → …
        from itertools import combinations
        for size in range(1, num_heads + 1):
            best = max(combinations(kept, size), key=evaluate)
            if evaluate(best) >= enough:
                return list(best)
You take out the head that is worst alone. Take out the one that the others miss least.
    best = max(candidates, key=evaluate) → best = min(candidates, key=lambda rest: evaluate([i for i in kept if i not in rest]))
You take out several heads at once. Two may do the same work: score anew after each.
    while len(kept) > 1: → kept = [i for i in kept if evaluate([j for j in kept if j != i]) < enough] or [0]
        while False:
You rank the heads once, but what a head is worth changes: score anew after each.
    best = max(candidates, key=evaluate) → apart = {i: evaluate([j for j in range(num_heads) if j != i]) for i in kept}
        best = [i for i in kept if i != max(kept, key=apart.get)]
You try the heads in their order. Of all that are left, take out the least useful one.
    while len(kept) > 1: → for out in range(num_heads):
            fewer = [head for head in kept if head != out]
            kept = fewer if fewer and evaluate(fewer) >= enough else kept
        while False:
You compare with the score one step before, and small losses add up: `evaluate(all)`.
    kept = best → kept, enough = best, evaluate(best) - tolerance
You take out the head whose absence costs most. The best candidate has the highest score.
    best = max(candidates, key=evaluate) → best = min(candidates, key=evaluate)
You stop after one head. Go on as long as the score stays within the limit.
    kept = best → …
        break
You return the heads that were taken out. Return those that are kept.
    return kept → return sorted(set(range(num_heads)) - set(kept))
Keep at least one head.
    len(kept) > 1 → kept
"""


@Exercise("8.5", "The rank of one head")
def one_layer():
    """Q of one head is 100 × 12, and each row of Q Kᵀ is a sum of multiples of the 12 rows
    of Kᵀ, so the rank is at most 12. The four layers have 96² weights and 96 biases
    each, however many heads share them."""
    return {"rank": 12, "parameters": 37_248}


@one_layer.oracle
def _():
    one_head = torch.randn(100, 96 // 8) @ torch.randn(96 // 8, 100)
    four = nn.ModuleList(nn.Linear(96, 96) for _ in range(4))
    return {
        "rank": torch.linalg.matrix_rank(one_head).item(),
        "parameters": sum(weight.numel() for weight in four.parameters()),
    }


one_layer.hints = """
- The scores of a head are Q Kᵀ. How many columns has its Q?
- A product of a (100, d_k) and a (d_k, 100) matrix has rank d_k at most, for each of
  its rows is a sum of multiples of d_k rows.
- Four layers from 96 to 96 dimensions, each with a bias of 96 more parameters.
"""

one_layer.mistakes = """
A head has d_model / h columns of Q, not d_model: the rank is at most that.
    "rank": 12 → "rank": 96
100 is the size of the matrix Q Kᵀ. As Q has d_k columns, its rank is at most d_k.
    "rank": 12 → "rank": 100
Each of the four layers has a bias of 96 parameters, too.
    37_248 → 36864
Those are the parameters of one projection: there are W_Q, W_K, W_V and W_O.
    37_248 → 9312
The heads share the four matrices: the count does not depend on h.
    37_248 → 297984
You count full matrices for each head. It has d_model / h = 12 columns of each of them.
    37_248 → 294912
    37_248 → 297312
There is a fourth layer, W_O, after the heads are concatenated.
    37_248 → 27936
"""
