"""Exercises of chapter 11: the Transformer."""

import torch
from torch import nn

from tutorial_exercises import Exercise
from tutorial_exercises.exercise import Wrong
from tutorial_lib.attention import MultiHeadAttention
from tutorial_lib.masks import causal_mask
from tutorial_lib.position import SinusoidalEncoding
from tutorial_lib.transformer import Decoder, Encoder, Transformer


@Exercise("11.1", "What a target word may look at", axes="batch query key")
def word_mask(words, padding):
    """Hide the future and the padding: a mask (batch, query, key)."""
    causal = causal_mask(words.shape[1])  # (query, key)
    spoken = words != padding  # (batch, key)
    return causal & spoken[:, None, :]


@word_mask.oracle
def _(words, padding):
    """Ask for each pair of places whether the one may look at the other."""
    batch, tokens = words.shape
    mask = torch.zeros(batch, tokens, tokens, dtype=torch.bool)
    for b in range(batch):
        for i in range(tokens):
            for j in range(i + 1):
                mask[b, i, j] = words[b, j].item() != padding
    return mask


@word_mask.cases
def _():
    words = torch.tensor([[2, 5, 6, 7], [2, 5, 0, 0], [0, 0, 2, 5]])
    yield "three sentences of different lengths", words, 0
    yield "another number for the padding", torch.tensor([[0, 4, 3], [0, 9, 9]]), 9


word_mask.hints = """
- Two conditions, one for each pair of places and one for each key of each sentence:
  both must hold.
- `causal_mask(tokens)` is (query, key); `words != padding` is (batch, key). Which axis
  does the second one lack?
- `[:, None, :]` makes it (batch, 1, key), which every query shares. Then join the two:
  does `&` or `|` ask for both?
"""

word_mask.mistakes = """
Your mask supposes that padding stands at the end of a sentence. In one of these it
stands in front: do not count words, compare each with `padding`.
    words != padding → torch.arange(words.shape[1]) < (…).sum(dim=1)[:, None]
You compare the words with 0. The number that stands for no word is the argument
`padding`, and here it is another.
    words != padding → words != 0
Your mask is inverted: True means that a query may look.
    causal & spoken[:, None, :] → ~(…)
The future is hidden, but the padding is not: look at `padding`.
    causal & spoken[:, None, :] → causal.expand(len(words), -1, -1)
The future is hidden, but the padding is not: look at `padding`. It differs from
sentence to sentence, so that each needs a mask: (batch, query, key).
    causal & spoken[:, None, :] → causal
The padding is hidden, but the future is not: a word may look at itself and at those
before it.
    causal & spoken[:, None, :] → spoken[:, None, :].expand(-1, words.shape[1], -1)
The padding is hidden, but the future is not. It differs from query to query, so that
each needs a row: (batch, query, key).
    causal & spoken[:, None, :] → spoken[:, None, :]
A key may be looked at only if it is not in the future AND no padding: you combine the
two with or.
    causal & spoken → causal | spoken
A word cannot look at itself in your mask, so the first one sees nothing: keep the
diagonal.
    causal_mask(words.shape[1]) → ….tril(-1)
A word of padding may look at itself in your mask. It is a key like others: nobody may
look at it. Rows that see nothing do no harm here.
    spoken[:, None, :] → (… | torch.eye(words.shape[1]).bool())
Your mask shows the future and hides the past: rows are queries, columns are keys, so
what may be seen lies on and below the diagonal.
    causal_mask(words.shape[1]) → ….mT
You hide padding from the axis of the queries. It is the KEYS that nobody may look at:
`(words != padding)[:, None, :]`.
    spoken[:, None, :] → spoken[:, :, None]
You hide the rows of the padding as well. Hide keys alone: nobody reads what these rows
find.
    spoken[:, None, :] → … & spoken[:, :, None]
`words != padding` is (batch, key) and the causal mask (query, key): without an axis for
the queries the first meets them with its sentences.
    spoken[:, None, :] → spoken
    causal & spoken[:, None, :] → spoken & causal
    causal & spoken[:, None, :] → causal * spoken
A mask is boolean, True = may look; yours holds numbers.
    causal & spoken[:, None, :] → (…).float()
right:
    causal_mask(words.shape[1]) → torch.ones(words.shape[1], words.shape[1]).tril().bool()
    spoken[:, None, :] → spoken.unsqueeze(1)
"""


