"""Decoding agrees with the model's own probabilities, at every position."""

import copy
import io
import math
from itertools import pairwise, product
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tutorial_exercises.chapter_12 import keep_min_p
from tutorial_lib.attention import KVCache
from tutorial_lib.data.text import BOS, EOS, Vocabulary
from tutorial_lib.decoding import (
    apply_temperature,
    beam_search,
    generate,
    greedy,
    keep_top_k,
    keep_top_p,
    sample,
    select,
    speculative_decode,
    translate,
)
from tutorial_lib.gpt import GPT
from tutorial_lib.seq2seq import AttentionDecoder, Decoder, Encoder, Seq2Seq
from tutorial_lib.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)

LENGTHS = torch.tensor([4, 1, 3, 2])
SOURCE = torch.tensor([[4, 5, 6, 7], [5, 0, 0, 0], [7, 7, 4, 0], [6, 4, 0, 0]])


def make_translator(kind, seed):
    """Make a model whose logits are far from uniform and differ between tokens."""
    torch.manual_seed(seed)
    if kind == "transformer":
        model = Transformer(
            TransformerEncoder(9, 8, 2, 1, d_ff=16, max_tokens=40),
            TransformerDecoder(6, 8, 2, 1, d_ff=16, max_tokens=40),
        )
    elif kind == "attention":
        model = Seq2Seq(Encoder(9, 4, 6), AttentionDecoder(6, 4, 7, 12, 5))
    else:
        model = Seq2Seq(Encoder(9, 4, 6), Decoder(6, 4, 7, 12))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


KINDS = ["fixed context", "attention", "transformer"]


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_decoding_chooses_what_teacher_forcing_finds_likeliest(kind):
    for seed in range(4):
        model = make_translator(kind, seed)
        first = torch.full((4, 1), BOS)
        state = model.encode(SOURCE, LENGTHS)
        rows = generate(model, first, state, greedy, max_new_tokens=8)
        logits = model(SOURCE, LENGTHS, torch.cat([first, rows[:, :-1]], dim=1))
        assert logits.argmax(dim=-1).equal(rows)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_beams", [1, 2, 5])
def test_the_log_probability_of_a_beam_is_that_of_teacher_forcing(kind, num_beams):
    model = make_translator(kind, 0)
    for i in range(4):
        source = SOURCE[i : i + 1, : LENGTHS[i]]
        length = LENGTHS[i : i + 1]
        first = torch.full((1, 1), BOS)
        text, log_prob = beam_search(
            model,
            first,
            model.encode(source, length),
            num_beams=num_beams,
            max_new_tokens=8,
        )
        target = torch.tensor([[BOS, *text]])
        log_probs = model(source, length, target[:, :-1]).log_softmax(dim=-1)
        expected = log_probs.gather(2, target[:, 1:, None]).sum().item()
        assert log_prob == pytest.approx(expected, abs=1e-4)
        if num_beams == 1:
            assert log_probs[0].argmax(dim=-1).tolist() == text


def test_whatever_has_a_step_is_a_model():
    class Counting:
        def decode_step(self, tokens, state):
            return 1e4 * torch.eye(9)[(tokens[:, -1] + 1) % 9], state

    first = torch.tensor([[3], [5]])
    options = {"max_new_tokens": 5, "eos": 8}
    for choose in (greedy, sample):
        rows = generate(Counting(), first, torch.zeros(2), choose, **options)
        assert rows.tolist() == [[4, 5, 6, 7, 8], [6, 7, 8, 0, 1]]
    text, log_prob = beam_search(
        Counting(), first[:1], torch.zeros(1), num_beams=2, **options
    )
    assert (text, log_prob) == ([4, 5, 6, 7, 8], 0.0)


