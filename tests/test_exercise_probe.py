"""What a check says of an output: the first thing that is wrong, in words that help."""

import pytest
import torch
from made_up import called_with, judge

SCORES = torch.tensor([[0.0, 1.0, 2.0], [2.0, 0.0, 0.0]])  # (query, key)


def softmax(scores):
    return scores.softmax(dim=-1)


def judge_weights(answer, **options):
    """Check an answer that should be the softmax of SCORES over the keys."""
    step = called_with(SCORES.clone())
    return judge(answer, step, oracle=softmax, returns="query key", **options)


# --- types, shapes, values ---------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (lambda s: "weights", "type", "Expected a torch.Tensor, got 'weights'"),
        (lambda s: softmax(s).tolist(), "type", "Expected a torch.Tensor"),
        (lambda s: softmax(s).T, "shape", "(query=2, key=3), got (3, 2). The sizes"),
        (lambda s: softmax(s).sum(-1), "shape", "got (2,). One axis is missing"),
        (
            lambda s: softmax(s)[:1],
            "shape",
            "got (1, 3). An axis has one entry for all",
        ),
        (lambda s: (softmax(s), s), "type", "Return one tensor: one of these, or all"),
        (lambda s: softmax(s)[None], "shape", "got (1, 2, 3). There is one axis too"),
        (lambda s: softmax(s) > 0, "dtype", "torch.float32, got torch.bool"),
        (lambda s: softmax(s) / 0 * 0, "nan", "6 of 6 entries are NaN"),
        (
            lambda s: softmax(s) + torch.tensor([0, 0, 0.5]),
            "value",
            "2 of 6 values differ. The first is at query 0, key 2: yours is 1.1652, "
            "expected 0.6652.",
        ),
    ],
)
def test_a_tensor_that_differs_is_described(answer, code, words):
    result = judge_weights(answer)
    assert result.code == code
    assert words in result.message


def test_numbers_that_differ_never_look_alike():
    result = judge(lambda: torch.tensor([-2e-5]), oracle=lambda: torch.zeros(1))
    assert result.message.endswith("at index 0: yours is -2e-05, expected 0.")


@pytest.mark.parametrize("right", [16_640, 3_994_800])
def test_what_is_counted_must_be_right_to_the_last_digit(right):
    for counted in (right, float(right), torch.tensor(right)):
        assert judge(lambda counted=counted: counted, oracle=lambda: right).passed
    result = judge(lambda: right + 1, oracle=lambda: right)
    assert result.message == f"{right + 1} is not right: expected {right}."
    assert judge(lambda: float(right + 1), oracle=lambda: float(right)).passed


def test_a_boolean_that_differs_is_called_true_or_false():
    right = torch.tensor([True, False])
    result = judge(lambda: ~right, oracle=lambda: right)
    assert result.message.endswith("at index 0: yours is False, expected True.")


def test_a_right_tensor_may_have_another_float_type():
    assert judge_weights(lambda scores: scores.double().softmax(dim=-1)).passed


def test_a_shape_can_be_asked_for_by_named_axes():
    def step(probe):
        probe.shape(probe(), batch=2, head=3)

    assert judge(lambda: torch.ones(2, 3), step).passed
    result = judge(lambda: torch.ones(3, 2), step)
    assert "Expected shape (batch=2, head=3), got (3, 2)" in result.message
    assert judge(lambda: "no tensor", step).code == "type"


def test_the_part_of_a_tuple_that_differs_is_named():
    parts = {"outputs": "query d_v", "weights": "query key"}
    right = torch.ones(2, 3), torch.ones(2, 4)
    options = {"returns": parts, "oracle": lambda: right}
    assert judge(lambda: right, **options).passed
    result = judge(lambda: (right[0], right[1] * 2), **options)
    assert result.message.startswith("weights: 8 of 8 values differ. The first is at q")
    result = judge(lambda: right[0], **options)
    assert result.code == "parts"
    assert "Expected `return outputs, weights`, got a tensor of shape (2, 3)" in str(
        result.message
    )


@pytest.mark.parametrize(
    ("right", "accepted", "refused"),
    [
        (
            8.0,
            [8, 8.0, torch.tensor(8.0)],
            [9, "8", True, None, [8]],
        ),
        (torch.tensor(2.0), [2, 2.0], [3, torch.tensor(2.5)]),
        (True, [True, torch.tensor(True)], [1, False]),
        ("keys", ["Keys", " keys "], ["queries", 1]),
        ([1, 2.0], [(1, 2), torch.tensor([1.0, 2.0])], [[1], [2, 1], 1, "12"]),
        ({"a": 1}, [{"a": 1.0}], [{"a": 2}, {"b": 1}, [1]]),
        ({1, 2}, [{2, 1}], [{1}, [1, 2]]),
        (torch.tensor([1, 2]), [torch.tensor([1.0, 2.0])], [[1, 2], torch.ones(2)]),
    ],
)
def test_values_of_every_kind_are_compared(right, accepted, refused):
    for value in accepted:
        assert judge(value, name=None, oracle=lambda: right).passed, value
    for value in refused:
        result = judge(value, name=None, oracle=lambda: right)
        assert result.status == "fail", value


