"""Decoding agrees with the model's own probabilities, at every position."""

import math
from functools import partial
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tutorial_lib.attention import KVCache
from tutorial_lib.data.text import BOS, EOS, Vocabulary, pad
from tutorial_lib.decoding import (
    apply_temperature,
    beam_search,
    greedy,
    min_p,
    sample,
    select,
    speculative_decode,
    top_k,
    top_p,
    translate,
)
from tutorial_lib.gpt import GPT
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq
from tutorial_lib.transformer import DecoderState

LENGTHS = torch.tensor([4, 1, 3, 2])
SOURCE = torch.tensor([[4, 5, 6, 7], [5, 0, 0, 0], [7, 7, 4, 0], [6, 4, 0, 0]])


def make_model(seed, *, decoder=AttentionDecoder, dropout=0.0):
    """Make a model whose logits are far from uniform and differ between tokens."""
    torch.manual_seed(seed)
    sizes = (6, 4, 7, 12, *([5] if decoder is AttentionDecoder else []))
    model = Seq2Seq(Encoder(9, 4, 6, dropout=dropout), decoder(*sizes, dropout=dropout))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


def decoded(decode, model, source=SOURCE, lengths=LENGTHS, max_new_tokens=8):
    """Decode from what the model makes of some sources."""
    with torch.no_grad():
        first, state = torch.full((len(source), 1), BOS), model.encode(source, lengths)
    return decode(model, first, state, max_new_tokens=max_new_tokens)


@torch.no_grad()
def teacher_forced(model, i, tokens, *, length):
    """Return the log-probabilities (token, vocab) along a translation of source i."""
    target, n = torch.tensor([[BOS, *tokens, EOS][: length + 1]]), LENGTHS[i : i + 1]
    logits = model(SOURCE[i : i + 1, : n[0]], n, target[:, :-1])[0]
    return logits.log_softmax(-1), target[0, 1:]


@pytest.mark.parametrize("decoder", [Decoder, AttentionDecoder])
@pytest.mark.parametrize(
    "decode", [greedy, *(partial(beam_search, num_beams=n) for n in (1, 2, 5))]
)
def test_log_probabilities_are_those_of_teacher_forcing(decoder, decode):
    lengths = []
    for seed in range(4):
        model = make_model(seed, decoder=decoder)
        found = decoded(decode, model)
        for i, tokens in enumerate(found.tokens):
            log_probs, target = teacher_forced(model, i, tokens, length=8)
            total = log_probs.gather(1, target[:, None]).sum()
            torch.testing.assert_close(found.log_probs[i], total)
            if decode is greedy:
                assert log_probs.argmax(-1).equal(target)
        lengths += map(len, found.tokens)
    assert len({*lengths}) > 1


@pytest.mark.parametrize("decode", [greedy, partial(beam_search, num_beams=2)])
def test_dropout_is_off_and_comes_back(decode):
    model = make_model(0, dropout=0.5)
    with torch.no_grad():
        state = model.eval().encode(SOURCE, LENGTHS)
    model.train()
    options = {"max_new_tokens": 8}
    first = torch.full((4, 1), BOS)
    once, again = (decode(model, first, state, **options) for _ in range(2))
    assert once.log_probs.equal(again.log_probs) and not once.log_probs.requires_grad
    assert model.training and model.decoder.dropout.training
    model.encoder.eval()  # somebody's choice
    decode(model, first, state, **options)
    assert model.training and not model.encoder.training
    with pytest.raises(IndexError):
        decode(model, first + 99, state, **options)
    assert model.training


@pytest.mark.parametrize("decode", [greedy, sample, partial(beam_search, num_beams=2)])
def test_whatever_has_a_step_is_a_model(decode):
    class Counting:
        def decode_step(self, tokens, state):
            return 1e4 * torch.eye(9)[(tokens[:, 0] + 1) % 9], state

    first, state = torch.tensor([[3], [5]]), torch.zeros(2)
    found = decode(Counting(), first, state, max_new_tokens=5, eos=8)
    assert found.tokens == [[4, 5, 6, 7], [6, 7]]


def test_select_reaches_into_every_kind_of_state_and_keeps_it():
    rows, cache = torch.tensor([2, 0, 0]), KVCache()
    cache.append("layer", *torch.arange(12.0).view(2, 3, 1, 2, 1))
    state = DecoderState(torch.arange(3), [torch.arange(6).view(3, 2), 7], cache)
    chosen = select(state, rows)
    assert isinstance(chosen, DecoderState) and type(chosen.kv_cache) is KVCache
    assert chosen.memory.tolist() == [2, 0, 0]
    assert chosen.memory_mask[0].tolist() == [[4, 5], [0, 1], [0, 1]]
    assert chosen.memory_mask[1] == 7  # which is the same for every row
    keys, values = chosen.kv_cache["layer"]
    assert keys.flatten(1).tolist() == [[4, 5], [0, 1], [0, 1]]
    assert values.flatten(1).tolist() == [[10, 11], [6, 7], [6, 7]]
    assert chosen.kv_cache.length == 2


