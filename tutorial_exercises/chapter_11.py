"""Exercises of chapter 11: the Transformer."""

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.exercise import Wrong
from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask, padding_mask
from tutorial_lib.transformer import (
    FeedForward,
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)


@Exercise("11.1", "A pre-norm decoder layer", axes="batch token d_model")
class PreNormDecoderLayer(nn.Module):
    """A decoder layer whose sub-layers read the norm of x and add to x itself."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x, mask, encoder_outputs, source_mask=None):
        """Update x (batch, token, d_model); each mask is that of one attention."""
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed, mask)
        queries = self.norm2(x)
        attended = self.cross_attention(
            queries, encoder_outputs, encoder_outputs, source_mask
        )
        x = x + attended
        return x + self.feed_forward(self.norm3(x))


@PreNormDecoderLayer.oracle
class _(nn.Module):
    """Give each query only the keys that it may attend to; the norms differ."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        for norm in (self.norm1, self.norm2, self.norm3):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)

    def forward(self, x, mask, encoder_outputs, source_mask=None):
        normed = normalize(self.norm1, x)
        rows = []
        for i in range(x.shape[1]):
            keys = normed[:, mask[i]]
            rows.append(self.attention(normed[:, i : i + 1], keys, keys))
        x = x + torch.cat(rows, dim=1)
        queries = normalize(self.norm2, x)
        attended = []
        for b in range(len(x)):
            keys = encoder_outputs[b : b + 1]
            if source_mask is not None:
                keys = keys[:, source_mask[b, 0]]
            attended.append(self.cross_attention(queries[b : b + 1], keys, keys))
        x = x + torch.cat(attended)
        return x + self.feed_forward(normalize(self.norm3, x))


def normalize(norm, x):
    """Normalize x (…, d_model), by the formula, with the parameters of the norm."""
    deviation = x - x.mean(dim=-1, keepdim=True)
    variance = deviation.square().mean(dim=-1, keepdim=True)
    return deviation / (variance + norm.eps).sqrt() * norm.weight + norm.bias


@PreNormDecoderLayer.cases
def _():
    x = torch.randn(1, 3, 8)
    yield "one sentence", (8, 2, 12), x, causal_mask(3), torch.randn(1, 6, 8)
    x = torch.randn(2, 4, 8)
    source_mask = padding_mask(torch.tensor([5, 3]), 5)
    encoder_outputs = torch.randn(2, 5, 8)
    sizes = (8, 2, 12)
    yield "a padded source", sizes, x, causal_mask(4), encoder_outputs, source_mask


@PreNormDecoderLayer.demand("gradients reach the inputs and all layers")
def _(answer):
    weights = trained(answer.build(8, 2, 12))
    x, encoder_outputs = torch.randn(2, 1, 3, 8, requires_grad=True).unbind()
    answer(x, causal_mask(3), encoder_outputs)
    answer.gradients(x, encoder_outputs, *weights)


def trained(module):
    """List the parameters that a loss depends on: biases of keys change no weight."""
    weights = module.named_parameters()
    return [weight for name, weight in weights if not name.endswith("W_K.bias")]


PreNormDecoderLayer.hints = """
- Each of the three lines of equation 11.1 has x twice: a sub-layer reads it, and a sum
  carries it on. Which of the two is normalized?
- The first line becomes: the norm of x goes into the attention as queries, keys and
  values, and the result is added to x, not to its norm.
- In the second line only the queries come from x. The encoder outputs are keys and
  values, without another norm.
"""

