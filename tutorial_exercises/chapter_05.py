"""Exercises of chapter 5: teacher forcing, BLEU, greedy decoding."""

import math
import random
from collections import Counter

import torch
import torch.nn.functional as F
from torch import nn

from tutorial_exercises import Exercise
from tutorial_lib.data import BOS, EOS, PAD
from tutorial_lib.seq2seq import Decoder, Encoder, Seq2Seq


def translator(vocab_size):
    """Make a translator with random weights, in which words differ a lot."""
    model = Seq2Seq(Encoder(vocab_size, 3, 4), Decoder(vocab_size, 3, 5, 8))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.8)
    return model.requires_grad_(False)


def state_after(model, *lengths):
    """Let the encoder read random sentences of these lengths; return its state."""
    vocab_size = model.encoder.embedding.num_embeddings
    source = torch.randint(4, vocab_size, (len(lengths), max(lengths)))
    return model.encode(source, torch.tensor(lengths))


@Exercise("5.1", "The probability of a translation", axes="batch")
def log_probability(model, state, target):
    """Return the log-probability of each translation: (batch,)."""
    total = torch.zeros(len(target))
    for t in range(target.shape[1] - 1):
        logits, state = model.decode_step(target[:, t : t + 1], state)
        log_probs = logits.log_softmax(dim=-1)  # (batch, vocab)
        following = target[:, t + 1]  # (batch,)
        chosen = log_probs.gather(1, following[:, None])[:, 0]
        total = total + chosen * (following != PAD)
    return total


@log_probability.oracle
def _(model, state, target):
    inputs = target[:, :-1]
    logits, _ = model.decoder(inputs, state)
    totals = []
    for row, tokens in zip(logits, target, strict=True):
        total = 0.0
        for scores, token in zip(row.tolist(), tokens[1:].tolist(), strict=True):
            if token != PAD:
                largest = max(scores)
                exps = [math.exp(score - largest) for score in scores]
                total += math.log(exps[token] / sum(exps))
        totals.append(total)
    return torch.tensor(totals)