@Exercise(
    "11.2",
    "Two bugs that training does not see",
    axes={"logits": "batch token vocab", "tokens": "batch token d_model"},
)
class MendedDecoder(nn.Module):
    """A decoder that is the same in training, in evaluation and word by word."""

    def __init__(self, vocab_size, d_model, max_tokens):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_encoding = SinusoidalEncoding(d_model, max_tokens)
        self.attention = MultiHeadAttention(d_model, 2)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, words, before=None):
        """Return the logits after each word, and all tokens so far."""
        start = 0 if before is None else before.shape[1]
        # First bug: the new words stand behind those that are there.
        x = self.position_encoding(self.token_embedding(words), start=start)
        tokens = x if before is None else torch.cat((before, x), dim=1)
        # Second bug: the mask belongs to every mode, and has a column for every key.
        mask = causal_mask(tokens.shape[1])[start:]  # (query, key)
        logits = self.lm_head(x + self.attention(x, tokens, tokens, mask))
        return logits, tokens


@MendedDecoder.oracle
class _(nn.Module):
    """Go through the new words one by one; each sees what stands up to it."""

    def __init__(self, vocab_size, d_model, max_tokens):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_encoding = SinusoidalEncoding(d_model, max_tokens)
        self.attention = MultiHeadAttention(d_model, 2)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, words, before=None):
        seen = [] if before is None else list(before.split(1, dim=1))
        logits = []
        for word in words.split(1, dim=1):
            x = self.token_embedding(word) + self.position_encoding.table[len(seen)]
            seen.append(x)
            keys = torch.cat(seen, dim=1)
            logits.append(self.lm_head(x + self.attention(x, keys, keys)))
        return torch.cat(logits, dim=1), torch.cat(seen, dim=1)


def sentence(tokens):
    """Make two sentences of so many words."""
    return torch.randint(0, 9, (2, tokens))


@MendedDecoder.cases
def _():
    yield "in evaluation, a whole sentence at once", (9, 8, 16), sentence(6)


@MendedDecoder.demand("in training as well")
def _(answer):
    answer.build(9, 8, 16).train()
    answer(sentence(6))
    return answer.same()


@MendedDecoder.demand("word by word")
def _(answer):
    answer.build(9, 8, 16)
    seen = None
    for words in sentence(5).split([2, 1, 1, 1], dim=1):  # 2: to tell 0 from one less
        _, seen = answer(words, seen)
        if answer.same():
            return answer.same()


@MendedDecoder.demand("two words after three")
def _(answer):
    answer.build(9, 8, 16)
    _, seen = answer(sentence(3))
    answer(sentence(2), seen)
    return answer.same()


@MendedDecoder.demand("another sentence in between")
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
            "After another sentence something else comes out for this one: your module "
            "remembers what it was given. What stands in front of the new words, "
            "`before` alone says."
        )


MendedDecoder.hints = """
- Call the hurried decoder in evaluation mode with a whole sentence, and change its last
  word. Which logits move?
- Then feed it word by word. At which place does each word think it stands? `before`
  tells how many words there were.
- `self.position_encoding` takes the place of the first new word as `start=`: 0, or the
  number of tokens in `before`.
- Write down the causal mask of five tokens. If the last two are new, which of its rows
  are theirs?
"""

MendedDecoder.mistakes = """
Your logits are right, but the tokens that you return lack their positions. Return them
as HurriedDecoder does, with the positions added, so that none is encoded twice.
    return logits, tokens → return logits, tokens - self.position_encoding.table[: tokens.shape[1]]
The tokens in `before` have their positions, and yours get them once more: encode the
new words alone, and join them to `before` afterwards.
    self.position_encoding(self.token_embedding(words), start=start) → self.token_embedding(words)
    and tokens = x if before is None else torch.cat((before, x), dim=1) → …
        tokens = self.position_encoding(tokens)
        x = tokens[:, start:]
Several new words came after those in `before`, and the first of them saw the next. A
mask is needed there as well: the last rows of the causal mask of all tokens.
    causal_mask(tokens.shape[1])[start:] → … if before is None else None
Your decoder sees the words to come. A causal mask must hide them in every mode:
`self.training` has no say in it.
    causal_mask(tokens.shape[1])[start:] → … if self.training else None
    causal_mask(tokens.shape[1])[start:] → None
The new words are encoded as if they began at position 0. The first of them stands
behind those in `before`: pass its place as `start=`.
    (words), start=start) → (words))
Your new words stand one place too early. Positions count from 0, so after three words
the next one stands at 3, which is `before.shape[1]`.
    start=start → start=max(start - 1, 0)
Your new words stand one place too late. Positions count from 0, so after three words
the next one stands at 3, which is `before.shape[1]`.
    start=start → start=start + 1 if start else 0
The mask has the rows of the first words of the sentence; the new words stand at its
end, and theirs are the last rows.
    [start:] → [: words.shape[1]]
Your new words see only each other: their keys and values are those in `before` and
their own.
    self.attention(x, tokens, tokens, mask) → self.attention(x, x, x, mask[:, start:])
You return the new tokens alone. Return those in `before` as well, in front: the next
call gets what this one returns.
    return logits, tokens → return logits, x
What the words themselves are is missing: the logits come from x plus what it read, as
in HurriedDecoder.
    x + self.attention → self.attention
Two words came after three others, and your mask does not fit. It needs a row for each
new word, and a column for each of all five: the last rows of causal_mask(5).
    causal_mask(tokens.shape[1])[start:] → causal_mask(words.shape[1])
right:
    [start:] → [-words.shape[1] :]
    tokens, tokens, mask → tokens, tokens, mask.expand(len(x), -1, -1)
"""