PreNormDecoderLayer.mistakes = """
That is post-norm, the layer of the page: its norms follow the sums. In pre-norm each
sub-layer reads the norm of x, and nothing is normalized after the sum.
    normed = self.norm1(x) → normed = x
    and x + self.attention(normed, normed, normed, mask) → self.norm1(…)
    and queries = self.norm2(x) → queries = x
    and x + attended → self.norm2(…)
    and x + self.feed_forward(self.norm3(x)) → self.norm3(x + self.feed_forward(x))
You add a sub-layer's output to the norm of x. The residual connection carries x itself,
which nothing normalizes.
    x + self.attention(normed → normed + self.attention(normed
    x + attended → queries + attended
    x + self.feed_forward(self.norm3(x)) → self.norm3(x) + self.feed_forward(self.norm3(x))
    x + self.attention(normed → normed + self.attention(normed
    and x + attended → queries + attended
    and x + self.feed_forward(self.norm3(x)) → self.norm3(x) + self.feed_forward(self.norm3(x))
A residual connection is missing: each of the three sub-layers adds its output to x.
    x + self.attention(normed → self.attention(normed
    x + attended → attended
    x + self.feed_forward(self.norm3(x)) → self.feed_forward(self.norm3(x))
A norm is missing: each of the three sub-layers reads the norm of x.
    normed = self.norm1(x) → normed = x
    queries = self.norm2(x) → queries = x
    self.feed_forward(self.norm3(x)) → self.feed_forward(x)
In self-attention all three are the normed x: queries, keys and values.
    normed, normed, normed, mask → normed, x, x, mask
    normed, normed, normed, mask → normed, normed, x, mask
You normalize the encoder outputs. They come normalized from the encoder, and `norm2` is
for the decoder's x.
    encoder_outputs, encoder_outputs, source_mask → self.norm2(encoder_outputs), self.norm2(encoder_outputs), source_mask
The queries of the cross-attention are computed from x as it was before the
self-attention's output was added. Take the norm of the new x.
    queries = self.norm2(x) → queries = self.norm2(normed)
    queries = self.norm2(x) → queries = normed
    queries = self.norm2(x) → queries = self.norm1(x)
Cross-attention has queries from the decoder, and keys and values from the encoder.
    queries, encoder_outputs, encoder_outputs, source_mask → queries, queries, queries, mask
    queries, encoder_outputs, encoder_outputs, source_mask → encoder_outputs, queries, queries
    queries, encoder_outputs, encoder_outputs, source_mask → queries, encoder_outputs, queries, source_mask
Your self-attention sees later tokens: give it the causal mask, `mask`.
    normed, normed, normed, mask → normed, normed, normed
Your cross-attention sees the padding of the source: give it `source_mask`.
    encoder_outputs, encoder_outputs, source_mask → encoder_outputs, encoder_outputs
`mask` is causal and belongs to the self-attention. The cross-attention has a mask of
its own, `source_mask`.
    encoder_outputs, encoder_outputs, source_mask → encoder_outputs, encoder_outputs, mask
right:
    return x + self.feed_forward(self.norm3(x)) → x = x + self.feed_forward(self.norm3(x))
        return x
    queries, encoder_outputs → self.norm2(x), encoder_outputs
    and queries = self.norm2(x) →
"""


@Exercise(
    "11.2",
    "Two bugs that training does not see",
    axes={"logits": "batch token vocab", "embedded": "batch token d_model"},
)
class FixedDecoder(nn.Module):
    """A decoder that is the same in training, in evaluation and token by token."""

    def __init__(self, vocab_size, d_model, max_tokens):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        self.attention = MultiHeadAttention(d_model, 2)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, tokens, past=None):
        """Return the logits after each token, and all embeddings so far."""
        start = 0 if past is None else past.shape[1]
        # First bug: the new tokens come after those in `past`.
        positions = torch.arange(start, start + tokens.shape[1])
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        embedded = x if past is None else torch.cat((past, x), dim=1)
        # Second bug: every mode needs the mask, with a column for every key.
        mask = causal_mask(embedded.shape[1])[start:]  # (query, key)
        logits = self.lm_head(x + self.attention(x, embedded, embedded, mask))
        return logits, embedded


@FixedDecoder.oracle
class _(nn.Module):
    """Go through the new tokens one by one; each sees what is there so far."""

    def __init__(self, vocab_size, d_model, max_tokens):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = nn.Embedding(max_tokens, d_model)
        self.attention = MultiHeadAttention(d_model, 2)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, tokens, past=None):
        seen = [] if past is None else list(past.split(1, dim=1))
        logits = []
        for token in tokens.split(1, dim=1):
            x = self.token_embedding(token) + self.position_embedding.weight[len(seen)]
            seen.append(x)
            keys = torch.cat(seen, dim=1)
            logits.append(self.lm_head(x + self.attention(x, keys, keys)))
        return torch.cat(logits, dim=1), torch.cat(seen, dim=1)


def sentence(length):
    """Make two sentences of this length."""
    return torch.randint(0, 9, (2, length))


@FixedDecoder.cases
def _():
    yield "in evaluation, a whole sentence at once", (9, 8, 16), sentence(6)


@FixedDecoder.demand("in training as well")
def _(answer):
    answer.build(9, 8, 16).train()
    answer(sentence(6))
    return answer.same()


@FixedDecoder.demand("token by token")
def _(answer):
    answer.build(9, 8, 16)
    seen = None
    for tokens in sentence(5).split([2, 1, 1, 1], dim=1):  # 2: to tell 0 from one less
        _, seen = answer(tokens, seen)
        if answer.same():
            return answer.same()


@FixedDecoder.demand("two tokens after three")
def _(answer):
    answer.build(9, 8, 16)
    _, seen = answer(sentence(3))
    answer(sentence(2), seen)
    return answer.same()


