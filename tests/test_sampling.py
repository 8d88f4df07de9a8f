"""Sampling draws what the numbers say, and changes no logits of others."""

import pytest
import torch

from tutorial_lib.data.text import BOS, EOS
from tutorial_lib.decoding import greedy
from tutorial_lib.gpt import GPT
from tutorial_lib.decoding import min_p, sample, speculative_decode, apply_temperature, top_k, top_p

PROBABILITIES = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])
LOGITS = PROBABILITIES.log()


def kept(logits):
    """Return which words may still be drawn."""
    return torch.nonzero(logits > -torch.inf).flatten().tolist()


@pytest.mark.parametrize(
    ("k", "words"), [(1, [1]), (2, [1, 3]), (5, [*range(5)]), (9, [*range(5)])]
)
def test_top_k_keeps_the_likeliest(k, words):
    assert kept(top_k(LOGITS, k)) == words


# Sums of the likeliest: .4, .7, .85, .95, 1
@pytest.mark.parametrize(
    ("p", "words"),
    [(0.01, [1]), (0.39, [1]), (0.41, [1, 3]), (0.69, [1, 3]), (0.71, [1, 3, 4]),
     (0.94, [0, 1, 3, 4]), (0.96, [*range(5)]), (1, [*range(5)])],
)  # fmt: skip
def test_top_p_keeps_the_fewest_words_with_so_much_of_the_mass(p, words):
    assert kept(top_p(LOGITS, p)) == words


@pytest.mark.parametrize(
    ("p", "words"),
    [(0.01, [*range(5)]), (0.2, [0, 1, 3, 4]), (0.3, [1, 3, 4]), (1, [1])],
)
def test_min_p_keeps_what_is_not_much_less_likely_than_the_likeliest(p, words):
    assert kept(min_p(LOGITS, p)) == words


def test_temperature_divides():
    torch.testing.assert_close(apply_temperature(LOGITS, 0.5).softmax(0), PROBABILITIES**2 / 0.285)