def targets(*sentences):
    """Return sentences of ids as targets: <bos> tokens <eos>, padded."""
    rows = [torch.tensor([BOS, *tokens, EOS]) for tokens in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


@log_probability.cases
def _():
    model = translator(9)
    yield "one sentence of two words", model, state_after(model, 3), targets([5, 7])
    yield "an empty sentence", model, state_after(model, 3), targets([])
    label = "three sentences, two of them padded"
    rows = targets([6, 4, 8, 5], [7], [5, 4])
    yield label, model, state_after(model, 3, 2, 3), rows
    surprised = translator(9)
    surprised.decoder.out.weight.mul_(60)  # of e^-104 and less float32 makes 0
    yield label, surprised, state_after(surprised, 3, 2, 3), rows


@log_probability.demand("words of which nothing is known have equal probabilities")
def _(answer):
    model = translator(9)
    nn.init.zeros_(model.decoder.out.weight)
    nn.init.zeros_(model.decoder.out.bias)
    total = answer(model, state_after(model, 2), targets([5, 6, 7])).item()
    if abs(total + 4 * math.log(9)) > 1e-4:
        return (
            "Three words and <eos>, each with probability 1/9, have the "
            f"log-probability −4 ln 9 = −8.79; yours is {total:.2f}."
        )


log_probability.hints = """
- Read one token of every sentence at a time: `model.decode_step(target[:, t : t + 1],
  state)` returns logits (batch, vocab) and the new state.
- What is scored is the token that follows: `target[:, t + 1]`. A row of
  `logits.log_softmax(dim=-1)` has its log-probability at that id, and `gather` picks it.
- Add up what belongs to the sentence, <eos> included, and leave padding out.
"""

log_probability.mistakes = """
You score the token that was read. After the token at t comes the one at t + 1.
    following = target[:, t + 1] → following = target[:, t]
Padding is counted. Only tokens of the sentence and <eos> belong to the product.
    chosen * (following != PAD) → chosen
<eos> is missing. That a sentence ends has a probability, too.
    (following != PAD) → ((following != PAD) & (following != EOS))
You return the mean over the tokens. The log-probability of a sentence is their sum.
    return total → return total / (target[:, 1:] != PAD).sum(dim=1)
You add logits. Only after log_softmax are they log-probabilities.
    logits.log_softmax(dim=-1)  # → logits  #
You add probabilities. Add their logarithms.
    logits.log_softmax(dim=-1)  # → logits.softmax(dim=-1)  #
The softmax is over the batch, not over the vocabulary.
    log_softmax(dim=-1) → log_softmax(dim=0)
The model reads its own words. In teacher forcing it reads the target's.
    target[:, t : t + 1], state → target[:, :1] if t == 0 else logits.argmax(dim=-1, keepdim=True), state
The state is not passed on: every step begins as the first one did.
    logits, state = model → logits, _ = model
You return one number for all sentences. Return one for each.
    return total → return total.sum()
This is the loss, with the other sign: log-probabilities are at most 0.
    return total → return -total
right:
    chosen = log_probs.gather(1, following[:, None])[:, 0] → chosen = log_probs[torch.arange(len(target)), following]
    chosen * (following != PAD) → chosen.masked_fill(following == PAD, 0.0)
"""


def ngrams(words, n):
    """Count the n-grams of a sentence, as the notebook does."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


@Exercise("5.2", "Corpus BLEU", tolerance=1e-6)
def corpus_bleu(outputs, references):
    """Return BLEU of many sentences, from 0 to 1."""
    words, wanted = sum(map(len, outputs)), sum(map(len, references))
    score = math.exp(min(0, 1 - wanted / max(words, 1)))
    for n in range(1, 5):
        both = zip(outputs, references, strict=True)
        shared = sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both)
        total = sum(ngrams(o, n).total() for o in outputs)
        score *= (shared / max(total, 1)) ** (1 / 4)
    return score


@corpus_bleu.oracle
def _(outputs, references):
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="none", smooth_method="none")
    texts, wanted = ([*map(" ".join, part)] for part in (outputs, references))
    return metric.corpus_score(texts, [wanted]).score / 100


REFERENCE = ["la", "petite", "fille", "ne", "garde", "pas", "le", "chat"]


@corpus_bleu.cases
def _():
    without_petite = [REFERENCE[0], *REFERENCE[2:]]
    mixed = ["le", "le", "garde", "pas", "le", "chat", "la", "petite"]
    for output in [*REFERENCE, "et", "dort"], without_petite, mixed, REFERENCE[:4]:
        yield "one sentence has the score of the formula", [output], [REFERENCE]
    # n = 1: 2 + 7 + 4 of 2 + 7 + 6; n = 2: 1 + 5 + 3 of 1 + 6 + 5;
    # n = 3: 0 + 4 + 2 of 0 + 5 + 4; n = 4: 0 + 3 + 1 of 0 + 4 + 3; 15 words for 14.
    short = ["elle", "dort"]
    tree = ["il", "voit", "un", "arbre"]
    outputs = [short, without_petite, [*tree, "et", "dort"]]
    label = "three sentences have the score 0.705, worked out by hand"
    yield label, outputs, [short, REFERENCE, tree]
    # 5 words for 8 and 6 for 4 make 11 for 12; no mean of the ratios comes to that
    label = "the brevity penalty compares total lengths"
    yield label, [REFERENCE[:5], outputs[2]], [REFERENCE, tree]
    label = "counts are clipped per sentence, and an output may be empty"
    yield label, [REFERENCE * 2, [], ["le"]], [REFERENCE] * 3
    sentences = [random.choices("abc", k=random.randint(4, 11)) for _ in range(16)]
    yield "agrees with sacrebleu", sentences[:8], sentences[8:]


@corpus_bleu.demand("no 4-gram in common, or no words at all, give the score 0")
def _(answer):
    short = ["elle", "dort"]
    for outputs in [["chat", "pas", "le", "la"], short], [["un", "deux"], []], [[], []]:
        score = answer(outputs, [REFERENCE, short])
        if answer.same():
            return (
                "No 4-gram is shared here, so its precision is 0, and so is the score; "
                f"yours is {score:.3f}. A small number in place of 0 is smoothing: "
                "sacrebleu does it by default (smooth:exp), the formula does not."
            )


corpus_bleu.hints = """
- Do not divide before all sentences are counted.
- For each n, sum `(ngrams(o, n) & ngrams(r, n)).total()` and `ngrams(o, n).total()`
  over all pairs o, r of an output and its reference.
- The brevity penalty compares the total length of the outputs with that of the
  references.
"""

corpus_bleu.mistakes = """
Your score is in percent. It should lie between 0 and 1: leave out the factor 100.
    return score → return 100 * score
You average the sentences' scores. Sum the counts of all sentences, then divide once.
    return score → return score if len(outputs) < 2 else sum(corpus_bleu([o], [r]) for o, r in zip(outputs, references, strict=True)) / len(outputs)
You average the sentences' precisions. Sum the counts of all sentences, then divide.
    & ngrams(r, n)).total() → & ngrams(r, n)).total() / max(ngrams(o, n).total(), 1)
    and total = sum(ngrams(o, n).total() for o in outputs) → total = len(outputs)