@pytest.mark.parametrize("num_beams", [1, 2, 3])
def test_translate_takes_words_and_gives_words_in_their_order(num_beams):
    data = SimpleNamespace(
        source_vocabulary=Vocabulary([["a", "b", "c", "d", "e"]]),
        target_vocabulary=Vocabulary([["x", "y"]]),
    )
    model, options = make_model(4), {"num_beams": num_beams, "progress": False}
    sentences = [["a", "b"], ["c"], ["unheard", "d", "e"], ["b"], ["e", "e"]]
    together = translate(model, sentences, data, batch_size=2, **options)
    alone = [translate(model, [s], data, **options)[0] for s in sentences]
    assert [words[:5] for words in together] == [words[:5] for words in alone]
    decode = partial(beam_search, num_beams=num_beams)
    for sentence, words in zip(sentences, alone, strict=True):
        source, longest = (
            pad([sentence], data.source_vocabulary),
            2 * len(sentence) + 10,
        )
        found = decoded(decode, model, *source, max_new_tokens=longest)
        assert data.target_vocabulary.decode(found.tokens[0]) == words
    assert translate(model, [], data) == []
    with pytest.raises(ValueError, match="must have a word"):
        translate(model, [["a"], []], data)
    for size in (0, -1):
        message = rf"batch_size must be a positive .*, got {size}"
        with pytest.raises(ValueError, match=message):
            translate(model, [["a"]], data, batch_size=size)


# --- Languages: tables of what follows every beginning ------------------------------


class Languages(nn.Module):
    """As many models as rows, each with a table: logits after every beginning."""

    def __init__(self, tables):
        super().__init__()
        self.tables = tables  # (batch, beginning, vocab)

    def decode_step(self, tokens, state):
        sizes = self.tables.shape[1:]
        beginning = number_of((state["beginning"], tokens[:, -1]), *sizes)
        logits = self.tables[state["language"], beginning]
        return logits, {**state, "beginning": beginning}

    def decode(self, decode, *, bos=0, **options):
        languages = torch.arange(len(self.tables))
        state = {"language": languages, "beginning": torch.zeros_like(languages)}
        first = torch.full((len(languages), 1), bos)
        return decode(self, first, state, **{"eos": 1, **options})


def number_of(beginning, rows, vocab):
    number, *tokens = beginning
    for token in tokens:
        number = (number * (vocab + 1) + token + 1) % rows
    return number


def log_prob_of(table, tokens):
    """Add up what a table, of log-probabilities in lists, gives to the tokens."""
    sizes = len(table), len(table[0])
    beginnings = [(0, 0, *tokens[:t]) for t in range(len(tokens))]
    return sum(
        table[number_of(b, *sizes)][x] for b, x in zip(beginnings, tokens, strict=True)
    )


def test_a_wide_beam_finds_the_best_finished_sentence_of_300_languages():
    tables = 2 * torch.randn(300, 97, 3, generator=torch.Generator().manual_seed(7))
    found = Languages(tables).decode(beam_search, num_beams=50, max_new_tokens=4)
    finished = [(*w, 1) for length in range(4) for w in product((0, 2), repeat=length)]
    tables = tables.log_softmax(-1).tolist()
    for table, tokens in zip(tables, found.tokens, strict=True):
        best = max(finished, key=lambda tokens: log_prob_of(table, tokens))
        assert (*tokens, 1) == best


