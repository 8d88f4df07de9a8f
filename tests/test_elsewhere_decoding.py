"""Sampling, beam search, schedules and scores against numbers that others publish.

Each test names the file that it has its numbers from: facts are copied, and no code.
"""

import math

import pytest
import torch
from test_elsewhere import within
from torch import nn

from tutorial_exercises.chapter_12 import keep_min_p
from tutorial_lib.decoding import beam_search, keep_top_k, keep_top_p
from tutorial_lib.metrics import bleu
from tutorial_lib.training import warmup_cosine

# --- Hugging Face: tests/generation/test_logits_process.py --------------------------


def assert_kept(filtered, kept):
    """Compare logits with the probabilities that stay: the others are forbidden."""
    close = {"rtol": 0, "atol": within("top-k, top-p, min-p")}
    torch.testing.assert_close(filtered, kept.log(), **close)


def test_top_k():
    # test_top_k_dist_warper: of ten tokens, the first half lifted above the second
    ramp = torch.arange(10.0).repeat(2, 1)
    ramp[1, :5] += 10
    forbidden = [[True] * 7 + [False] * 3, [True] * 2 + [False] * 3 + [True] * 5]
    assert keep_top_k(ramp, 3).isinf().tolist() == forbidden


def test_top_p():
    # test_top_p_dist_warper. The first two tokens have 0.8 together, but for rounding.
    given = torch.tensor([[0.3, 0.1, 0.1, 0.5], [0.15, 0.3, 0.3, 0.25]])
    kept = torch.tensor([[0.3, 0.0, 0.0, 0.5], [0.0, 0.3, 0.3, 0.25]])
    assert_kept(keep_top_p(given.log(), 0.8), kept)
    ramp = torch.arange(10.0) - 5
    assert (keep_top_p(ramp, 0.9) > -torch.inf).sum() == 3


def test_min_p():
    # test_min_p_dist_warper: 0.0274 < 0.05 · 0.9 < 0.047
    given = [[0.9, 0.0274, 0.047, 0.0274], [0.15, 0.3, 0.3, 0.25]]
    given = torch.tensor([*given, [0.97, 0.01, 0.01, 0.01]])
    kept = [[0.9, 0.0, 0.047, 0.0], [0.15, 0.3, 0.3, 0.25], [0.97, 0.0, 0.0, 0.0]]
    assert_kept(keep_min_p(given.log(), 0.05), torch.tensor(kept))


def test_schedule():
    # tests/optimization/test_optimization.py, get_cosine_schedule_with_warmup, peak 10;
    # theirs wastes a step at 0, so that ours is a step ahead until the peak.
    published = [0.0, 5.0, 10.0, 9.61, 8.53, 6.91, 5.0, 3.08, 1.46, 0.38]
    ours = [10 * warmup_cosine(2, 10)(step) for step in range(10)]
    assert ours[:2] == published[1:3]
    assert ours[2:] == pytest.approx(published[2:], abs=0.01)


def test_schedule_of_a_course():
    # stanford-cs336/spring2024-assignment1-basics, tests/test_optimizer.py,
    # test_get_lr_cosine_schedule: from step 1, and down to a tenth in place of 0
    warm = [0.14285714285714285, 0.2857142857142857, 0.42857142857142855]
    warm += [0.5714285714285714, 0.7142857142857143, 0.8571428571428571, 1.0]
    cool = [1.0, 0.9887175604818206, 0.9554359905560885, 0.9018241671106134]
    cool += [0.8305704108364301, 0.7452476826029011, 0.6501344202803414, 0.55]
    cool += [0.44986557971965857, 0.3547523173970989, 0.26942958916356996]
    cool += [0.19817583288938662, 0.14456400944391146, 0.11128243951817937]
    cool += [0.1] * 4
    ours = warmup_cosine(7, 21)
    assert [ours(step) for step in range(7)] == pytest.approx(warm)
    found = [0.1 + 0.9 * ours(step) for step in range(7, 25)]
    assert found == pytest.approx(cool)


# --- Beam search --------------------------------------------------------------------

CLOSE = within("beam search")  # of probabilities; the tokens are the same