@Exercise("11.3", "Another row in the memory", axes="batch token vocab")
def with_row_of(model, source, other, row, target):
    """Return the logits where one row of the memory comes from another sentence."""
    lengths = torch.full((len(source),), source.shape[1])
    memory = model.encoder(source, lengths).clone()
    theirs = model.encoder(other, lengths)
    memory[:, row] = theirs[:, row]
    return model.decoder(target, memory)


@with_row_of.oracle
def _(model, source, other, row, target):
    """Put the memory together from its rows, and let the decoder read it."""
    batch, words = source.shape
    lengths = torch.full((batch,), words)
    rows = model.encoder(source, lengths).unbind(dim=1)
    theirs = model.encoder(other, lengths).unbind(dim=1)
    memory = torch.stack([*rows[:row], theirs[row], *rows[row + 1 :]], dim=1)
    return model.decoder(target, memory)


def exchange(row, batch=1):
    """Make a model, two sources that differ in every word, and a target."""
    sizes, options = (8, 2, 12, 2), {"max_tokens": 16, "norm_first": False}
    model = Transformer(Encoder(20, *sizes, **options), Decoder(20, *sizes, **options))
    source, target = torch.randint(4, 20, (batch, 5)), torch.randint(4, 20, (batch, 6))
    other = 4 + (source - 4 + torch.randint(1, 16, source.shape)) % 16
    return model.eval(), source, other, row, target


@with_row_of.cases
def _():
    yield "a row in the middle", *exchange(2)
    yield "the first row, and two sentences at once", *exchange(0, batch=2)
    model, source, _, row, target = exchange(3)
    yield "both sentences are the same", model, source, source, row, target


with_row_of.hints = """
- `model.encoder(source, lengths)` is the memory (batch, token, d_model), and the
  decoder reads nothing else of the source.
- Encode both sentences whole, copy the first memory with `clone`, and write the one row
  of the second into it.
- `model.decoder(target, memory)` gives the logits: where nothing is padding, the source
  needs no mask.
"""

with_row_of.mistakes = """
You exchange the word and encode the sentence anew, so that all rows of the memory move.
Exchange one row of the memory, and leave the sentence as it is.
    memory[:, row] = theirs[:, row] → words = torch.arange(source.shape[1])
        memory = model.encoder(torch.where(words == row, other, source), lengths)
The decoder reads the memory of the other sentence, all of it. One row shall come from
there.
    memory[:, row] = theirs[:, row] → memory = theirs
The decoder reads the memory of the first sentence, and nothing in it is exchanged.
    memory[:, row] = theirs[:, row] →
The other sentence's memory got a row of the first. It is the other way round: one row
of the other, all else of the first.
    encoder(source, lengths) → encoder(other, lengths)
    and theirs = model.encoder(other, lengths) → theirs = model.encoder(source, lengths)
All rows from this one on come from the other sentence. Only one shall.
    memory[:, row] = theirs[:, row] → memory[:, row:] = theirs[:, row:]
`memory[row]` is the memory of a whole sentence of the batch. The rows of its words lie
along the second axis: `memory[:, row]`.
    memory[:, row] = theirs[:, row] → memory[row] = theirs[row]
The word of that row was encoded alone, at place 0 and without its neighbors. Encode the
other sentence whole, and take its row.
    memory[:, row] = theirs[:, row] → word = other[:, row : row + 1]
        memory[:, row] = model.encoder(word, torch.ones_like(lengths))[:, 0]
The row that you put in is an embedding, which has not gone through the blocks. Take it
from the encoder's memory of the other sentence.
    encoder(other, lengths) → encoder.embeddings(other)
right:
    memory[:, row] = theirs[:, row] → chosen = torch.arange(source.shape[1])[:, None] == row
        memory = theirs.where(chosen, memory)
    return model.decoder(target, memory) → state, steps = model.encode(source, lengths)._replace(memory=memory), []
        for tokens in target.split(1, dim=1):
            logits, state = model.decode_step(tokens, state)
            steps.append(logits)
        return torch.stack(steps, dim=1)
"""