def search_slowly(table, *, num_beams, max_new_tokens):
    """Search one language with lists, and return the tokens, their <eos> included."""
    beams, found = [()], []
    for _ in range(max_new_tokens):
        ended = [tokens for tokens in beams if 1 in tokens]
        others = [tokens for tokens in beams if 1 not in tokens]
        longer = [(*tokens, new) for tokens in others for new in range(len(table[0]))]
        beams = sorted(ended + longer, key=lambda tokens: -log_prob_of(table, tokens))
        beams = beams[:num_beams]
        found += [tokens for tokens in beams if 1 in tokens]
    return max(found or beams, key=lambda tokens: log_prob_of(table, tokens))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    num_beams=st.integers(1, 6),
    vocab=st.integers(2, 5),
    max_new_tokens=st.integers(1, 5),
    eos=st.floats(-6, 3),
)
def test_any_beam_finds_what_a_search_with_lists_finds(
    seed, num_beams, vocab, max_new_tokens, eos
):
    tables = torch.randn(3, 97, vocab, generator=torch.Generator().manual_seed(seed))
    tables[..., 1] += eos  # sentences end soon, late or never
    options = {"num_beams": num_beams, "max_new_tokens": max_new_tokens}
    found = Languages(tables).decode(beam_search, **options)
    for table, *result in zip(tables.log_softmax(-1).tolist(), *found, strict=True):
        tokens = search_slowly(table, **options)
        total = pytest.approx(log_prob_of(table, tokens), abs=1e-4)
        assert result == [[token for token in tokens if token != 1], total]


def test_a_finished_sentence_that_was_pushed_out_of_the_beam_still_wins():
    # After <bos>: .3 to end, .7 for token 2; then .5 each for tokens 2 and 3. With two
    # beams the sentence that ended is pushed out by .35 and .35, which never end.
    first = torch.tensor([0, 0.3, 0.7, 0]).log()
    later = torch.tensor([0, 0, 0.5, 0.5]).log()
    tables = torch.stack((later, first, *[later] * 95))[None]
    found = Languages(tables).decode(beam_search, num_beams=2, max_new_tokens=3)
    assert found.tokens == [[]]
    assert found.log_probs.tolist() == pytest.approx([math.log(0.3)])


every_decoding = pytest.mark.parametrize(
    "decode", [greedy, sample, *(partial(beam_search, num_beams=n) for n in (1, 3))]
)


@every_decoding
def test_one_token_may_begin_and_end_every_sentence(decode):
    if decode is sample:
        decode = partial(sample, seed=0)
    tables = torch.randn(9, 1, 4, generator=torch.Generator().manual_seed(3))
    model = Languages(tables.expand(9, 97, 4))  # what came before says nothing
    usual, same = (model.decode(decode, max_new_tokens=4, bos=bos) for bos in (0, 1))
    assert same.tokens == usual.tokens and any(usual.tokens)


@every_decoding
def test_no_sentences_and_no_tokens_are_decoded_to_none(decode):
    found = Languages(torch.zeros(0, 97, 3)).decode(decode, max_new_tokens=8)
    assert found.tokens == [] and found.log_probs.shape == (0,)
    found = decoded(decode, make_model(0), max_new_tokens=0)
    assert found.tokens == [[]] * 4 and found.log_probs.eq(0).all()


@every_decoding
def test_a_number_of_tokens_or_beams_that_is_none_is_refused(decode):
    for count in (-1, 2.5):
        with pytest.raises(ValueError, match=rf"0 or more, got {count}"):
            decoded(decode, make_model(0), max_new_tokens=count)
    with pytest.raises(ValueError, match=r"num_beams must be a positive .*, got 0"):
        decoded(partial(beam_search, num_beams=0), make_model(0))


class Breaking(Languages):
    """Its logits are ``broken`` in the first row at one ``step``, and after ``eos``."""

    def __init__(self, tables, step=0, broken=torch.nan):
        super().__init__(tables)
        self.step, self.broken = step, broken

    def decode_step(self, tokens, state):
        logits, state = super().decode_step(tokens, state)
        steps = state.get("steps", torch.zeros_like(tokens[:, 0])) + 1
        if steps[0] == self.step:
            logits = logits.index_fill(0, torch.tensor([0]), self.broken)
        logits = logits.where(tokens != 1, torch.nan)
        return logits, {**state, "steps": steps}


@every_decoding
@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize("step", [1, 3])
def test_logits_without_probabilities_are_refused_at_their_token(decode, broken, step):
    tables = torch.tensor([0, -99.0, 1]).expand(2, 97, 3)
    model = Breaking(tables, step, broken)
    with pytest.raises(ValueError, match=rf"no probabilities for token {step}.*NaN"):
        model.decode(decode, max_new_tokens=5)
    assert len(model.decode(decode, max_new_tokens=step - 1).tokens) == 2


@pytest.mark.parametrize("decode", [greedy, partial(beam_search, num_beams=2)])
def test_what_comes_after_a_sentence_has_ended_does_not_count(decode):
    tables = torch.tensor([[0, 99.0, 0], [0, -99.0, 1]])[:, None].expand(2, 97, 3)
    tokens = Breaking(tables).decode(decode, max_new_tokens=4).tokens
    assert tokens[0] == [] and len(tokens[1]) == 4


