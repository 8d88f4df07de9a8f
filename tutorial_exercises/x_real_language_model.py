"""Exercises of the excursion on a real language model: scores, lens, mean ablation."""

from copy import deepcopy

import torch

from tutorial_exercises import Exercise
from tutorial_lib.llama import Llama


@Exercise("R.1", "The induction score", axes="")
def induction_score(weights, length):
    """Return the mean weight on the token after the earlier copy, as one number."""
    total = 0.0
    for query in range(length + 1, 2 * length):  # the last token is left out
        copy = query - length
        total += weights[query, copy + 1].item()
    return total / (length - 1)


@induction_score.oracle
def _(weights, length):
    """Read the score off the diagonal on which all these cells lie."""
    return weights.diagonal(offset=1 - length)[2:-1].mean().item()


def map_of_repeated(length):
    """Make an attention map over a first token and the same tokens twice."""
    weights = torch.rand(2 * length + 1, 2 * length + 1).tril()
    return weights / weights.sum(dim=1, keepdim=True), length


@induction_score.cases
def _():
    yield "five tokens, twice", *map_of_repeated(5)
    yield "eight tokens, twice", *map_of_repeated(8)


@induction_score.demand("a head that always attends there has 1, any other less")
def _(answer):
    weights = torch.zeros(13, 13)
    for query in range(7, 12):
        weights[query, query - 5] = 1.0
    if not abs(answer(weights, 6) - 1) < 1e-5:
        return "A head with all its weight on the token after the copy has the score 1."


induction_score.hints = """
- The first half is at positions 1 to `length`, the second at `length + 1` to
  `2 * length`. Where is the copy of the token at `query`, and where the token after it?
- The copy is at `query - length`, and the token after it one position later.
- Leave the last query out: what followed its copy is the second half's first token. So
  there are `length - 1` queries.
"""

induction_score.mistakes = """
This is the weight on the earlier copy itself. Take the token after it.
    weights[query, copy + 1] → weights[query, copy]
You are one token too far: the copy is `length` positions back.
    weights[query, copy + 1] → weights[query, copy + 2]
This is the weight on the previous token. The copy is `length` positions back.
    weights[query, copy + 1] → weights[query, query - 1]
Rows are queries, and columns are keys: `weights[query, key]`.
    weights[query, copy + 1] → weights[copy + 1, query]
The last token is among your queries. What followed its copy is the second half's first
token: leave it out.
    range(length + 1, 2 * length) → range(length + 1, 2 * length + 1)
    and total / (length - 1) → total / length
Queries of the first half are among yours: begin at `length + 1`.
    range(length + 1, 2 * length) → range(length - 1, 2 * length)
    and total / (length - 1) → total / (length + 1)
    range(length + 1, 2 * length) → range(length, 2 * length)
    and total / (length - 1) → total / length
You return the sum. Divide by the number of queries, `length - 1`.
    total / (length - 1) → total
You divide by another number than that of the queries, `length - 1`.
    total / (length - 1) → total / length
    total / (length - 1) → total / len(weights)
This is the largest weight. Take the mean.
    total += weights[query, copy + 1].item() → total = max(total, weights[query, copy + 1].item() * (length - 1))
right:
    total = 0.0 → return weights.diagonal(offset=1 - length)[2:-1].mean().item()
    return total / (length - 1) → return torch.tensor(total / (length - 1))
"""


@Exercise("R.2", "The logit lens", axes="layer")
def logit_lens(hidden_states, norm, unembedding, token):
    """Return the token's probability after each layer: (layer,)."""
    logits = norm(hidden_states) @ unembedding.T  # (layer, vocab)
    return logits.softmax(dim=-1)[:, token]


@logit_lens.oracle
def _(hidden_states, norm, unembedding, token):
    """Go through the layers, and through the vocabulary, one by one."""
    probs = []
    for x in hidden_states:
        scores = [float(norm(x) @ row) for row in unembedding]
        exponentials = torch.tensor(scores, dtype=torch.float64).exp()
        probs.append(exponentials[token] / exponentials.sum())
    return torch.stack(probs).float()


def states_by_layer(layers, d_model, vocab, token):
    """Make hidden states, a last norm with weights, output embeddings, and a token."""
    norm = torch.nn.RMSNorm(d_model)
    norm.weight = torch.nn.Parameter(torch.rand(d_model) + 0.5, requires_grad=False)
    hidden_states = 3 * torch.randn(layers, d_model)
    return hidden_states, norm, torch.randn(vocab, d_model), token


@logit_lens.cases
def _():
    yield "four layers", *states_by_layer(4, 6, 9, 2)
    yield "as many layers as tokens of the vocabulary", *states_by_layer(5, 3, 5, 4)
    yield "as many dimensions as layers", *states_by_layer(4, 4, 7, 0)


logit_lens.hints = """
- Each hidden state is read as if it were the last layer's: `norm(hidden_states)` first.
- Multiply by the transposed output embeddings: the logits (layer, vocab).
- Take the softmax over the vocabulary, `dim=-1`, and of it the column of `token`.
"""