@FixedDecoder.demand("another sentence in between")
def _(answer):
    answer.build(9, 8, 16)
    _, seen = answer(sentence(3))
    try:
        _, theirs = answer(sentence(1))
        answer(sentence(6), theirs)
        answer(sentence(2), seen)
        is_same = not answer.same()
    except Wrong:
        is_same = False
    if not is_same:
        return (
            "After another sentence, this one no longer gets the same results: your "
            "module remembers earlier calls. Take what came before the new tokens from "
            "`past` alone."
        )


@FixedDecoder.demand("gradients reach the past and all layers")
def _(answer):
    weights = trained(answer.build(9, 8, 16))
    past = torch.randn(2, 3, 8, requires_grad=True)
    answer(sentence(2), past)
    answer.gradients(past, *weights)


FixedDecoder.hints = """
- Call the buggy decoder in evaluation mode with a whole sentence, and change its last
  token. Which logits change?
- Then feed it token by token. Which position is each token given? `past` tells how
  many tokens came earlier.
- `torch.arange(start, end)` counts from the position of the first new token: 0, or the
  number of tokens in `past`.
- Write down the causal mask of five tokens. If the last two are new, which of its rows
  are theirs?
"""

FixedDecoder.mistakes = """
This decoder returns two things, the logits and all embeddings so far: `return logits,
embedded`. The next call gets these embeddings as its `past`.
    return logits, embedded → return logits
Your logits are right, but the embeddings that you return lack their position
embeddings. Return them with these added, as BuggyDecoder does, so that none is added
twice.
    return logits, embedded → table = self.position_embedding.weight
        return logits, embedded - table[: embedded.shape[1]]
The embeddings in `past` have their position embeddings, and you add them once more:
add them to the new tokens alone, and join these to `past` afterwards.
    self.token_embedding(tokens) + self.position_embedding(positions) → self.token_embedding(tokens)
    and embedded = x if past is None else torch.cat((past, x), dim=1) → …
        embedded = embedded + self.position_embedding.weight[: embedded.shape[1]]
        x = embedded[:, start:]
Several new tokens came after those in `past`, and the first of them attended to the
next. A mask is needed there as well: the last rows of the causal mask of all tokens.
    causal_mask(embedded.shape[1])[start:] → … if past is None else None
Your decoder attends to later tokens. Use the causal mask in training and evaluation.
    causal_mask(embedded.shape[1])[start:] → … if self.training else None
    causal_mask(embedded.shape[1])[start:] → None
The new tokens are encoded as if they began at position 0. The first of them comes after
those in `past`: count positions from there.
    torch.arange(start, start + tokens.shape[1]) → torch.arange(tokens.shape[1])
Your new tokens are one position too early. Positions count from 0, so after three
tokens the next one is at position 3, which is `past.shape[1]`.
    torch.arange(start, start + tokens.shape[1]) → … - min(start, 1)
Your new tokens are one position too late. Positions count from 0, so after three
tokens the next one is at position 3, which is `past.shape[1]`.
    torch.arange(start, start + tokens.shape[1]) → … + min(start, 1)
Your mask has the rows of the first tokens. The new tokens come last: take the last
rows.
    [start:] → [: tokens.shape[1]]
Your new tokens attend only to each other. The embeddings in `past` have keys, too.
    self.attention(x, embedded, embedded, mask) → self.attention(x, x, x, mask[:, start:])
You return the new embeddings alone. The next call needs those in `past`, too, in
front.
    return logits, embedded → return logits, x
The residual connection is missing: the logits come from x plus attention's output.
    x + self.attention → self.attention
Two tokens came after three others, and your mask does not fit. It needs a row for each
new token and a column for each of all five: the last rows of `causal_mask(5)`.
    causal_mask(embedded.shape[1])[start:] → causal_mask(tokens.shape[1])
Your mask has a row for every token. Only the new tokens are queries: the last rows.
    causal_mask(embedded.shape[1])[start:] → causal_mask(embedded.shape[1])
right:
    [start:] → [-tokens.shape[1] :]
    embedded, embedded, mask → embedded, embedded, mask.expand(len(x), -1, -1)
"""


@Exercise("11.3", "Activation patching", axes="batch token vocab")
def patch_row(model, source, other, row, target):
    """Return the logits if one row of the encoder outputs is another sentence's."""
    lengths = torch.full((len(source),), source.shape[1])
    outputs = model.encoder(source, lengths).clone()
    theirs = model.encoder(other, lengths)
    outputs[:, row] = theirs[:, row]
    return model.decoder(target, outputs)


