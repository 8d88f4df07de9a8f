"""Exercises of chapter 11: the Transformer."""

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.exercise import Wrong
from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask
from tutorial_lib.transformer import Transformer, TransformerDecoder, TransformerEncoder


@Exercise("11.1", "What a target token may attend to", axes="batch query key")
def target_mask(tokens, padding):
    """Mask later positions and padding: (batch, query, key)."""
    causal = causal_mask(tokens.shape[1])  # (query, key)
    not_padding = tokens != padding  # (batch, key)
    return causal & not_padding[:, None, :]


@target_mask.oracle
def _(tokens, padding):
    """Ask for each pair of positions whether the one may attend to the other."""
    batch, length = tokens.shape
    mask = torch.zeros(batch, length, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(length):
            for j in range(i + 1):
                mask[b, i, j] = tokens[b, j].item() != padding
    return mask


@target_mask.cases
def _():
    tokens = torch.tensor([[2, 5, 6, 7], [2, 5, 0, 0], [0, 0, 2, 5]])
    yield "three sentences of different lengths", tokens, 0
    yield "another number for padding", torch.tensor([[0, 4, 3], [0, 9, 9]]), 9


target_mask.hints = """
- There are two conditions, one for each pair of positions and one for each key of each
  sentence. Both must hold.
- `causal_mask(tokens)` is (query, key); `tokens != padding` is (batch, key). Which axis
  does the second one lack?
- `[:, None, :]` makes it (batch, 1, key), which is the same for every query. Then
  combine the two: does `&` or `|` ask for both?
"""

target_mask.mistakes = """
Your mask assumes that padding stands at the end of a sentence. In one of these it
stands at the beginning: compare each token with `padding`.
    tokens != padding → torch.arange(tokens.shape[1]) < (…).sum(dim=1)[:, None]
You compare the tokens with 0. Compare them with `padding`, which is not always 0.
    tokens != padding → tokens != 0
Your mask is inverted: True means that a query may attend to the key.
    causal & not_padding[:, None, :] → ~(…)
Later positions are masked, but the padding is not: use `padding`.
    causal & not_padding[:, None, :] → causal.expand(len(tokens), -1, -1)
Later positions are masked, but the padding is not: use `padding`. It differs from
sentence to sentence, so each needs its own mask: (batch, query, key).
    causal & not_padding[:, None, :] → causal
The padding is masked, but later positions are not: use `causal_mask` as well.
    causal_mask(tokens.shape[1]) → torch.ones_like(…)
The padding is masked, but later positions are not. Which ones are later differs from
query to query, so each of them needs its own row: (batch, query, key).
    causal & not_padding[:, None, :] → not_padding[:, None, :]
You combine the conditions with or. A key must be not later AND not padding.
    causal & not_padding → causal | not_padding
In your mask a token cannot attend to itself: keep the diagonal.
    causal_mask(tokens.shape[1]) → ….tril(-1)
In your mask a padding token may attend to itself. As a key it has to be hidden from
every query. A row in which all keys are hidden does no harm here.
    not_padding[:, None, :] → (… | torch.eye(tokens.shape[1]).bool())
Your mask shows later positions and hides earlier ones: rows are queries, columns keys.
    causal_mask(tokens.shape[1]) → ….mT
Hide the padding among keys, not among queries: `(tokens != padding)[:, None, :]`.
    not_padding[:, None, :] → not_padding[:, :, None]
You hide the rows of the padding, too. Hide keys alone: nobody reads these outputs.
    not_padding[:, None, :] → … & not_padding[:, :, None]
`tokens != padding` is (batch, key) and the causal mask is (query, key). Without an axis
for the queries, the sentences are aligned with the queries.
    not_padding[:, None, :] → not_padding
    causal & not_padding[:, None, :] → not_padding & causal
    causal & not_padding[:, None, :] → causal * not_padding
A mask is boolean, True = may attend; yours holds numbers.
    causal & not_padding[:, None, :] → (…).float()
right:
    causal_mask(tokens.shape[1]) → torch.ones(tokens.shape[1], tokens.shape[1]).tril().bool()
    not_padding[:, None, :] → not_padding.unsqueeze(1)
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