# --- Logits processors --------------------------------------------------------------

PROBS = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])


@pytest.mark.parametrize(
    ("process", "parameter", "kept"),
    [
        (top_k, 1, [1]), (top_k, 2, [1, 3]), (top_k, 5, [*range(5)]),
        (top_k, 9, [*range(5)]),
        # Sums of the likeliest: .4, .7, .85, .95, 1
        (top_p, 0.01, [1]), (top_p, 0.39, [1]), (top_p, 0.41, [1, 3]),
        (top_p, 0.69, [1, 3]), (top_p, 0.71, [1, 3, 4]), (top_p, 0.94, [0, 1, 3, 4]),
        (top_p, 0.96, [*range(5)]), (top_p, 1, [*range(5)]),
        (min_p, 0.01, [*range(5)]), (min_p, 0.2, [0, 1, 3, 4]), (min_p, 0.3, [1, 3, 4]),
        (min_p, 1, [1]),
    ],
)  # fmt: skip
def test_the_likeliest_tokens_are_kept_as_they_are(process, parameter, kept):
    logits = PROBS.log()
    found = process(logits, parameter)
    assert found.gt(-torch.inf).nonzero().flatten().tolist() == kept
    assert found[kept].equal(logits[kept])


def test_temperature_divides():
    found = apply_temperature(PROBS.log(), 0.5).softmax(0)
    torch.testing.assert_close(found, PROBS**2 / 0.285)


@pytest.mark.parametrize(
    ("process", "parameter"),
    [(apply_temperature, 0.7), (top_k, 2), (top_p, 0.6), (min_p, 0.3)],
)
def test_every_row_is_processed_by_itself_and_none_in_place(process, parameter):
    rows = torch.randn(3, 4, 7, generator=torch.Generator().manual_seed(0))
    before = rows.clone()
    found = process(rows, parameter)
    assert rows.equal(before)
    for i, j in product(range(3), range(4)):
        assert found[i, j].equal(process(rows[i, j], parameter))


@pytest.mark.parametrize(
    ("process", "parameter", "message"),
    [
        (apply_temperature, 0, "temperature must be above 0, got 0: for the likeliest"),
        (apply_temperature, -1.0, "got -1.0: .* greedy"),
        (apply_temperature, math.nan, "got nan"),
        (top_k, 0, "k must be a positive whole number, got 0"),
        (top_k, 1.5, "k must be a positive whole number, got 1.5"),
        (top_p, 0, "top_p must be above 0 and at most 1, got 0: .* greedy"),
        (top_p, 1.1, "got 1.1"),
        (min_p, 0, "min_p must be above 0"),
        (min_p, math.nan, "got nan"),
    ],
)
def test_a_parameter_that_leaves_nothing_to_draw_is_refused(
    process, parameter, message
):
    with pytest.raises(ValueError, match=message):
        process(PROBS.log(), parameter)


# --- Sampling and speculative decoding ----------------------------------------------


class Chain(nn.Module):
    """A language whose next token depends on the last alone."""

    def __init__(self, seed):
        super().__init__()
        self.table = torch.randn(5, 5, generator=torch.Generator().manual_seed(seed))

    def forward(self, tokens):
        return self.table[tokens]

    def decode_step(self, tokens, state):
        return self.table[tokens[:, -1]], state

    def sample(self, batch, **options):
        return sample(self, torch.full((batch, 1), BOS), (), **options)

    def two_tokens(self):
        """Return how likely each pair of first tokens is, (vocab, vocab)."""
        probs = self.table.softmax(-1)
        return probs[BOS][:, None] * probs


def misfit(counts, expected):
    """Return χ² divided by its mean, which is 1 if ``expected`` is the truth."""
    freedom = (expected > 0).sum() - 1
    return float(((counts - expected) ** 2 / expected.clamp(min=1e-9)).sum() / freedom)


@pytest.mark.parametrize("seed", range(3))
def test_tokens_are_drawn_with_the_model_s_probabilities(seed):
    model, count = Chain(seed), 20_000
    drawn = model.sample(count, max_new_tokens=2, seed=seed, eos=9)
    first, second = torch.tensor(drawn.tokens).T
    counts = torch.bincount(5 * first + second, minlength=25).view(5, 5)
    assert misfit(counts, count * model.two_tokens()) < 2.2  # p = 0.0006
    expected = model.two_tokens()[first, second].log()
    torch.testing.assert_close(drawn.log_probs, expected)


