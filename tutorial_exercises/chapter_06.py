"""Exercises of chapter 6: Bahdanau attention."""

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_lib.attention import AdditiveAttention, masked_softmax
from tutorial_lib.masks import padding_mask


@Exercise("6.1", "Project the keys once", axes="batch query d_hidden")
def unroll(attention, cell, hidden, encoder_outputs, mask, steps):
    """Attend and step in turn; return the hidden states (batch, query, d_hidden)."""
    keys = attention.W_K(encoder_outputs)  # (batch, key, d_attention), only once
    states = []
    for _ in range(steps):
        context = attention.attend(hidden.unsqueeze(1), keys, encoder_outputs, mask)
        hidden = cell(context.squeeze(1), hidden)
        states.append(hidden)
    return torch.stack(states, dim=1)


@unroll.oracle
def _(attention, cell, hidden, encoder_outputs, mask, steps):
    keys = attention.W_K(encoder_outputs)
    states = []
    for _ in range(steps):
        contexts = torch.zeros(len(encoder_outputs), encoder_outputs.shape[2])
        for b, query in enumerate(attention.W_Q(hidden)):
            seen = mask[b, 0]
            hidden_units = [torch.tanh(query + key) for key in keys[b, seen]]
            scores = attention.w_v(torch.stack(hidden_units))[:, 0]
            contexts[b] = scores.softmax(dim=0) @ encoder_outputs[b, seen]
        hidden = cell(contexts, hidden)
        states.append(hidden)
    return torch.stack(states, dim=1)


def translator(*lengths):
    """Make all inputs of `unroll` but the last, with sizes that all differ."""
    attention = AdditiveAttention(3, 4, 6)
    cell = nn.GRUCell(4, 3)
    for weight in attention.parameters():
        nn.init.normal_(weight)
    hidden = torch.randn(len(lengths), 3)
    encoder_outputs = torch.randn(len(lengths), 5, 4)
    return attention, cell, hidden, encoder_outputs, padding_mask(lengths, 5)


@unroll.cases
def _():
    for lengths in ([5, 5], [5, 2], [4]):
        yield "the hidden states are right, padding or not", *translator(*lengths), 4


@unroll.demand("W_K is called once, whatever the number of steps")
def _(answer):
    attention, *others = translator(5, 3)
    calls = []
    attention.W_K.register_forward_hook(lambda *_: calls.append(1))
    answer(attention, *others, 7)
    if len(calls) != 1:
        return (
            f"In 7 steps `attention.W_K` is called {len(calls)} times. The keys do not "
            "change: call `attention.W_K(encoder_outputs)` once, before the loop."
        )


unroll.hints = """
- What does not change from step to step? Compute that before the loop.
- `attention.W_K(encoder_outputs)` projects all keys; `attention.attend` takes projected keys.
- In the loop: `attention.attend(hidden.unsqueeze(1), keys, encoder_outputs, mask)`.
"""

unroll.mistakes = """
Your queries attend to the padding, too: pass the mask on to `attention.attend`.
    keys, encoder_outputs, mask → keys, encoder_outputs
The query of every step is your first hidden state. Use the current one, `hidden`.
    states = [] → states, first = [], hidden
    and hidden.unsqueeze(1) → first.unsqueeze(1)
Every step of the cell starts from the first hidden state. Give it the current one.
    states = [] → states, first = [], hidden
    and (context.squeeze(1), hidden) → (context.squeeze(1), first)
Your `hidden` never changes. Assign to it what the cell returns, for the next step.
    hidden = cell(context.squeeze(1), hidden) → states.append(cell(context.squeeze(1), hidden))
    and states.append(hidden) →
Your first state is the one you were given. Keep the state after each step.
    states.append(hidden) →
    and hidden = cell(context.squeeze(1), hidden) → states.append(hidden)
        …
You step first and use the state after the step as the query, as Luong does. Here the
query is the state before the step.
    context = attention.attend(hidden.unsqueeze(1), keys, encoder_outputs, mask) → hidden = cell(context[:, 0] if states else encoder_outputs[:, 0] * 0, hidden)
    and hidden = cell(context.squeeze(1), hidden) → context = attention.attend(hidden.unsqueeze(1), keys, encoder_outputs, mask)
You return the context vectors. Return the hidden states computed from them.
    states.append(hidden) → states.append(context.squeeze(1))
The query needs one more axis, (batch, 1, d_hidden): `hidden.unsqueeze(1)`.
    hidden.unsqueeze(1) → hidden
    hidden.unsqueeze(1) → hidden
    and context.squeeze(1) → context[:, 0]
    hidden.unsqueeze(1) → hidden[None]
    and context.squeeze(1) → context[0]
`attention.attend` takes projected keys: `attention.W_K(encoder_outputs)`.
    attention.W_K(encoder_outputs) → encoder_outputs
The keys go through `attention.W_K`; `attention.W_Q` is for the query.
    attention.W_K(encoder_outputs) → attention.W_Q(encoder_outputs)
The values are the encoder outputs themselves, not the projected keys.
    keys, encoder_outputs, mask → keys, keys, mask
With a batch of one sentence `squeeze()` removes the batch axis, too: use `squeeze(1)`.
    context.squeeze(1) → context.squeeze()
right:
    context.squeeze(1) → context[:, 0]
    hidden.unsqueeze(1) → hidden[:, None]
"""