class Table(nn.Module):
    """A language whose next token depends on all the tokens before it."""

    def __init__(self, probs):
        super().__init__()
        self.logits = {key: torch.tensor(row).log() for key, row in probs.items()}

    def decode_step(self, tokens, state):
        state = torch.cat((state, tokens), dim=1)
        return torch.stack([self.after(row[1:]) for row in state.tolist()]), state

    def after(self, tokens):
        """Return the logits of the next token, all alike if the table has none."""
        first = next(iter(self.logits.values()))
        return self.logits.get(tuple(tokens), torch.zeros_like(first))

    def search(self, *, eos, **options):
        """Return the tokens of a text without its end, and their probability."""
        first = torch.zeros(1, 1, dtype=torch.long)
        text, log_prob = beam_search(self, first, first[:, :0], eos=eos, **options)
        return [token for token in text if token != eos], math.exp(log_prob)


class Chain(Table):
    """A table in which the last token alone counts."""

    def after(self, tokens):
        return super().after(tokens[-1:] or [0])


# allenai/allennlp, tests/nn/beam_search_test.py: token 0 begins, and token 5 ends.
LONG = Chain(
    {
        (0,): [0.0, 0.4, 0.3, 0.2, 0.1, 0.0],
        (1,): [0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        (2,): [0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        (3,): [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        (4,): [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    }
)
SHORT = Chain(
    {
        (0,): [0.0, 0.1, 0.0, 0.0, 0.0, 0.9],
        (1,): [0.0, 0.0, 0.1, 0.0, 0.0, 0.9],
        (2,): [0.0, 0.0, 0.0, 0.1, 0.0, 0.9],
        (3,): [0.0, 0.0, 0.0, 0.0, 0.1, 0.9],
        (4,): [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    }
)


def test_beams_of_allennlp():
    # test_search, test_greedy_search, test_take_short_sequence_step, test_single_step
    for num_beams in (1, 3):
        found = LONG.search(eos=5, num_beams=num_beams, max_new_tokens=10)
        assert found == ([1, 2, 3, 4], pytest.approx(0.4, CLOSE))
    assert SHORT.search(eos=5, num_beams=5, max_new_tokens=10)[0] == []
    found = LONG.search(eos=5, num_beams=3, max_new_tokens=1)
    assert found == ([1], pytest.approx(0.4, CLOSE))


def test_beams_cut_off():
    # test_early_stopping: after three tokens theirs has 1 2 3 (.4) before 2 3 4 (.3)
    # and 3 4 <eos> (.2), by probability alone; ours prefers the one that has ended.
    found = LONG.search(eos=5, num_beams=3, max_new_tokens=3)
    assert found == ([3, 4], pytest.approx(0.2))


# tensorflow/tensor2tensor, tensor2tensor/utils/beam_search_test.py: probabilities
# depend on the position and the beam alone, token 1 ends.


def of_tensor2tensor(*, second):
    """Return their language of three tokens: the likeliest first one is 2, by .8."""
    first, third = [0.1, 0.1, 0.8], [0.05, 0.9, 0.05]
    return Table(
        {
            (): first,
            (0,): [0.2, 0.4, 0.4],
            (2,): second,
            (2, 0): third,
            (2, 2): third,
        }
    )


@pytest.mark.parametrize(
    ("second", "tokens", "prob"),
    [
        ([0.4, 0.5, 0.1], [2], 0.8 * 0.5),  # testNotGreedyBeamTwo
        ([0.3, 0.6, 0.1], [2], 0.8 * 0.6),  # …BatchTwo…, the second sentence
    ],
)
def test_beams_of_tensor2tensor(second, tokens, prob):
    options = {"num_beams": 2, "max_new_tokens": 3}
    found = of_tensor2tensor(second=second).search(eos=1, **options)
    assert found == (tokens, pytest.approx(prob, CLOSE))


def test_greedy_of_tensor2tensor():
    # testGreedyBatchOne and testGreedyWithCornerCase
    binary = Table({(): [0.7, 0.3], (0,): [0.4, 0.6], (0, 0): [0.5, 0.5]})
    never = Table({(): [0.2, 0.1, 0.7], (2,): [0.4, 0.1, 0.5]})
    text = binary.search(num_beams=1, eos=1, max_new_tokens=3)
    assert text == ([0], pytest.approx(0.7 * 0.6, CLOSE))
    text = never.search(num_beams=1, eos=1, max_new_tokens=2)
    assert text == ([2, 2], pytest.approx(0.7 * 0.5, CLOSE))


# facebookresearch/fairseq, tests/test_sequence_generator.py, with the probabilities of
# sequence_generator_setup in tests/utils.py: 0 is <eos>, 1 and 2 theirs w1 and w2.
FIRST = Table(
    {
        (): [0.0, 0.9, 0.1],
        (1,): [1.0, 0.0, 0.0],
        (2,): [0.0, 0.9, 0.1],
        (2, 1): [0.0, 0.1, 0.9],
        (2, 2): [0.6, 0.2, 0.2],
        (2, 1, 2): [1.0, 0.0, 0.0],
        (2, 1, 1): [1.0, 0.0, 0.0],
    }
)
SECOND = Table(
    {
        (): [0.0, 0.7, 0.3],
        (1,): [0.25, 0.35, 0.4],
        (2,): [0.0, 0.1, 0.9],
        (1, 2): [0.6, 0.4, 0.0],
        (2, 2): [0.01, 0.0, 0.99],
        (2, 2, 2): [0.1, 0.5, 0.4],
        (1, 2, 1): [1.0, 0.0, 0.0],
    }
)


def test_beams_of_fairseq():
    # test_without_normalization
    options = {"eos": 0, "num_beams": 2, "max_new_tokens": 4}
    found = FIRST.search(**options)
    assert found == ([1], pytest.approx(0.9, CLOSE))
    found = SECOND.search(**options)
    assert found == ([1, 2], pytest.approx(0.7 * 0.4 * 0.6, CLOSE))


@pytest.mark.parametrize(
    ("language", "eos", "ours", "theirs", "penalty"),
    [
        # tensor2tensor, testNotGreedyBeamTwoWithAlpha: Wu et al. (2016), α = 3.5
        (
            of_tensor2tensor(second=[0.4, 0.5, 0.1]),
            1,
            ([2], 0.8 * 0.5),
            ([2, 0], 0.8 * 0.4 * 0.9),
            lambda length: ((5 + length) / 6) ** 3.5,
        ),
        # fairseq, test_with_normalization, sentence 2: by the number of tokens
        (
            SECOND,
            0,
            ([1, 2], 0.7 * 0.4 * 0.6),
            ([1, 2, 1], 0.7 * 0.4 * 0.4),
            lambda length: length,
        ),
    ],
    ids=["tensor2tensor", "fairseq"],
)
def test_length_penalties(language, eos, ours, theirs, penalty):
    # Theirs divide the log-probability of a sentence, <eos> included, by a penalty and
    # find the longer one; ours has none, and finds the likelier one.
    options = {"num_beams": 3, "max_new_tokens": 4}
    found = language.search(eos=eos, **options)
    assert found == (ours[0], pytest.approx(ours[1], CLOSE))
    one, other = (math.log(p) / penalty(len(x) + 1) for x, p in (ours, theirs))
    assert ours[1] > theirs[1] and one < other


# --- Scores: nltk -------------------------------------------------------------------


OUTPUT = "It is a guide to action which ensures that the military always obeys the "
OUTPUT += "commands of the party"
REFERENCES = [
    "It is a guide to action that ensures that the military will forever heed Party "
    "commands",
    "It is the guiding principle which guarantees the military forces always being "
    "under the command of the Party",
    "It is the practical guide for the army always to heed the directions of the party",
]
BOOK = "he read the book because he was interested in world history"
BOOK_REFERENCE = "he was interested in world history because he read the book"


def test_bleu():
    # nltk/translate/bleu_score.py, the doctests of sentence_bleu and corpus_bleu, whose
    # sentences are those of Papineni et al. (2002)
    close = within("BLEU")
    assert bleu([OUTPUT], [REFERENCES]).score == pytest.approx(50.45, abs=close)
    both = bleu([OUTPUT, BOOK], [REFERENCES, [BOOK_REFERENCE]])
    assert both.score == pytest.approx(59.20, abs=close)