def test_processed_logits_are_drawn_from_and_a_seed_repeats_the_draws():
    model, options = Chain(0), {"max_new_tokens": 6, "eos": 9}
    two, one = ([lambda x, k=k: top_k(x, k)] for k in (2, 1))
    drawn = model.sample(400, seed=0, logits_processors=two, **options)
    likely = model.table.topk(2).indices.tolist()
    pairs = [pair for tokens in drawn.tokens for pair in pairwise([BOS, *tokens])]
    assert all(token in likely[last] for last, token in pairs)
    sure = model.sample(4, logits_processors=one, **options)
    expected = greedy(model, torch.full((4, 1), BOS), (), **options)
    assert sure.tokens == expected.tokens
    once, again, other = (model.sample(4, seed=s, **options) for s in (1, 1, 2))
    assert once.tokens == again.tokens != other.tokens


def test_a_text_ends_with_its_eos():
    drawn = Chain(1).sample(500, max_new_tokens=9, seed=0)
    assert all(EOS not in tokens and len(tokens) <= 9 for tokens in drawn.tokens)
    assert {len(tokens) for tokens in drawn.tokens} >= {0, 1, 2, 9}


def speculated(target, draft, *, seed=0, **options):
    options = {"num_draft_tokens": 4, "max_new_tokens": 10, "eos": 9} | options
    return speculative_decode(target, draft, torch.tensor([BOS]), seed=seed, **options)


@pytest.mark.parametrize("num_draft_tokens", [1, 2, 4])
def test_speculative_decoding_draws_with_the_target_s_probabilities(num_draft_tokens):
    target, draft, count = Chain(0), Chain(7), 3000
    options = {"num_draft_tokens": num_draft_tokens, "max_new_tokens": 2}
    counts, calls = torch.zeros(5, 5), 0
    for seed in range(count):
        found = speculated(target, draft, seed=seed, **options)
        first, second = found.tokens
        counts[first, second] += 1
        calls += found.calls
    # The draft model's own draws are far off: the test can tell them apart.
    assert misfit(counts, count * target.two_tokens()) < 2.2
    assert misfit(counts, count * draft.two_tokens()) > 20
    assert calls < 2 * count


def test_drafts_of_the_target_itself_are_accepted_and_useless_ones_rejected():
    target, draft = Chain(0), Chain(0)
    found = speculated(target, draft)
    assert (len(found.tokens), found.calls, found.accepted) == (10, 2, 8)
    target.table[:, 0], draft.table[:] = -torch.inf, -torch.inf
    draft.table[:, 0] = 0.0  # drafts only what the target never says
    found = speculated(target, draft)
    assert (len(found.tokens), found.calls, found.accepted) == (10, 10, 0)


def test_a_text_ends_with_its_eos_even_within_a_draft():
    for seed in range(200):
        found = speculated(Chain(0), Chain(3), seed=seed, eos=EOS)
        assert EOS not in found.tokens and len(found.tokens) <= 10


def test_speculative_decoding_needs_a_prompt_and_a_draft_token():
    model, options = Chain(0), {"num_draft_tokens": 1, "max_new_tokens": 1}
    with pytest.raises(ValueError, match="begin with <bos>"):
        speculative_decode(model, model, torch.tensor([]), **options)
    with pytest.raises(ValueError, match="num_draft_tokens must be a positive whole"):
        speculated(model, model, num_draft_tokens=0)


def test_the_last_position_of_a_model_is_written_and_no_draft_goes_beyond_it():
    models = [GPT(20, size, 2, 1, max_tokens=16).eval() for size in (16, 8)]
    prompt, options = torch.ones(12, dtype=torch.long), {"eos": 99, "seed": 0}
    found = speculative_decode(
        *models, prompt, num_draft_tokens=3, max_new_tokens=5, **options
    )
    assert len(found.tokens) == 5


def test_two_vocabularies_are_refused():
    target, draft = (GPT(n, 8, 2, 1, max_tokens=16) for n in (20, 30))
    with pytest.raises(ValueError, match="got 20 and 30 tokens"):
        speculated(target, draft)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("p", [0.9, 0.99, 0.999, 1])
def test_top_p_keeps_as_much_in_half_precision(dtype, p):
    logits = 3 * torch.randn(4, 1000, generator=torch.manual_seed(0)).to(dtype)
    kept = top_p(logits, p)
    assert kept.dtype == dtype
    assert kept.isfinite().equal(top_p(logits.float(), p).isfinite())
    assert kept.isfinite().all() or p < 1


def test_top_p_keeps_the_first_of_equally_likely_tokens():
    kept = top_p(torch.tensor([1.0, 2.0, 2.0, 2.0]), 0.5).isfinite()
    assert kept.tolist() == [False, True, True, False]