@Exercise("6.2", "Who knows the next word?")
def changed_positions():
    """Reading forward, the hidden states before "bird" do not change; reading backward,
    those after it do not. An encoder output is both hidden states side by side, so each
    of them depends on the whole sentence: the encoder output of "white" can contain
    information about the noun that follows."""
    return {"forward": [2, 3], "backward": [0, 1, 2], "both": [0, 1, 2, 3]}


@changed_positions.oracle
def _():
    changed = 2
    positions = range(4)
    forward = [j for j in positions if changed in positions[: j + 1]]
    backward = [j for j in positions if changed in positions[j:]]
    return {"forward": forward, "backward": backward, "both": [*positions]}


@changed_positions.demand("the positions that change")
def _(answer):
    given = answer()
    try:  # in any order, and in sets, ranges or tensors
        lists = {name: sorted(set(map(int, given[name]))) for name in given}
    except (TypeError, ValueError, IndexError, OverflowError):
        lists = {}
    if lists.keys() != {"forward", "backward", "both"}:
        return "Answer with {'forward': [...], 'backward': [...], 'both': [...]}."
    for name, positions in lists.items():
        if not {*positions} <= {0, 1, 2, 3}:
            return (
                "Positions are counted from 0: *the* has position 0, *sleeps* position "
                f"3. Your list for {name!r} is {positions}."
            )
    answer.output = lists
    return answer.same()


changed_positions.hints = """
- A hidden state depends only on the words read so far.
- Forward, the state at position 2 changes and every one after it; backward, before it.
- An encoder output is both hidden states side by side: it changes if one of them does.
"""

changed_positions.mistakes = """
You have swapped the directions: reading forward, the hidden states before *bird* do not
depend on it.
    "forward": [2, 3] → "forward": [0, 1, 2]
    and "backward": [0, 1, 2] → "backward": [2, 3]
The hidden state at *bird* itself is computed from *bird*: position 2 changes in both
directions.
    "forward": [2, 3] → "forward": [3]
    and "backward": [0, 1, 2] → "backward": [0, 1]
    and "both": [0, 1, 2, 3] → "both": [0, 1, 3]
Only the embedding at position 2 changes, but each hidden state is computed from the one
before it, so the change is carried on.
    "forward": [2, 3] → "forward": [2]
    and "backward": [0, 1, 2] → "backward": [2]
An encoder output is both hidden states side by side, so it changes if either does.
    "both": [0, 1, 2, 3] → "both": [2]
    "both": [0, 1, 2, 3] → "both": [0, 1, 2]
    "both": [0, 1, 2, 3] → "both": [1, 2, 3]
    "both": [0, 1, 2, 3] → "both": [2, 3]
Backward: *sleeps*, at position 3, is read before *bird*. From *bird* on, towards the
start of the sentence, each hidden state is computed from the one before.
    "backward": [0, 1, 2] → "backward": [0, 1, 2, 3]
    "backward": [0, 1, 2] → "backward": [1, 2]
    "backward": [0, 1, 2] → "backward": [3]
Forward: the words at positions 0 and 1 are read before *bird*. From *bird* on, each
hidden state is computed from the one before.
    "forward": [2, 3] → "forward": [0, 1, 2, 3]
    "forward": [2, 3] → "forward": [1, 2, 3]
    "forward": [2, 3] → "forward": [1, 2]
    "forward": [2, 3] → "forward": [0, 1]
Positions are counted from 0: *bird* has position 2, and *sleeps*, which a backward
encoder reads first, position 3.
    "forward": [2, 3] → "forward": [3, 4]
    and "backward": [0, 1, 2] → "backward": [1, 2, 3]
    and "both": [0, 1, 2, 3] → "both": [1, 2, 3, 4]
    "forward": [2, 3] → "forward": [2, 3, 4]
"""


@Exercise("6.3", "The alignment error rate")
def alignment_error(weights, sure, possible):
    """Return the alignment error rate of the links with the largest weights."""
    hits = total = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        links = set(enumerate(sentence.argmax(dim=-1).tolist()))
        hits += len(links & certain) + len(links & (allowed | certain))
        total += len(links) + len(certain)
    return 1 - hits / total