@patch_row.oracle
def _(model, source, other, row, target):
    """Put the encoder outputs together from their rows, for the decoder."""
    batch, length = source.shape
    lengths = torch.full((batch,), length)
    rows = model.encoder(source, lengths).unbind(dim=1)
    theirs = model.encoder(other, lengths).unbind(dim=1)
    outputs = torch.stack([*rows[:row], theirs[row], *rows[row + 1 :]], dim=1)
    return model.decoder(target, outputs)


def exchange(row, batch=1):
    """Make a model, two sources that differ in every token, and a target."""
    sizes = (20, 8, 2, 2)  # vocab_size, d_model, num_heads, num_layers
    options = {"d_ff": 12, "max_tokens": 16}
    encoder = TransformerEncoder(*sizes, **options)
    decoder = TransformerDecoder(*sizes, **options)
    model = Transformer(encoder, decoder)
    source, target = torch.randint(4, 20, (batch, 5)), torch.randint(4, 20, (batch, 6))
    other = 4 + (source - 4 + torch.randint(1, 16, source.shape)) % 16
    return model.eval(), source, other, row, target


@patch_row.cases
def _():
    yield "a row in the middle", *exchange(2)
    yield "the first row, and two sentences at once", *exchange(0, batch=2)
    model, source, _, row, target = exchange(3)
    yield "both sentences are the same", model, source, source, row, target


patch_row.hints = """
- `model.encoder(source, lengths)` returns the encoder outputs (batch, token, d_model),
  which are all that the decoder gets of the source.
- Encode both sentences whole, copy the outputs of the first with `clone`, and write the
  one row of the second into the copy.
- `model.decoder(target, outputs)` returns the logits, and nothing else: without
  padding, the source needs no mask.
"""

patch_row.mistakes = """
You exchange the token and encode the sentence anew, so that all rows of the encoder
outputs change. Exchange one row of the outputs, and leave the sentence as it is.
    outputs[:, row] = theirs[:, row] → positions = torch.arange(source.shape[1])
        outputs = model.encoder(torch.where(positions == row, other, source), lengths)
The decoder gets all encoder outputs of the other sentence. Take only one row of them.
    outputs[:, row] = theirs[:, row] → outputs = theirs
The decoder gets the encoder outputs of the first sentence, with nothing exchanged.
    outputs[:, row] = theirs[:, row] →
It is the other way round: one row from the other sentence, the rest from the first.
    encoder(source, lengths) → encoder(other, lengths)
    and theirs = model.encoder(other, lengths) → theirs = model.encoder(source, lengths)
All rows from this one on come from the other sentence. Only this one should.
    outputs[:, row] = theirs[:, row] → outputs[:, row:] = theirs[:, row:]
`outputs[row]` is a whole sentence of the batch. Tokens are axis 1: `outputs[:, row]`.
    outputs[:, row] = theirs[:, row] → outputs[row] = theirs[row]
You encode the token of that row alone. Encode the whole sentence, and take its row.
    outputs[:, row] = theirs[:, row] → token = other[:, row : row + 1]
        outputs[:, row] = model.encoder(token, torch.ones_like(lengths))[:, 0]
The row that you put in is an embedding. Take it from the encoder outputs of the other
sentence.
    encoder(other, lengths) → encoder.token_embedding(other)
`model.decoder` returns the logits, and no state with them: there is no pair to unpack.
    return model.decoder(target, outputs) → logits, state = model.decoder(target, outputs)
        return logits
The axis of the batch is missing: `model.decoder` returns the logits, and not a pair.
    return model.decoder(target, outputs) → return model.decoder(target, outputs)[0]
`model.decode_step` returns a pair, the logits at the last position and its state. The
logits at all positions are what `model.decoder(target, outputs)` returns.
    return model.decoder(target, outputs) → tokens, _, mask = model.encode(source, lengths)
        return model.decode_step(target, (tokens, outputs, mask))
You return the logits at the last position alone. Return those at all positions.
    return model.decoder(target, outputs) → return model.decoder(target, outputs)[:, -1]
`model.encode` returns a state of three parts. `model.encoder` returns the encoder
outputs alone.
    model.encoder(source, lengths) → model.encode(source, lengths)
    model.encoder(other, lengths) → model.encode(other, lengths)
right:
    outputs[:, row] = theirs[:, row] → rows = torch.arange(source.shape[1])[:, None]
        outputs = torch.where(rows == row, theirs, outputs)
    return model.decoder(target, outputs) → tokens, _, mask = model.encode(source, lengths)
        state = (tokens, outputs, mask)
        steps = []
        for tokens in target.split(1, dim=1):
            logits, state = model.decode_step(tokens, state)
            steps.append(logits)
        return torch.stack(steps, dim=1)
"""