def test_a_wrong_value_is_not_told_the_right_one():
    for right, wrong in [(8.25, 9), ("keys", "rows"), (torch.ones(2) * 8.25, [1, 2])]:
        wrong = torch.tensor(wrong) if torch.is_tensor(right) else wrong
        result = judge(wrong, name=None, oracle=lambda right=right: right)
        assert result.code == "value"
        assert "8.25" not in result.message
        assert "keys" not in result.message


def test_the_tolerance_is_the_exercise_s_or_the_step_s():
    assert not judge(8.05, name=None, oracle=lambda: 8).passed
    assert judge(8.05, name=None, oracle=lambda: 8, tolerance=0.1).passed

    def step(probe):
        probe.same(8, output=probe(), tolerance=0.1)

    assert judge(lambda: 8.05, step).passed


# --- properties --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda s: s.softmax(dim=0), "wrong-axis"),
        (lambda s: s.softmax(dim=-1) / 2, "row-sum"),
        (lambda s: s / s.sum(-1, keepdim=True) - 0.0 * s.log(), "nan"),
        (lambda s: torch.tensor([[2.0, -1.0], [0.5, 0.5]]), "negative"),
    ],
)
def test_weights_that_are_no_distribution_are_told_why(answer, code):
    assert judge_weights_sum(answer).code == code


def test_weights_that_are_a_distribution_pass():
    assert judge_weights_sum(softmax).passed


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda x: x.detach() * 2, "no-gradient"),
        (lambda x: torch.ones(2, requires_grad=True) * 2, "no-gradient"),
        (lambda x: x.sqrt(), "bad-gradient"),
        (lambda x: (2 * x).exp().fill_diagonal_(0), "overwritten"),
    ],
)
def test_a_gradient_that_is_cut_or_breaks_is_named(answer, code):
    def step(probe):
        inputs = torch.zeros(2, 2, requires_grad=True)
        probe(inputs)
        probe.gradients(inputs)

    assert judge(answer, step).code == code
    assert judge(lambda x: x * 2, step).passed


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda number: bool(number > 1), None),
        (lambda number: torch.tensor(number > 1), None),
        (lambda number: number < 1, "wrong"),
        (lambda number: "yes", "type"),
        (lambda number: fail_if(number > 1), "asserts"),
        (lambda number: 1 / 0, "error"),
    ],
)
def test_an_answer_that_is_a_test_gives_a_verdict(answer, code):
    def step(probe):
        probe.require(probe.verdict(2), "wrong", "2 is more than 1.")

    assert (judge(answer, step).code or None) == code


def fail_if(condition):
    assert not condition


def test_a_property_of_one_s_own_fails_with_its_own_words():
    def step(probe):
        probe.require(probe.close(probe(), 3), "not-three", "It should be three.")

    assert judge(lambda: 3, step).passed
    assert judge(lambda: 4, step).message == "It should be three."


def judge_weights_sum(answer, scores=SCORES):
    return judge(answer, lambda probe: probe.sums_to_one(probe(scores.clone())))


# --- known wrong answers -----------------------------------------------------------


def test_a_known_wrong_answer_is_named_before_its_symptoms():
    known = {"columns": lambda scores: scores.softmax(dim=0)}
    assert judge_weights(lambda s: s.softmax(dim=0), known=known).code == "columns"
    assert judge_weights(lambda s: s * 3, known=known).code == "value"


def test_a_known_wrong_answer_may_be_of_another_shape_or_nan():
    known = {"sums": lambda s: s.sum(-1), "nothing": lambda s: s / 0 * 0}
    assert judge_weights(lambda s: s.sum(-1), known=known).code == "sums"
    assert judge_weights(lambda s: s * torch.nan, known=known).code == "nothing"


def test_a_known_wrong_entry_is_named_whatever_the_other_entries_are():
    right = {"rank": 8, "count": 40}
    known = {"too-high": {"rank": 64, "count": 40}, "other": 3}

    def code(**answer):
        return judge(answer, known=known, name=None, oracle=lambda: right).code

    assert code(rank=64, count=40) == code(rank=64, count=41) == "too-high"
    assert code(rank=8, count=41) == "value"
    assert code(rank=64) == "keys"
    assert code(rank=64, count="40") == "value"


def test_a_known_wrong_answer_that_is_right_here_or_fails_is_passed_over():
    known = {"right-here": softmax, "fails": lambda scores: 1 / 0}

    def step(probe):
        probe(SCORES.clone())
        probe.require(False, "other", "Something else is wrong.")

    assert judge(softmax, step, known=known, oracle=softmax).code == "other"


def test_a_known_wrong_answer_cannot_change_what_the_next_is_given():
    known = {
        "in-place": lambda s: s.add_(1) * 0 - 5,
        "plain": lambda s: s * 1,
    }
    assert judge_weights(lambda s: s.clone(), known=known).code == "plain"
