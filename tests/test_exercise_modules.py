"""An answer may be a module: it is built, given the oracle's weights, and called."""

import pytest
import torch
from made_up import judge
from torch import nn


class Line(nn.Module):
    """The oracle: a linear map, one row at a time."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        return torch.stack([self.W(row) for row in x])


class Doubled(Line):
    """A known wrong answer."""

    def forward(self, x):
        return super().forward(x) * 2


def judge_module(answer):
    def step(probe):
        module = probe.build(3, d_out=2)
        probe(torch.randn(4, 3))
        probe.same()
        probe.gradients(*module.parameters())

    return judge(answer, step, oracle=Line, known={"doubled": Doubled})


def test_a_module_is_compared_with_the_oracle_s_weights_in_it():
    class answer(Line):
        def forward(self, x):
            return x @ self.W.weight.T

    assert judge_module(answer).passed


@pytest.mark.parametrize(
    ("forward", "code"),
    [
        (lambda self, x: self.W(x) * 2, "doubled"),
        (lambda self, x: self.W(x) + 1, "value"),
        (lambda self, x: self.W(x.T), "error"),
        (lambda self, x: self.W(x).detach(), "no-gradient"),
        (lambda self: 1, "signature"),
    ],
)
def test_a_module_s_forward_is_diagnosed_like_a_function(forward, code):
    assert judge_module(type("answer", (Line,), {"forward": forward})).code == code


def test_a_module_with_other_parameters_is_told_which_are_expected():
    class answer(Line):
        def __init__(self, d_in, d_out):
            super().__init__(d_in, d_out)
            self.W = nn.Linear(d_in, d_out)

    result = judge_module(answer)
    assert result.code == "parameters"
    assert result.message == (
        "Compare your module's parameters. It should not have `W.bias`."
    )


def test_a_module_with_a_parameter_of_another_shape_is_told_both():
    class answer(Line):
        def __init__(self, d_in, d_out):
            super().__init__(d_out, d_in)

    assert judge_module(answer).message == (
        "Compare your module's parameters. `W.weight` is (3, 2) and should be (2, 3)."
    )


def test_of_many_parameters_the_first_four_are_named():
    class answer(Line):
        def __init__(self, d_in, d_out):
            super().__init__(d_in, d_out)
            self.more = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))

    assert judge_module(answer).message.endswith(
        "`more.0.weight`, `more.0.bias`, `more.1.weight`, `more.1.bias` and 2 more."
    )


def test_a_function_where_a_class_is_asked_for_is_told_so():
    assert judge_module(lambda d_in, d_out: 1).code == "type"
    assert judge(Line, oracle=torch.relu).code == "type"
    assert judge(3, oracle=torch.relu).code == "type"
