"""Exercises of chapter 6: Bahdanau attention."""

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.compare import alike
from tutorial_lib.attention import AdditiveAttention, masked_softmax
from tutorial_lib.masks import padding_mask
from tutorial_lib.seq2seq import AttentionDecoder, Encoder, Seq2Seq


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


@unroll.demand("gradients reach both states, the attention and the cell")
def _(answer):
    attention, cell, hidden, encoder_outputs, mask = translator(5, 3)
    states = hidden.requires_grad_(), encoder_outputs.requires_grad_()
    answer(attention, cell, *states, mask, 3)
    answer.gradients(*states, *attention.parameters(), *cell.parameters())


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


@Exercise("6.2", "Knock out a word", axes="batch token")
def knockout_effect(model, source, lengths, target, position):
    """Return how much log-probability each target token loses: (batch, token)."""
    hidden, encoder_outputs, mask = model.encode(source, lengths)
    without = mask.clone()  # (batch, 1, key)
    without[:, :, position] = False
    log_probs = []
    for allowed in (mask, without):
        state = (hidden, encoder_outputs, allowed)
        logits, _ = model.decoder(target[:, :-1], state)  # (batch, token, vocab)
        of_all = logits.log_softmax(dim=-1)
        chosen = of_all.gather(-1, target[:, 1:, None])  # (batch, token, 1)
        log_probs.append(chosen.squeeze(-1))
    return log_probs[0] - log_probs[1]


@knockout_effect.oracle
def _(model, source, lengths, target, position):
    start, encoder_outputs, mask = model.encode(source, lengths)
    positions = torch.arange(mask.shape[-1])
    losses = torch.zeros(len(target), target.shape[1] - 1)
    for sign, allowed in ((1, mask), (-1, mask & (positions != position))):
        state = start, encoder_outputs, allowed
        for t in range(target.shape[1] - 1):
            logits, state = model.decode_step(target[:, t : t + 1], state)
            for row, token in enumerate(target[:, t + 1].tolist()):
                of_token = logits[row, token] - logits[row].logsumexp(dim=0)
                losses[row, t] += sign * of_token
    return losses


def small_model():
    """Make a translator with attention and random weights, in which words differ."""
    model = Seq2Seq(Encoder(9, 3, 4), AttentionDecoder(11, 3, 5, 8, 6))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.8)
    return model.requires_grad_(False)


@knockout_effect.cases
def _():
    for position in (2, 0):
        source = torch.randint(4, 9, (2, 5))
        target = torch.randint(4, 11, (2, 7))
        label = "every target token, with and without a word"
        yield label, small_model(), source, torch.tensor([5, 4]), target, position
    source = torch.randint(4, 9, (3, 5))
    target = torch.randint(4, 11, (3, 4))
    lengths = torch.tensor([5, 2, 4])
    yield "padding is not attended to either", small_model(), source, lengths, target, 4


knockout_effect.hints = """
- `mask` says which positions the decoder may attend to. In a copy, `mask.clone()`, set
  those of the word to False.
- Run the decoder twice on `target[:, :-1]`, once with each mask. `log_softmax` makes
  log-probabilities of the logits.
- The decoder has to predict `target[:, 1:]`: `log_probs.gather(-1, target[:, 1:, None])`
  takes theirs, (batch, token, 1).
"""

knockout_effect.mistakes = """
The sign is wrong: what a token loses is the log-probability with the word minus that
without it.
    log_probs[0] - log_probs[1] → log_probs[1] - log_probs[0]
You leave the decoder nothing but the word. Everything else stays allowed.
    without[:, :, position] = False → without[:] = False
        without[:, :, position] = mask[:, :, position]
All differences are 0: both masks are the same tensor. Change a copy, `mask.clone()`.
    mask.clone() → mask
You change a batch row of the mask, whose axes are (batch, 1, key): `[:, :, position]`.
    without[:, :, position] → without[position]
You take probabilities. Take their logarithms: `log_softmax`.
    log_softmax → softmax
Logits are no log-probabilities: apply `log_softmax`.
    logits.log_softmax(dim=-1) → logits
The softmax runs over the tokens of the sentence. It must run over the vocabulary, the
last axis.
    log_softmax(dim=-1) → log_softmax(dim=1)
You take the log-probability of the token that the decoder has just read. It predicts
the next one, `target[:, 1:]`.
    target[:, 1:, None] → target[:, :-1, None]
You set the encoder output of the word to zeros, which still gets a weight. Change the
mask: then its weight is 0.
    without[:, :, position] = False → changed = encoder_outputs.clone()
        changed[:, position] = 0
    and state = (hidden, encoder_outputs, allowed) → state = (hidden, changed if log_probs else encoder_outputs, mask)
You sum over the tokens. Return the loss of each.
    log_probs[0] - log_probs[1] → (log_probs[0] - log_probs[1]).sum(dim=-1)
right:
    chosen.squeeze(-1) → chosen[..., 0]
    (mask, without) → [mask, without]
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


@DotProductAttention.demand("queries and keys of different sizes")
def _(answer):
    module = answer.build(3, 6, 8)
    queries, keys, values = tokens()
    outputs = answer(queries, keys, values)
    attended = module.attend(queries, module.W_K(keys), values)
    if not alike(attended, outputs, 1e-5):
        return (
            "`forward` is right, but `attend` is not: with the keys that `W_K` has "
            "projected, as a decoder keeps them, it has to give the same outputs."
        )


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