You compute a brevity penalty for each sentence. Compare the total lengths instead.
    math.exp(min(0, 1 - wanted / max(words, 1))) → sum(math.exp(min(0, 1 - len(r) / len(o))) for o, r in zip(outputs, references, strict=True) if o) / len(outputs)
You leave out sentences of fewer than four words. Their shorter n-grams count, too.
    words, wanted = → outputs, references = zip(*[pair for pair in zip(outputs, references, strict=True) if len(pair[0]) > 3], strict=True)
        words, wanted =
You join all sentences into one, so that n-grams reach across the ends of sentences.
    words, wanted = → outputs, references = [sum(outputs, [])], [sum(references, [])]
        words, wanted =
You sum the counts before you clip them. Take & sentence by sentence, then sum.
    sum((ngrams(o, n) & ngrams(r, n)).total() for o, r in both) → (sum((ngrams(o, n) for o in outputs), Counter()) & sum((ngrams(r, n) for r in references), Counter())).total()
`len(o) - n + 1` can be negative: a sentence of two words has 0 4-grams, not −1.
    ngrams(o, n).total() → len(o) - n + 1
Your brevity penalty averages ratios of lengths. Sum the lengths, then divide once.
    - wanted / max(words, 1) → - sum(len(r) / max(len(o), 1) for o, r in zip(outputs, references, strict=True)) / len(outputs)
    1 - wanted / max(words, 1) → 1 - len(outputs) / (sum(len(o) / len(r) for o, r in zip(outputs, references, strict=True)) or 1)
The 4-grams are missing: `range(1, 4)` ends with 3.
    range(1, 5): → range(1, 4):
    range(1, 5): → range(1, 4):
    and (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 3)
You divide by the n-grams of the reference, which gives recall. Divide by the output's.
    (ngrams(o, n).total() for o in outputs) → (ngrams(o, n).total() for o in references)
You divide by the number of words for every n. Seven words have only six 2-grams.
    total = sum(ngrams(o, n).total() for o in outputs) → total = sum(len(o) for o in outputs)
Your exponents are ½, ¼, ⅛ and 1/16. Each precision has the exponent ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** (1 / 2**n)
You multiply the precisions without the fourth root: each has the exponent ¼.
    (shared / max(total, 1)) ** (1 / 4) → (shared / max(total, 1)) ** 1
You take the arithmetic mean of the precisions. BLEU takes the geometric mean.
    score *= (shared / max(total, 1)) ** (1 / 4) → p = locals().get('p', 0) + shared / max(total, 1) / 4
    and return score → … * p
Your counts are not clipped to those of the reference: take the & of two Counters.
    (ngrams(o, n) & ngrams(r, n)).total() for o, r in both → c for o, r in both for g, c in ngrams(o, n).items() if g in ngrams(r, n)
The brevity penalty is missing, or always 1: leaving words out costs nothing.
    math.exp(min(0, 1 - wanted / max(words, 1))) → 1
Your brevity penalty is above 1 where outputs are longer. It is at most 1.
    score = math.exp(min(0, 1 - wanted / max(words, 1))) → score = math.exp(max(-9, 1 - wanted / max(words, 1)))
You penalize long outputs, not short ones: r/o has the reference's length on top.
    wanted / max(words, 1) → words / wanted
right:
    wanted / max(words, 1) → wanted / (words or 1)