def test_select_reaches_into_every_kind_of_state_and_keeps_it():
    rows = torch.tensor([2, 0, 0])
    cache = KVCache()
    cache.append(0, *torch.arange(12.0).view(2, 3, 1, 2, 1))
    tokens, parts, chosen = select(
        (torch.arange(3), [torch.arange(6).view(3, 2)], cache), rows
    )
    assert tokens.tolist() == [2, 0, 0]
    assert parts[0].tolist() == [[4, 5], [0, 1], [0, 1]]
    assert type(chosen) is KVCache
    K, V = chosen[0]
    assert K.flatten(1).tolist() == [[4, 5], [0, 1], [0, 1]]
    assert V.flatten(1).tolist() == [[10, 11], [6, 7], [6, 7]]


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_translate_takes_words_and_gives_words_in_their_order(kind, num_beams):
    data = SimpleNamespace(
        source_vocabulary=Vocabulary([["a", "b", "c", "d", "e"]]),
        target_vocabulary=Vocabulary([["x", "y"]]),
    )
    model = make_translator(kind, 4)
    sentences = [["a", "b"], ["c"], ["unheard", "d", "e"], ["b"], ["e", "e"]]
    options = {"num_beams": num_beams}
    together = translate(model, sentences, data, batch_size=2, **options)
    alone = []
    for sentence in sentences:
        alone += translate(model, [sentence], data, **options)
    assert together == alone
    assert translate(model, [], data) == []


# --- Languages: tables of what follows every beginning ------------------------------


class Language(nn.Module):
    """A model that is a table: logits after every beginning, by its number."""

    def __init__(self, table):
        super().__init__()
        self.table = table  # (beginning, vocab)

    def decode_step(self, tokens, state):
        beginnings = [self.number_of(row) for row in zip(state, tokens, strict=True)]
        state = torch.tensor(beginnings)
        return self.table[state], state

    def number_of(self, beginning):
        number, tokens = beginning
        for token in tokens.tolist():
            number = int(number * (self.table.shape[1] + 1) + token + 1)
        return number % len(self.table)

    def search(self, **options):
        first = torch.zeros(1, 1, dtype=torch.long)
        return beam_search(self, first, torch.zeros(1), eos=1, **options)

    def log_prob_of(self, text):
        """Add up what the table gives to the tokens of a text."""
        log_probs = self.table.log_softmax(dim=-1)
        total = 0.0
        beginning = self.number_of((0, torch.tensor([0])))
        for token in text:
            total += log_probs[beginning, token].item()
            beginning = self.number_of((beginning, torch.tensor([token])))
        return total


def test_a_wide_beam_finds_the_best_finished_text():
    finished = []
    for length in range(4):
        finished += [(*words, 1) for words in product((0, 2), repeat=length)]
    for seed in range(60):
        table = 2 * torch.randn(97, 3, generator=torch.Generator().manual_seed(seed))
        language = Language(table)
        text, _ = language.search(num_beams=50, max_new_tokens=4)
        assert tuple(text) == max(finished, key=language.log_prob_of)


def search_slowly(language, *, num_beams, max_new_tokens):
    """Search with lists; a text that has ended leaves the beam."""
    beams = [()]
    ended = []
    for _ in range(max_new_tokens):
        longer = []
        for text in beams:
            longer += [(*text, new) for new in range(language.table.shape[1])]
        longer.sort(key=language.log_prob_of, reverse=True)
        likeliest = longer[:num_beams]
        ended += [text for text in likeliest if text[-1] == 1]
        beams = [text for text in likeliest if text[-1] != 1]
    return max(ended or beams, key=language.log_prob_of)


@settings(max_examples=40)
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
    num_beams = min(num_beams, vocab)
    table = torch.randn(97, vocab, generator=torch.Generator().manual_seed(seed))
    table[:, 1] += eos  # texts end soon, late or never
    language = Language(table)
    options = {"num_beams": num_beams, "max_new_tokens": max_new_tokens}
    text, log_prob = language.search(**options)
    expected = search_slowly(language, **options)
    assert tuple(text) == expected
    assert log_prob == pytest.approx(language.log_prob_of(expected), abs=1e-4)


def test_no_new_tokens_are_an_empty_text():
    language = Language(torch.zeros(97, 3))
    assert language.search(num_beams=2, max_new_tokens=0) == ([], 0.0)


