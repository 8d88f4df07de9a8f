"""Wrong answers that agree with right ones on ordinary inputs do not pass."""

import pytest
from exercise_chapters import chapters, define, excursions

from tutorial_exercises import check

TASKS = {
    task.number: (c, task) for c in [*chapters(), *excursions()] for task in c.exercises
}

LOSS = """
def sigmoid_loss(image_vectors, text_vectors, scale, bias):
    images, texts = (F.normalize(x, dim=-1) for x in (image_vectors, text_vectors))
    logits = scale * images @ texts.T
    own = torch.eye(len(logits)).bool()
    no = torch.log(1 - torch.sigmoid(logits + bias))
    return -(F.logsigmoid(logits + bias)[own].sum() + no[~own].sum()) / len(logits)
"""
CORNER = """
def raster_order(boxes):
    left, top = (boxes[:, :2] - boxes[:, 2:] / 2).unbind(1)
    return (1000 * top + left).argsort().argsort()
"""
ORDER = """
def raster_order(boxes):
    left, top = (boxes[:, :2] - boxes[:, 2:] / 2).double().unbind(1)
    return (2**20 * top + left).argsort().argsort().float()
"""
PLAIN = """
def sigmoid_loss(image_vectors, text_vectors, scale, bias):
    images, texts = (F.normalize(x, dim=-1) for x in (image_vectors, text_vectors))
    logits = scale * images @ texts.T + bias
    signs = 2 * torch.eye(len(logits)) - 1
    return -F.logsigmoid(signs * logits).sum().item() / len(logits)
"""
# number, why it is wrong, the answer
WRONG = [
    ("1.5", "one largest score for all rows", """
def weights_or_nothing(scores, null_score):
    largest = max(scores.max().item(), null_score)
    powers = (scores - largest).exp()
    null = torch.tensor(null_score - largest).exp()
    return powers / (powers.sum(dim=1, keepdim=True) + null)
"""),
    ("2.2", "no gradient at distance 0", """
def scores_by_bandwidths(queries, keys, bandwidths):
    apart = ((queries[:, None] - keys) / bandwidths).square().sum(-1).sqrt()
    return -apart.square() / 2
"""),
    ("3.2", "distances, one by one", """
def distance_attention(queries, keys, values, bandwidth):
    rows = [torch.stack([-(q - k) @ (q - k) for k in keys]) for q in queries]
    return (torch.stack(rows) / (2 * bandwidth**2)).softmax(-1) @ values
"""),
    ("4.1", "padding taken to be at the left", """
def cached_mask(is_token, num_queries):
    keys = is_token.shape[1]
    after = torch.arange(keys) >= keys - is_token.sum(1, keepdim=True)
    causal = torch.ones(keys, keys).tril().bool()[keys - num_queries :]
    return causal & after[:, None]
"""),
    ("5.1", "probabilities that float32 rounds to 0", """
def log_probability(model, state, target):
    total = 0
    for t in range(target.shape[1] - 1):
        logits, state = model.decode_step(target[:, t : t + 1], state)
        own = logits.softmax(-1).log().gather(-1, target[:, t + 1 : t + 2])[:, 0]
        total = total + torch.where(target[:, t + 1] == PAD, 0, own)
    return total
"""),
    ("6.4", "attend does nothing, and forward all", """
class DotProductAttention(nn.Module):
    def __init__(self, d_query, d_key, d_hidden):
        super().__init__()
        self.W_Q = nn.Linear(d_query, d_hidden, bias=False)
        self.W_K = nn.Linear(d_key, d_hidden, bias=False)

    def forward(self, queries, keys, values, mask=None):
        Q, K = self.W_Q(queries), self.W_K(keys)
        return masked_softmax(Q @ K.mT / Q.shape[-1] ** 0.5, mask) @ values

    def attend(self, queries, projected_keys, values, mask=None):
        return values
"""),
    ("10.1", "PyTorch's own, by another name", """
def normalize_layer(x, gamma, beta, epsilon=1e-5):
    return torch.native_layer_norm(x, x.shape[-1:], gamma, beta, epsilon)[0]
"""),
    ("12.1", "probabilities that float32 rounds to 0", """
def next_token_losses(logits, tokens, lengths):
    return torch.stack([
        -row[t].softmax(0)[text[t + 1]].log()
        for row, text, n in zip(logits, tokens, lengths)
        for t in range(int(n) - 1)
    ])
"""),
    ("12.2", "exp of large logits", """
def keep_min_p(logits, p):
    powers = logits.exp()
    largest = powers.amax(dim=-1, keepdim=True)
    return torch.where(powers >= p * largest, logits, -torch.inf)
"""),
    ("12.4", "the probability of a long text", """
def perplexity_of(model, texts):
    product, count = 1.0, 0
    for text in texts:
        for row, token in zip(model(torch.tensor([text]))[0], text[1:]):
            product, count = product * row.softmax(0)[token], count + 1
    return product ** (-1 / count)
"""),
    ("17.2", "100 taken for infinity", """
def greedy_gap(costs):
    from scipy.optimize import linear_sum_assignment
    queries, objects = linear_sum_assignment(costs)
    left, total = costs.clone(), 0.0
    for _ in range(costs.shape[1]):
        query, i = divmod(left.argmin().item(), costs.shape[1])
        total += left[query, i].item()
        left[query] = left[:, i] = 100
    return total - costs[queries, objects].sum().item()
"""),
    ("17.3", "a weighted sum in place of an order", CORNER),
    ("17.3", "floats", ORDER),
    ("S.3", "rounded up", """
def cache_size(num_tokens, num_layers, global_every, window, num_kv_heads, d_k):
    whole = round(num_layers / global_every)
    tokens = whole * num_tokens + (num_layers - whole) * min(window, num_tokens)
    return 2 * num_kv_heads * d_k * tokens
"""),
    ("P.1", "log of 1 - 1", LOSS),
    ("3.4", "a large tensor within vmap", """
def frugal_additive_scores(queries, keys, W_Q, W_K, w_v):
    def score(query):
        return torch.tanh(query[:, None] + keys @ W_K) @ w_v

    return torch.vmap(score, in_dims=1, out_dims=1)(queries @ W_Q)
"""),
    ("S.1", "keys, head by head", """
def absorbed_scores(Q, latent, W_K):
    heads = zip(Q.unbind(1), W_K)
    return torch.stack([q @ (latent @ matrix.T).mT for q, matrix in heads], dim=1)
"""),
    ("P.1", "a plain number", PLAIN),
]  # fmt: skip
# number, and the end of what is cut off in its solution
CUT = [
    ("P.1", "-F.logsigmoid(signs * logits)"),
    ("6.1", "torch.stack(states, dim=1)"),
    ("6.1", "attention.W_K(encoder_outputs)"),
    ("11.1", "x = x + attended"),
    ("11.2", "torch.cat((past"),
    ("11.2", "return logits"),
    ("12.3", "V.repeat_interleave(group_size, dim=1)"),
    ("16.1", "projection(norm(merged))"),
    ("16.3", "bias_table[numbers]"),
]


@pytest.mark.parametrize(
    ("number", "answer"),
    [pytest.param(n, answer, id=f"{n}-{why}") for n, why, answer in WRONG],
)
def test_what_fails_on_hard_inputs_alone_does_not_pass(number, answer):
    chapter, task = TASKS[number]
    card = check(define(answer.strip("\n"), task.name, chapter.names), number)
    assert card.status == "fail", card
    assert "could not use" not in card.message


def test_a_continuation_may_be_a_tuple():
    _, task = TASKS["5.3"]
    assert check(lambda *inputs: tuple(task.solution(*inputs)), "5.3").passed


def test_matrices_of_whole_numbers_multiply_no_tokens():
    _, task = TASKS["7.1"]
    card = check(lambda n: [matrix.long() for matrix in task.solution(n)], "7.1")
    assert "W_Q is of torch.int64" in card.message


@pytest.mark.parametrize(("number", "end"), CUT)
def test_what_cuts_gradients_off_does_not_pass(number, end):
    chapter, task = TASKS[number]
    assert task.source.count(end) == 1
    source = task.source.replace(end, f"{end}.detach()")
    card = check(define(source, task.name, chapter.names), number)
    assert card.status == "fail" and "No gradient reaches" in card.message, card