@alignment_error.oracle
def _(weights, sure, possible):
    hits = total = 0
    for sentence, certain, allowed in zip(weights, sure, possible, strict=True):
        for i, row in enumerate(sentence.tolist()):
            link = (i, row.index(max(row)))
            hits += (link in certain) + (link in certain or link in allowed)
            total += 1
        total += len(certain)
    return 1 - hits / total


@alignment_error.cases
def _():
    rows = [[7, 2, 1], [3, 1, 6], [1, 5, 4], [0, 2, 8], [8, 1, 1]]
    maps = torch.tensor(rows) / 10
    sure = {(0, 0), (1, 2), (2, 1), (3, 2), (3, 1), (4, 1)}
    yield "one sentence, sure links only", [maps], [sure], [sure]
    possible = {(4, 0), (1, 0), (0, 0)}
    yield "possible links are not errors", [maps], [sure], [possible]
    sure = [{(0, 0), (1, 1), (2, 0)}, {(0, 1)}]
    possible = [{(1, 2), (0, 0)}, set()]
    yield "sentences are pooled, not averaged", [maps, maps[:1]], sure, possible


alignment_error.hints = """
- First find the links: for each target token the source token with the largest weight,
  as a set of pairs (target, source).
- A sure link is possible, too: `possible = possible | sure`.
- With sets, `links & sure` is the intersection. All sentences share one fraction.
"""

alignment_error.mistakes = """
You return the rate of agreement. The error rate is 1 minus it.
    return 1 - hits → return hits
A link that is sure counts twice in the numerator, in |A ∩ S| and in |A ∩ P|.
    len(links & certain) + len(links & (allowed | certain)) → len(links & (allowed | certain))
A sure link counts as possible, even if `possible` lacks it: `possible | sure`.
    (allowed | certain) → allowed
You do not use the possible links. A possible link that is found is right, too.
    (allowed | certain) → certain
You put the links of all sentences into one set, where (0, 0) of two sentences becomes a
single link. Count in each sentence, then add up the counts.
    hits = total = 0 → A, S, P = set(), set(), set()
    and hits += len(links & certain) + len(links & (allowed | certain)) → A, S, P = A | links, S | certain, P | allowed | certain
    and total += len(links) + len(certain) → hits, total = len(A & S) + len(A & P), len(A) + len(S)
You average the error rates of the sentences. Add up all counts, and divide once.
    total += len(links) + len(certain) → total += hits / (len(links) + len(certain))
        hits = 0
    and hits / total → total / len(weights)
The denominator is |A| + |S|: a possible link that is not found is not an error.
    len(links) + len(certain) → len(links) + len(allowed | certain)
You take every weight above 0.5. Each target token has one link, to the source token
of largest weight.
    set(enumerate(sentence.argmax(dim=-1).tolist())) → {(i, j) for i, row in enumerate(sentence) for j, w in enumerate(row) if w > 0.5}
You take the largest weight of each source token, over `dim=0`. Take that of each target
token, over `dim=-1`.
    set(enumerate(sentence.argmax(dim=-1).tolist())) → set(enumerate(sentence.argmax(dim=0).tolist()))
    set(enumerate(sentence.argmax(dim=-1).tolist())) → {(i, j) for j, i in enumerate(sentence.argmax(dim=0).tolist())}
Your links are (source, target), but the gold links are (target, source).
    set(enumerate(sentence.argmax(dim=-1).tolist())) → {(j, i) for i, j in enumerate(sentence.argmax(dim=-1).tolist())}
None of your links is found in the sets. Do your links contain tensors, as `argmax`
returns them? A set never finds a tensor in place of a number: use `.tolist()`.
    sentence.argmax(dim=-1).tolist() → sentence.argmax(dim=-1)
right:
    links & (allowed | certain) → links & allowed.union(certain)
"""


@Exercise("6.4", "A dot product instead", axes="batch query d_v")
class DotProductAttention(nn.Module):
    """Attention that scores by (q W_Q) · (k W_K) / √d_hidden."""

    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def forward(self, queries, keys, values, mask=None):
        """Project the keys, then attend."""
        return self.attend(queries, self.W_K(keys), values, mask)

    def attend(self, queries, projected_keys, values, mask=None):
        """Return (batch, query, d_v), from keys that are projected already."""
        Q = self.W_Q(queries)  # (batch, query, d_hidden)
        scores = Q @ projected_keys.transpose(-2, -1) / Q.shape[-1] ** 0.5
        return masked_softmax(scores, mask) @ values


@DotProductAttention.oracle
class _(nn.Module):
    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def forward(self, queries, keys, values, mask=None):
        return self.attend(queries, self.W_K(keys), values, mask)

    def attend(self, queries, projected_keys, values, mask=None):
        outputs = queries.new_zeros(*queries.shape[:2], values.shape[-1])
        for b, sentence in enumerate(queries):
            for i, query in enumerate(self.W_Q(sentence)):
                seen = slice(None) if mask is None else mask[b, i % mask.shape[1]]
                products = [(query * key).sum() for key in projected_keys[b, seen]]
                if products:
                    scores = torch.stack(products) / len(query) ** 0.5
                    outputs[b, i] = scores.softmax(dim=0) @ values[b, seen]
        return outputs