def test_a_finished_text_that_was_pushed_out_of_the_beam_still_wins():
    # After <bos>: .3 to end, .7 for token 2; then .5 each for tokens 2 and 3. With two
    # beams the text that ended is pushed out by .35 and .35, which never end.
    first = torch.tensor([0, 0.3, 0.7, 0]).log()
    later = torch.tensor([0, 0, 0.5, 0.5]).log()
    language = Language(torch.stack([later, first, *[later] * 95]))
    text, log_prob = language.search(num_beams=2, max_new_tokens=3)
    assert text == [1]
    assert log_prob == pytest.approx(math.log(0.3))


# --- Sampling parameters -------------------------------------------------------------

PROBS = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])


@pytest.mark.parametrize(
    ("keep", "parameter", "kept"),
    [
        (keep_top_k, 1, [1]),
        (keep_top_k, 2, [1, 3]),
        (keep_top_k, 5, [*range(5)]),
        # Sums of the likeliest: .4, .7, .85, .95, 1
        (keep_top_p, 0.01, [1]),
        (keep_top_p, 0.39, [1]),
        (keep_top_p, 0.41, [1, 3]),
        (keep_top_p, 0.69, [1, 3]),
        (keep_top_p, 0.71, [1, 3, 4]),
        (keep_top_p, 0.94, [0, 1, 3, 4]),
        (keep_top_p, 0.96, [*range(5)]),
        (keep_min_p, 0.2, [0, 1, 3, 4]),
        (keep_min_p, 0.3, [1, 3, 4]),
        (keep_min_p, 1, [1]),
    ],
)
def test_the_likeliest_tokens_are_kept_as_they_are(keep, parameter, kept):
    logits = PROBS.log()
    filtered = keep(logits, parameter)
    assert filtered.gt(-torch.inf).nonzero().flatten().tolist() == kept
    assert filtered[kept].equal(logits[kept])


def test_temperature_divides():
    sharper = apply_temperature(PROBS.log(), 0.5).softmax(dim=0)
    torch.testing.assert_close(sharper, PROBS**2 / 0.285)


@pytest.mark.parametrize(
    ("process", "parameter"),
    [(apply_temperature, 0.7), (keep_top_k, 2), (keep_top_p, 0.6), (keep_min_p, 0.3)],
)
def test_every_row_is_processed_by_itself_and_none_in_place(process, parameter):
    rows = torch.randn(3, 4, 7, generator=torch.Generator().manual_seed(0))
    before = rows.clone()
    processed = process(rows, parameter)
    assert rows.equal(before)
    for i, j in product(range(3), range(4)):
        assert processed[i, j].equal(process(rows[i, j], parameter))


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
        return generate(self, torch.full((batch, 1), BOS), (), sample, **options)

    def two_tokens(self):
        """Return how likely each pair of first tokens is, (vocab, vocab)."""
        probs = self.table.softmax(dim=-1)
        return probs[BOS][:, None] * probs


def misfit(counts, expected):
    """Return χ² divided by its mean, which is 1 if ``expected`` is the truth."""
    freedom = (expected > 0).sum() - 1
    return float(((counts - expected) ** 2 / expected.clamp(min=1e-9)).sum() / freedom)


@pytest.mark.parametrize("seed", range(3))
def test_tokens_are_drawn_with_the_model_s_probabilities(seed):
    model = Chain(seed)
    count = 20_000
    torch.manual_seed(seed)
    first, second = model.sample(count, max_new_tokens=2, eos=9).T
    counts = torch.bincount(5 * first + second, minlength=25).view(5, 5)
    assert misfit(counts, count * model.two_tokens()) < 2.2  # p = 0.0006


def test_what_the_sampling_parameters_forbid_is_never_drawn():
    model = Chain(0)
    likely = model.table.topk(2).indices.tolist()
    for tokens in model.sample(400, max_new_tokens=6, eos=9, top_k=2).tolist():
        for last, token in pairwise([BOS, *tokens]):
            assert token in likely[last]
    certain = model.sample(4, max_new_tokens=6, eos=9, top_p=0.01)
    first = torch.full((4, 1), BOS)
    assert certain.equal(generate(model, first, (), greedy, max_new_tokens=6, eos=9))


def speculated(target, draft, **options):
    options = {"num_draft_tokens": 4, "max_new_tokens": 10, "eos": 9, **options}
    return speculative_decode(target, draft, [BOS], **options)