CHANGES = [
    lambda x: apply_temperature(x, 0.7),
    lambda x: top_k(x, 2),
    lambda x: top_p(x, 0.6),
    lambda x: min_p(x, 0.3),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_row_is_changed_by_itself_and_none_in_place(change):
    rows = torch.randn(3, 4, 7, generator=torch.Generator().manual_seed(0))
    before = rows.clone()
    changed = change(rows)
    assert rows.equal(before)
    for i in range(3):
        for j in range(4):
            assert changed[i, j].equal(change(rows[i, j]))
    left = changed > -torch.inf
    assert left.any(-1).all()
    # Among the words that are left, nothing changes but by temperature.
    ratios = (changed / rows)[left]
    assert ratios.allclose(ratios[0])


@pytest.mark.parametrize(
    ("change", "value", "said"),
    [
        (apply_temperature, 0, "temperature must be above 0, got 0: for the likeliest word"),
        (apply_temperature, -1.0, "got -1.0: .* greedy"),
        (apply_temperature, float("nan"), "got nan"),
        (top_k, 0, "k must be a positive whole number, got 0"),
        (top_k, 1.5, "k must be a positive whole number, got 1.5"),
        (top_p, 0, "top_p must be above 0 and at most 1, got 0: .* greedy"),
        (top_p, 1.1, "got 1.1"),
        (min_p, 0, "min_p must be above 0"),
        (min_p, float("nan"), "got nan"),
    ],
)
def test_a_number_that_leaves_nothing_to_draw_is_refused(change, value, said):
    with pytest.raises(ValueError, match=said):
        change(LOGITS, value)


# --- Whole sentences --------------------------------------------------------------


class Chain(torch.nn.Module):
    """A language of words whose next depends on the last alone."""

    def __init__(self, seed, vocab=5, spread=1.0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.table = spread * torch.randn(vocab, vocab, generator=generator)

    def start(self, source, lengths):
        return source

    def step(self, tokens, state):
        return self.table[tokens], state

    def forward(self, tokens):
        return self.table[tokens]


def nothing(rows):
    return torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows)


def two_words(table):
    """Return how likely each pair of first words is, (vocab, vocab)."""
    chances = table.softmax(-1)
    return chances[BOS][:, None] * chances


def misfit(counts, expected):
    """Return χ² divided by its mean, which is 1 if ``expected`` is the truth."""
    freedom = (expected > 0).sum() - 1
    return float(((counts - expected) ** 2 / expected.clamp(min=1e-9)).sum() / freedom)


@pytest.mark.parametrize("seed", range(3))
def test_words_are_drawn_with_the_model_s_probabilities(seed):
    model, count = Chain(seed), 20_000
    drawn = sample(model, *nothing(count), max_tokens=2, seed=seed, eos=9)
    counts = torch.zeros(5, 5)
    for first, second in drawn.tokens:
        counts[first, second] += 1
    expected = count * two_words(model.table)
    assert misfit(counts, expected) < 2.2  # p = 0.0006
    words = torch.tensor(drawn.tokens)
    chances = two_words(model.table)[words[:, 0], words[:, 1]].log()
    torch.testing.assert_close(drawn.log_probabilities, chances)


def test_what_is_changed_is_what_is_drawn_from():
    model = Chain(0)
    drawn = sample(model, *nothing(4000), max_tokens=1, seed=0, eos=9,
        change=lambda logits: top_k(logits, 2))  # fmt: skip
    likely = model.table[BOS].topk(2).indices.tolist()
    assert {word for [word] in drawn.tokens} == {*likely}


def test_the_likeliest_word_alone_is_greedy_and_a_seed_repeats():
    torch.manual_seed(0)
    model, prompt = GPT(13, 16, 2, 2, max_tokens=12), torch.randint(13, (4, 3))
    lengths, options = torch.full((4,), 3), {"max_tokens": 6}
    sure = sample(model, prompt, lengths, change=lambda x: top_k(x, 1), **options)
    assert sure.tokens == greedy(model, prompt, lengths, **options).tokens
    once, again, other = (
        sample(model, prompt, lengths, seed=seed, **options).tokens
        for seed in (1, 1, 2)
    )
    assert once == again != other


def test_a_sentence_ends_with_its_eos():
    drawn = sample(Chain(1), *nothing(500), max_tokens=9, seed=0)
    assert all(EOS not in words and len(words) <= 9 for words in drawn.tokens)
    assert {len(words) for words in drawn.tokens} >= {0, 1, 2, 9}


def test_nothing_is_drawn_of_nothing_and_logits_must_be_numbers():
    assert sample(Chain(0), *nothing(0), max_tokens=3).tokens == []
    broken = Chain(0)
    broken.table[BOS] = torch.nan
    with pytest.raises(ValueError, match="for word 1"):
        sample(broken, *nothing(2), max_tokens=3)


# --- Speculative sampling ---------------------------------------------------------


@pytest.mark.parametrize("ahead", [1, 2, 4])
def test_speculation_draws_with_the_large_model_s_probabilities(ahead):
    large, small, count = Chain(0), Chain(7), 3000
    counts, calls = torch.zeros(5, 5), 0
    for seed in range(count):
        found = speculative_decode(large, small, torch.tensor([BOS]), ahead=ahead,
            max_tokens=2, seed=seed, eos=9)  # fmt: skip
        first, second = found.tokens
        counts[first, second] += 1
        calls += found.calls
    # The small model's own draws are far off: the test can tell them apart.
    assert misfit(counts, count * two_words(large.table)) < 2.2
    assert misfit(counts, count * two_words(small.table)) > 20
    assert calls < 2 * count


def test_a_draft_of_the_large_model_itself_is_always_kept():
    model = Chain(0)
    found = speculative_decode(
        model, model, torch.tensor([BOS]), ahead=4, max_tokens=10, seed=0, eos=9
    )
    assert len(found.tokens) == 10
    assert (found.calls, found.kept) == (2, 8)


def test_a_draft_that_knows_nothing_costs_a_call_a_word():
    large, small = Chain(0), Chain(0)
    large.table[:, 0], small.table[:] = -torch.inf, -torch.inf
    small.table[:, 0] = 0.0  # drafts only what the large model never says
    found = speculative_decode(
        large, small, torch.tensor([BOS]), ahead=3, max_tokens=5, seed=0, eos=9
    )
    assert (len(found.tokens), found.calls, found.kept) == (5, 5, 0)


def test_a_text_ends_with_its_eos_even_within_a_draft():
    model = Chain(0)
    for seed in range(200):
        found = speculative_decode(
            model, Chain(3), torch.tensor([BOS]), ahead=4, max_tokens=6, seed=seed
        )
        assert EOS not in found.tokens and len(found.tokens) <= 6


def test_speculation_needs_a_beginning_and_a_word_ahead():
    model = Chain(0)
    with pytest.raises(ValueError, match="begin with <bos>"):
        speculative_decode(model, model, torch.zeros(0, dtype=torch.long), ahead=1, max_tokens=1)
    with pytest.raises(ValueError, match="ahead must be a positive whole number"):
        speculative_decode(model, model, torch.tensor([BOS]), ahead=0, max_tokens=1)
