import pytest
import torch
from torch import nn

from tutorial_lib.attention import AdditiveAttention, MultiHeadAttention
from tutorial_lib.recording import record_attention


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = MultiHeadAttention(8, 2)
        self.second = AdditiveAttention(8, 8, 4)

    def forward(self, x):
        x = self.first(x, x, x, causal=True)
        return self.second(x, x, x)


class StepByStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = MultiHeadAttention(8, 2)

    def forward(self, x):
        steps = range(x.shape[1])
        read = [self.attention(x[:, [t]], *[x[:, : t + 1]] * 2) for t in steps]
        return torch.cat(read, dim=1)


def test_every_layer_is_recorded_under_its_name_with_a_head_axis():
    model, x = TwoLayers(), torch.randn(3, 5, 8)
    with record_attention(model) as maps:
        model(x)
    assert {name: tuple(map.shape) for name, map in maps.items()} == {
        "first": (3, 2, 5, 5),
        "second": (3, 1, 5, 5),
    }
    for weights in maps.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights.requires_grad


def test_each_call_of_the_model_starts_afresh():
    model, x = TwoLayers(), torch.randn(1, 5, 8)
    with record_attention(model) as maps:
        model(torch.randn(2, 7, 8))
        model(x)
    assert maps["first"].shape == (1, 2, 5, 5)


def test_steps_of_decoding_join_into_one_causal_map():
    model, x = StepByStep(), torch.randn(1, 5, 8)
    with record_attention(model) as maps:
        model(x)
    steps = maps["attention"]
    with record_attention(model.attention) as maps:
        model.attention(x, x, x, causal=True)
    torch.testing.assert_close(steps, maps[""])


def test_afterwards_nobody_watches_even_if_the_model_failed():
    model = TwoLayers()
    with pytest.raises(ValueError, match="sizes 8"), record_attention(model):
        model(torch.randn(1, 5, 6))
    assert not model._forward_pre_hooks
    assert not model.first.map._forward_hooks
    assert not model.second.map._forward_hooks


def test_a_model_without_attention_is_refused():
    watching = record_attention(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Linear holds no attention module"), watching:
        pass