def tokens():
    """Make queries, keys and values of two sentences, with sizes that all differ."""
    return torch.randn(2, 4, 3), torch.randn(2, 5, 6), torch.randn(2, 5, 7)


@DotProductAttention.cases
def _():
    yield "queries and keys of different sizes", (3, 6, 8), *tokens()
    yield "no query attends to padding", (3, 6, 8), *tokens(), padding_mask([5, 2], 5)


@DotProductAttention.demand("a query with no key to attend to gives no NaN")
def _(answer):
    mask = torch.rand(2, 4, 5) < 0.6
    mask[1, 2] = False
    answer.build(3, 6, 8)
    outputs = answer(*tokens(), mask)
    if outputs.isnan().any():
        return "A query with no key to attend to gives NaN: use `masked_softmax`."
    answer.output = outputs.where(mask.any(dim=-1, keepdim=True), 0)  # or any number
    return answer.same()


@DotProductAttention.demand("gradients reach both projections")
def _(answer):
    weights = answer.build(3, 6, 8).parameters()
    answer(*tokens())
    answer.gradients(*weights)


DotProductAttention.hints = """
- Project the queries by `self.W_Q`; the keys are projected already. Then both have
  d_hidden dimensions.
- Scores: `Q @ projected_keys.transpose(-2, -1)`, divided by the root of d_hidden.
- `masked_softmax(scores, mask) @ values` does the rest.
"""

DotProductAttention.mistakes = """
The scores are not divided by the root of d_hidden (chapter 3 explains why).
    (-2, -1) / Q.shape[-1] ** 0.5 → (-2, -1)
You divide by d_hidden itself. Divide by its root.
    Q.shape[-1] ** 0.5 → Q.shape[-1]
You divide by the root of d_query. A projected query has d_hidden dimensions.
    Q.shape[-1] → queries.shape[-1]
The softmax runs over the queries. It must run over the keys, the last axis.
    masked_softmax(scores, mask) → scores.softmax(dim=-2)
Your queries attend to the padding, too: pass the mask to `masked_softmax`.
    masked_softmax(scores, mask) → masked_softmax(scores)
Your mask is inverted: True means that a query may attend to a key. `masked_softmax`
takes the mask as it is; `masked_fill` takes the positions to hide, `~mask`.
    (scores, mask) → (scores, None if mask is None else ~mask)
    masked_softmax(scores, mask) → scores.masked_fill(torch.tensor(False) if mask is None else mask, -torch.inf).softmax(-1)
    masked_softmax(scores, mask) → scores.masked_fill(torch.tensor(False) if mask is None else mask, -1e9).softmax(-1)
You average the projected keys. The output is the weighted average of the values.
    @ values → @ projected_keys
`attend` takes projected keys: `forward` passes it `self.W_K(keys)`.
    self.W_K(keys) → keys
Project the queries by `self.W_Q` first, to the d_hidden dimensions of the keys.
    Q = self.W_Q(queries) → Q = queries
Swap the last two axes of the keys: `Q @ projected_keys.transpose(-2, -1)`.
    projected_keys.transpose(-2, -1) → projected_keys
`attend` gets projected keys: do not project them by `self.W_K` again.
    projected_keys.transpose → self.W_K(projected_keys).transpose
`self.W_Q` projects the queries; the keys are projected already.
    projected_keys.transpose → self.W_Q(projected_keys).transpose
`self.W_K` projects the keys; project the queries by `self.W_Q`.
    self.W_Q(queries) → self.W_K(queries)
The attention weights have a row for each query and a column for each key, (batch,
query, key): multiply Q by the transposed keys, and the weights by the values.
    Q @ projected_keys → projected_keys @ Q
    masked_softmax(scores, mask) → ….transpose(-2, -1)
`.T` reverses all axes. Swap only the last two: `projected_keys.transpose(-2, -1)`.
    projected_keys.transpose(-2, -1) → projected_keys.T
`*` pairs query i with key i alone. Use `@`, which pairs each query with each key.
    Q @ projected_keys.transpose(-2, -1) → (Q * projected_keys).sum(dim=-1)
The output is `weights @ values`: the values are not transposed.
    @ values → @ values.transpose(-2, -1)
`attend` has no name d_hidden: it is the size of a projected query, `Q.shape[-1]`.
    Q.shape[-1] → self.d_hidden
    Q.shape[-1] → d_hidden
right:
    transpose(-2, -1) → mT
    / Q.shape[-1] ** 0.5 → * self.W_Q.out_features**-0.5
"""