logit_lens.mistakes = """
The norm is missing: the last layer's output is normalized before it is read.
    norm(hidden_states) @ unembedding.T → hidden_states @ unembedding.T
You normalize the logits. Normalize the hidden states, then multiply.
    norm(hidden_states) @ unembedding.T → torch.nn.functional.rms_norm(hidden_states @ unembedding.T, unembedding.shape[:1])
These are logits. The softmax makes probabilities of them.
    logits.softmax(dim=-1)[:, token] → logits[:, token]
These are logarithms of probabilities.
    logits.softmax(dim=-1)[:, token] → logits.log_softmax(dim=-1)[:, token]
Your softmax runs over the layers. The probabilities of one layer sum to 1: `dim=-1`.
    softmax(dim=-1) → softmax(dim=0)
You return the likeliest token's probability. Return that of `token`.
    softmax(dim=-1)[:, token] → softmax(dim=-1).amax(dim=-1)
You return all probabilities, or those of a layer. Return the column of `token`.
    softmax(dim=-1)[:, token] → softmax(dim=-1)
    softmax(dim=-1)[:, token] → softmax(dim=-1)[token]
You return ranks. Return probabilities.
    logits.softmax(dim=-1)[:, token] → (logits > logits[:, [token]]).sum(dim=-1) + 1
right:
    logits.softmax(dim=-1)[:, token] → (logits[:, token] - logits.logsumexp(dim=-1)).exp()
    norm(hidden_states) @ unembedding.T → torch.stack([unembedding @ norm(x) for x in hidden_states])
"""


@Exercise("R.3", "Mean ablation", axes="text token vocab")
def mean_ablated(model, tokens, layer, head, mean):
    """Return the logits (text, token, vocab) where a head always adds its mean."""
    attention = model.layers[layer].attention
    first = head * attention.d_k

    def exchange(module, inputs):
        head_outputs = inputs[0].clone()  # (text, token, num_heads · d_k)
        head_outputs[..., first : first + attention.d_k] = mean
        return (head_outputs,)

    hook = attention.W_O.register_forward_pre_hook(exchange)
    logits = model(tokens)
    hook.remove()
    return logits


@mean_ablated.oracle
def _(model, tokens, layer, head, mean):
    """Write the mean into a copy: a head that adds a constant is a bias of W_O."""
    model = deepcopy(model)
    for module in model.modules():
        module._forward_pre_hooks.clear()
        module._forward_hooks.clear()
    attention = model.layers[layer].attention
    own = slice(head * attention.d_k, (head + 1) * attention.d_k)
    with torch.no_grad():
        constant = attention.W_O.weight[:, own] @ mean  # (d_model,)
        attention.W_O.weight[:, own] = 0
    attention.W_O.bias = torch.nn.Parameter(constant)
    return model(tokens)


def small_llama(layer, head, texts=2):
    """Make a Llama of two layers and four heads, tokens, a head and its mean."""
    model = Llama(11, 16, 4, 2, num_kv_heads=2, d_ff=24)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    tokens = torch.randint(11, (texts, 5))
    return model.eval(), tokens, layer, head, torch.randn(4)


@mean_ablated.cases
def _():
    yield "a head of the last layer", *small_llama(1, 1)
    yield "the last head of the first layer", *small_llama(0, 3, texts=3)
    yield "the first head", *small_llama(0, 0)


@mean_ablated.demand("the model is as before")
def _(answer):
    inputs = small_llama(1, 2)
    model, tokens = inputs[:2]
    with torch.no_grad():
        before = model(tokens)
        answer(*inputs)
        after = model(tokens)
    if not torch.allclose(before, after, atol=1e-5):
        return (
            "After your function the model is another one. Keep what the registration "
            "returns, `hook = …`, and call `hook.remove()` before you return."
        )


mean_ablated.hints = """
- Write a function `exchange(module, inputs)`: `inputs[0]` are the outputs of all heads,
  side by side. Change a copy of them, and return it as a tuple.
- Head `head` has the columns from `head * d_k` to `(head + 1) * d_k`.
- Register it: `hook = attention.W_O.register_forward_pre_hook(exchange)`. Then run the
  model, remove the hook, and return the logits.
"""

mean_ablated.mistakes = """
Your hook changes nothing. What a pre-hook returns replaces the inputs.
    return (head_outputs,) → return None
    and inputs[0].clone() → inputs[0].detach().clone()
You zero-ablate the head. Put its mean into the columns.
    ] = mean → ] = 0
You add the mean to what the head gives. Replace what it gives.
    ] = mean → ] += mean
You replace all heads. Only the columns of `head` get the mean.
    head_outputs[..., first : first + attention.d_k] = mean → head_outputs = mean.repeat(4).expand_as(head_outputs)
Your columns are those of another head: head `head` begins at `head * d_k`.
    first = head * attention.d_k → first = (head + 1) % 4 * attention.d_k
    first = head * attention.d_k → first = (head - 1) % 4 * attention.d_k
You index tokens. The columns are the last axis: `head_outputs[..., first : …]`.
    head_outputs[..., first : first + attention.d_k] → head_outputs[:, first : first + attention.d_k, :4]
You change another layer: take `model.layers[layer]`.
    model.layers[layer] → model.layers[1 - layer]
The mean replaces what W_O returns. It belongs before W_O: a forward pre-hook.
    (module, inputs) → (module, inputs, outputs)
    and inputs[0].clone() → outputs.clone()
    and return (head_outputs,) → return head_outputs
    and register_forward_pre_hook → register_forward_hook
right:
    return (head_outputs,) → return head_outputs
    hook = attention.W_O.register_forward_pre_hook(exchange) → with attention.W_O.register_forward_pre_hook(exchange):
            return model(tokens)
    and logits = model(tokens) →
    and hook.remove() →
    and     return logits →
"""