@pytest.mark.parametrize("num_draft_tokens", [1, 4])
def test_speculative_decoding_draws_with_the_target_s_probabilities(num_draft_tokens):
    target = Chain(0)
    draft = Chain(7)
    count = 2000
    counts = torch.zeros(5, 5)
    calls = 0
    torch.manual_seed(0)
    for _ in range(count):
        speculation = speculated(
            target, draft, num_draft_tokens=num_draft_tokens, max_new_tokens=2
        )
        first, second = speculation.tokens
        counts[first, second] += 1
        calls += speculation.calls
    # The draft model's own draws are far off: the test can tell them apart.
    assert misfit(counts, count * target.two_tokens()) < 2.2
    assert misfit(counts, count * draft.two_tokens()) > 20
    assert calls < 2 * count


def test_drafts_of_the_target_itself_are_accepted_and_useless_ones_rejected():
    target = Chain(0)
    draft = Chain(0)
    assert speculated(target, draft)[1:] == (2, 8)
    target.table[:, 0] = -torch.inf
    draft.table[:] = -torch.inf
    draft.table[:, 0] = 0.0  # drafts only what the target never says
    assert speculated(target, draft)[1:] == (10, 0)


def test_a_text_ends_with_its_eos_even_within_a_draft():
    for _ in range(200):
        speculation = speculated(Chain(0), Chain(3), eos=EOS)
        assert EOS not in speculation.tokens
        assert len(speculation.tokens) <= 10
        assert speculation.accepted <= len(speculation.tokens) + 1  # and <eos>


@torch.no_grad()
def test_no_token_ends_a_text_unless_it_is_named():
    torch.manual_seed(0)
    model = GPT(4, 16, 2, 2, max_tokens=30)
    prompt = torch.tensor([[1]])
    endless = generate(model, prompt, KVCache(), sample, max_new_tokens=20)[0].tolist()
    for eos in range(4):
        torch.manual_seed(0)
        model = GPT(4, 16, 2, 2, max_tokens=30)
        [text] = generate(model, prompt, KVCache(), sample, max_new_tokens=20, eos=eos)
        assert len(endless) == 20 and eos in endless
        assert text.tolist() == endless[: endless.index(eos) + 1]


def saved_and_loaded(cache):
    file = io.BytesIO()
    torch.save(cache, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@torch.no_grad()
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, KVCache.copy, saved_and_loaded]
)
def test_a_copy_of_a_cache_continues_in_a_copy_of_the_model(copied):
    torch.manual_seed(0)
    model = GPT(20, 16, 2, 2, max_tokens=30)
    tokens = torch.tensor([[1, 2, 3, 4, 5]])
    cache = KVCache()
    model(tokens[:, :3], cache)
    continued = copy.deepcopy(model)(tokens[:, 3:], copied(cache))
    torch.testing.assert_close(continued, model(tokens)[:, 3:])
    assert cache.num_tokens() == 3


def test_a_beam_search_of_several_texts_is_refused():
    model = GPT(20, 16, 2, 2, max_tokens=30)
    with pytest.raises(ValueError, match="takes one text, got 2"):
        beam_search(
            model, torch.ones(2, 3).long(), KVCache(), num_beams=2, max_new_tokens=1
        )


@torch.no_grad()
def test_a_state_that_is_handed_in_can_be_used_again():
    torch.manual_seed(0)
    model = GPT(20, 16, 2, 2, max_tokens=30)
    prompt = torch.tensor([[1, 2, 3, 4]])
    _, state = model.decode_step(prompt, KVCache())
    first = generate(model, prompt, state, greedy, max_new_tokens=4)
    assert state.num_tokens() == 4
    assert first.equal(generate(model, prompt, state, greedy, max_new_tokens=4))
    options = {"num_beams": 3, "max_new_tokens": 4}
    beam = beam_search(model, prompt, state, **options)
    assert beam == beam_search(model, prompt, state, **options)
    assert state.num_tokens() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature must be above 0, got 0"),
        ({"temperature": -1.0}, "temperature must be above 0"),
        ({"temperature": torch.nan}, "temperature must be above 0, got nan"),
        ({"top_k": 0}, "top_k must be from 1 to 5, got 0"),
        ({"top_k": 6}, "top_k must be from 1 to 5, got 6"),
        ({"top_p": 90}, "top_p must be above 0 and at most 1, got 90"),
        ({"top_p": 0}, "top_p must be above 0"),
        ({"top_p": torch.nan}, "top_p must be above 0"),
    ],
    ids=str,
)
def test_sampling_parameters_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sample(PROBS.log()[None], **options)