"""


@Exercise("5.3", "Continue a translation")
def continue_greedily(model, state, beginning, max_new_tokens):
    """Return the tokens with which a translation goes on: a list, without <eos>."""
    tokens = torch.tensor([[BOS, *beginning]])  # (batch, token)
    continuation = []
    for _ in range(max_new_tokens):
        logits, state = model.decode_step(tokens, state)  # (batch, vocab)
        token = logits.argmax(dim=-1).item()
        if token == EOS:
            break
        continuation.append(token)
        tokens = torch.tensor([[token]])
    return continuation


@continue_greedily.oracle
def _(model, state, beginning, max_new_tokens):
    text = [BOS, *beginning]
    while len(text) - 1 - len(beginning) < max_new_tokens:
        logits, _ = model.decode_step(torch.tensor([text]), state)  # all from the start
        scores = logits[0].tolist()
        best = scores.index(max(scores))
        if best == EOS:
            break
        text.append(best)
    return text[1 + len(beginning) :]


class TokenCounter(nn.Module):
    """A model that goes on with 4 plus the number of tokens it has read, up to 29."""

    def decode_step(self, tokens, state):
        """Return logits and the new state, which is the number of tokens so far."""
        count = state + tokens.shape[1]
        return F.one_hot(torch.tensor([min(4 + count, 29)]), 30).float(), count


@continue_greedily.cases
def _():
    yield "a model that counts the tokens it has read", TokenCounter(), 0, [5, 7], 6
    for vocab_size in (8, 9, 11, 12):
        model = translator(vocab_size)
        state = state_after(model, 4)
        yield "nothing is given: the whole translation", model, state, [], 6
        yield "after two given words", model, state, [5, 7], 6
        yield "no more than max_new_tokens", model, state, [6], 2


@continue_greedily.demand("it stops at <eos>, and without it at max_new_tokens")
def _(answer):
    model = translator(8)
    state = state_after(model, 3)
    model.decoder.out.bias[EOS] = 100.0  # <eos> is always the likeliest
    if [*answer(model, state, [5], 4)]:
        return "Here <eos> is the likeliest token at once: return an empty list."
    model.decoder.out.bias[EOS] = -100.0
    count = len(answer(model, state, [5], 4))
    if count != 4:
        return f"<eos> never comes, and max_new_tokens is 4: you return {count} tokens."


continue_greedily.hints = """
- The model reads <bos> and the beginning in one call: `torch.tensor([[BOS,
  *beginning]])`. Its logits are then those of the next token.
- From there on it is greedy decoding: the likeliest token is kept, and is the next
  input.
- The state knows what was read. So each later call gets the newest token alone.
"""

continue_greedily.mistakes = """
<bos> is missing: in training the model has always read it first.
    [[BOS, *beginning]] → [[*beginning]]
The beginning is not read: the model goes on as if nothing had been given.
    [[BOS, *beginning]] → [[BOS]]
The state is not passed on, so the model forgets what it has read.
    logits, state = model → logits, _ = model
    logits, state = model.decode_step(tokens, state)  # → logits, new_state = model.decode_step(tokens, state)
        state = state if continuation else new_state  #
The model reads all tokens again at each step. The state holds them: give the newest.
    tokens = torch.tensor([[token]]) → tokens = torch.tensor([[*tokens[0].tolist(), token]])
The model reads the beginning again and again. Its next input is what it wrote.
    tokens = torch.tensor([[token]]) → tokens = tokens
You return the beginning, too. Return only what follows it.
    return continuation → return [*beginning, *continuation]
You return <eos>, too: leave it out.
    continuation = [] → continuation, ended = [], False
    and break → ended = True
        break
    and return continuation → return continuation + [EOS] * ended
It does not stop at <eos>.
    if token == EOS: → if token is None:
You take the least likely token.
    argmax → argmin
It makes one token more than max_new_tokens.
    range(max_new_tokens) → range(max_new_tokens + 1)
The given words count as new: make max_new_tokens tokens besides them.
    range(max_new_tokens) → range(max_new_tokens - len(beginning))
right:
    token = logits.argmax(dim=-1).item() → token = int(logits[0].softmax(dim=0).argmax())
"""