@pytest.mark.parametrize("number", [-1, 1.5, True, torch.nan])
def test_numbers_of_tokens_and_beams_are_whole(number):
    tokens = torch.tensor([[BOS]])
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number"):
        generate(None, tokens, {}, greedy, max_new_tokens=number)
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number"):
        beam_search(None, tokens, {}, num_beams=2, max_new_tokens=number)
    with pytest.raises(ValueError, match="num_beams must be a positive whole number"):
        beam_search(None, tokens, {}, num_beams=number, max_new_tokens=2)
    with pytest.raises(ValueError, match="num_draft_tokens must be a whole number"):
        speculative_decode(None, None, [1], num_draft_tokens=number, max_new_tokens=3)


@pytest.mark.parametrize("eos", [[4, 5], "<eos>", 2.0])
def test_an_end_is_one_token(eos):
    tokens = torch.tensor([[BOS]])
    options = {"max_new_tokens": 2, "eos": eos}
    with pytest.raises(ValueError, match="eos must be a whole number"):
        generate(None, tokens, {}, greedy, **options)
    with pytest.raises(ValueError, match="eos must be a whole number"):
        beam_search(None, tokens, {}, num_beams=2, **options)
    with pytest.raises(ValueError, match="eos must be a whole number"):
        speculative_decode(None, None, [1], num_draft_tokens=2, **options)


def test_without_an_end_a_beam_has_all_tokens():
    torch.manual_seed(0)
    model = GPT(7, 8, 2, 1, max_tokens=9).eval()
    first = torch.tensor([[BOS]])
    options = {"max_new_tokens": torch.tensor(4), "eos": None}
    text, _ = beam_search(model, first, KVCache(), num_beams=torch.tensor(1), **options)
    assert [text] == generate(model, first, KVCache(), greedy, **options).tolist()


@pytest.mark.parametrize("tokens", [torch.zeros(1, 0).long(), torch.tensor([BOS])])
def test_a_prompt_without_a_token_is_refused(tokens):
    message = "the prompt must be .batch, token. and have a token"
    with pytest.raises(ValueError, match=message):
        generate(None, tokens, {}, greedy, max_new_tokens=2)
    with pytest.raises(ValueError, match=message):
        beam_search(None, tokens, {}, num_beams=2, max_new_tokens=2)
    with pytest.raises(ValueError, match=message):
        speculative_decode(None, None, [], num_draft_tokens=1, max_new_tokens=3)


def test_what_remembers_nothing_is_no_state():
    tokens = torch.tensor([[BOS]])
    with pytest.raises(ValueError, match="such as KVCache"):
        generate(None, tokens, None, greedy, max_new_tokens=2)
    with pytest.raises(ValueError, match="such as KVCache"):
        beam_search(None, tokens, None, num_beams=2, max_new_tokens=2)


class State(NamedTuple):
    """A state whose parts have names, among them one that is no tensor."""

    hidden: torch.Tensor
    step: int


def test_rows_are_picked_from_states_of_every_form():
    hidden = torch.tensor([[1.0], [2.0]])
    picked = select({"a": State(hidden, 3), "b": [None, "x"]}, torch.tensor([1, 1]))
    assert picked["a"].hidden.tolist() == [[2.0], [2.0]] and picked["a"].step == 3
    assert picked["b"] == [None, "x"]
    with pytest.raises(ValueError, match="no rows can be picked from a set"):
        select((hidden, {1}), torch.tensor([0]))


@pytest.mark.parametrize("number", [0, -3, 1.5])
def test_a_translation_needs_a_beam_and_a_batch(number):
    with pytest.raises(ValueError, match="num_beams must be a positive whole"):
        translate(None, [["a"]], None, num_beams=number)
    with pytest.raises(ValueError, match="batch_size must be a positive whole"):
        translate(None, [["a"]], None, batch_size=number)
