"""Training: the loop, its history, and what it refuses."""

import math
import random
import runpy
import sys
from typing import NamedTuple

import pytest
import torch
from torch import nn

import tutorial_lib.training
from tutorial_lib.data import Batch
from tutorial_lib.training import (
    History,
    fit,
    token_losses,
    warmup_cosine,
)

POINTS = torch.arange(24.0).reshape(12, 2).sin()
TARGETS = POINTS @ torch.tensor([2.0, -1.0]) + 0.5
BATCHES = list(zip(POINTS.split(4), TARGETS.split(4), strict=True))  # 3 an epoch


def squared(model, batch):
    points, targets = batch
    return (model(points)[:, 0] - targets) ** 2


def line(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(2, 1)


def sgd(model, rate=0.1):
    return torch.optim.SGD(model.parameters(), lr=rate)


class TestTheLoop:
    def test_it_takes_the_steps_of_a_loop_written_by_hand_to_the_last_bit(self):
        model, expected = line(), line()
        optimizer, losses = torch.optim.AdamW(expected.parameters(), lr=0.1), []
        for points, targets in BATCHES * 2:
            mean = ((expected(points)[:, 0] - targets) ** 2).mean()
            optimizer.zero_grad()
            mean.backward()
            optimizer.step()
            losses.append(mean.item())

        adamw = torch.optim.AdamW(model.parameters(), lr=0.1)
        history = fit(model, BATCHES, squared, optimizer=adamw, epochs=2, clip=None)

        assert history.losses == losses
        assert history.steps == [1, 2, 3, 4, 5, 6]
        assert history.epochs == [1, 1, 1, 2, 2, 2]
        assert model.weight.equal(expected.weight)
        assert model.bias.equal(expected.bias)

    def test_steps_may_end_amid_an_epoch(self):
        model = line()
        history = fit(model, BATCHES, squared, optimizer=sgd(model), steps=4)
        assert history.epochs == [1, 1, 1, 2]

    def test_a_step_is_as_long_as_the_clipped_gradient(self):
        model = nn.Linear(1, 1, bias=False)
        nn.init.constant_(model.weight, 3.0)
        batch = [(torch.ones(1, 1), torch.tensor([0.0]))]  # loss 3² = 9, gradient 6
        history = fit(model, batch, squared, optimizer=sgd(model, 1.0), steps=1, clip=2)
        assert history.losses == [9]
        assert history.gradient_norms == [6]
        assert model.weight.item() == pytest.approx(3 - 2, abs=1e-5)

    def test_a_short_gradient_is_not_made_longer(self):
        model = nn.Linear(1, 1, bias=False)
        nn.init.constant_(model.weight, 0.25)
        batch = [(torch.ones(1, 1), torch.tensor([0.0]))]
        fit(model, batch, squared, optimizer=sgd(model, 1.0), steps=1, clip=2)
        assert model.weight.item() == 0.25 - 0.5

    def test_the_schedule_multiplies_the_rates_and_leaves_them_as_they_were(self):
        model = line()
        groups = [{"params": [model.weight], "lr": 0.5}, {"params": [model.bias]}]
        optimizer, before = torch.optim.SGD(groups, lr=0.25), model.bias.clone()
        history = fit(
            model,
            BATCHES,
            squared,
            optimizer=optimizer,
            steps=3,
            schedule=lambda step: [1.0, 0.5, 0.0][step],
        )
        assert history.learning_rates == [0.5, 0.25, 0.0]
        assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]
        assert not model.bias.equal(before)

    def test_a_step_at_rate_0_changes_nothing(self):
        model, expected = line(), line()
        fit(
            model,
            BATCHES,
            squared,
            optimizer=sgd(model),
            epochs=1,
            schedule=lambda step: 0.0,
        )
        assert model.weight.equal(expected.weight)

    def test_a_batch_may_be_any_nest_of_tensors(self):
        class Pair(NamedTuple):
            points: torch.Tensor
            rest: dict

        def nested(model, batch):
            assert isinstance(batch, Pair)
            return squared(model, (batch.points, batch.rest["targets"][0]))

        nests = [
            Pair(points, {"targets": [targets], "name": "x"})
            for points, targets in BATCHES
        ]
        model, expected = line(), line()
        one = fit(model, nests, nested, optimizer=sgd(model), epochs=1)
        other = fit(expected, BATCHES, squared, optimizer=sgd(expected), epochs=1)
        assert one == other

    def test_a_scalar_loss_is_its_own_mean(self):
        def mean_squared(model, batch):
            return squared(model, batch).mean()

        model, expected = line(), line()
        one = fit(model, BATCHES, mean_squared, optimizer=sgd(model), epochs=1)
        other = fit(expected, BATCHES, squared, optimizer=sgd(expected), epochs=1)
        assert one == other

    def test_the_seed_fixes_dropout_and_leaves_what_comes_after_as_it_was(self):
        def train(seed):
            model = nn.Sequential(line(), nn.Dropout(0.5))
            torch.manual_seed(5)
            random.seed(5)
            history = fit(
                model, BATCHES, squared, optimizer=sgd(model), epochs=2, seed=seed
            )
            return history.losses, torch.rand(1).item(), random.random()

        losses, *after = train(1)
        assert train(1) == (losses, *after)
        assert train(2) == (train(2)[0], *after)
        assert train(2)[0] != losses

    def test_dropout_acts_in_training_and_not_after_it(self):
        model = nn.Sequential(line(), nn.Dropout(0.5)).eval()
        modes = []

        def watched(model, batch):
            modes.append(model.training)
            return squared(model, batch)

        fit(model, BATCHES, watched, optimizer=sgd(model), epochs=1)
        assert modes == [True, True, True]
        assert not model.training

    def test_batches_are_told_the_epoch(self):
        class Batches(list):
            told = ()

            def set_epoch(self, epoch):
                self.told = (*self.told, epoch)

        batches, model = Batches(BATCHES), line()
        fit(model, batches, squared, optimizer=sgd(model), epochs=3)
        assert batches.told == (0, 1, 2)

    def test_a_history_is_gone_on_with_after_its_last_step(self):
        class Batches(list):
            def set_epoch(self, epoch):
                self.sort(key=lambda batch: batch[0][epoch, 0].item())

        def failing(model, batch):
            if len(history.steps) == 4:
                raise KeyboardInterrupt
            return squared(model, batch)

        def train(loss, model, **options):
            options["schedule"] = warmup_cosine(2, 10)
            return fit(model, Batches(BATCHES), loss, optimizer=sgd(model), **options)

        model, expected, history = line(), line(), History()
        assert train(failing, model, epochs=3, history=history) is history
        assert history.interrupted
        train(squared, model, steps=8, history=history)
        train(squared, model, epochs=3, history=history)
        assert history == train(squared, expected, epochs=3)
        assert model.weight.equal(expected.weight)

    def test_a_history_becomes_another_by_its_state_alone(self):
        model, copied = line(), History()
        history = fit(model, BATCHES, squared, optimizer=sgd(model), epochs=1)
        state = history.state_dict()
        copied.load_state_dict(state)
        assert copied == history
        copied.append(2, 0.5, 0.1, 1.0)
        history.append(2, 0.5, 0.1, 1.0)
        assert state["steps"] == [1, 2, 3]

    def test_after_every_epoch_and_at_the_end_there_is_time_to_look(self):
        model, looked = line(), []
        optimizer, modes = sgd(model), []

        def look():
            looked.append((optimizer.param_groups[0]["lr"], model.weight.clone()))
            model.eval()

        def watched(model, batch):
            modes.append(model.training)
            return squared(model, batch)

        options = {"optimizer": optimizer, "schedule": lambda step: 0.5}
        fit(model, BATCHES, watched, steps=4, after_epoch=look, **options)
        assert [rate for rate, _ in looked] == [0.1, 0.1]  # those to go on with
        assert not looked[0][1].equal(looked[1][1])
        assert modes == [True] * 4

    def test_nothing_of_accelerate_is_needed_without_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "accelerate", None)  # as if not installed
        module = runpy.run_path(tutorial_lib.training.__file__)
        model = line()
        options = {"optimizer": sgd(model), "epochs": 1}
        assert module["fit"](model, BATCHES, squared, **options).steps == [1, 2, 3]

    def test_batches_go_to_the_device_of_the_model(self):
        model, seen = nn.Linear(2, 1, device="meta"), []

        def watched(model, batch):
            seen.append((batch[0].device.type, model.weight.device.type))
            return squared(model, batch)

        with pytest.raises(Exception, match="meta"):  # which holds no numbers
            fit(model, BATCHES, watched, optimizer=sgd(model), steps=1)
        assert seen == [("meta", "meta")]


class TestWhatDoesNotFit:
    @pytest.mark.parametrize(
        ("limits", "message"),
        [
            ({}, "give epochs or steps.*epochs=None, steps=None"),
            ({"epochs": 1, "steps": 2}, "epochs=1, steps=2"),
            ({"steps": 0}, "positive whole number"),
            ({"epochs": 1.5}, "positive whole number"),
            ({"steps": 1, "clip": -1.0}, "clip must be a positive number or None.*-1"),
            ({"steps": -1}, "positive whole number"),
            ({"epochs": math.nan}, "positive whole number"),
            ({"steps": math.inf}, "positive whole number"),
            ({"steps": 1, "clip": 0}, "clip must be a positive number or None.* 0"),
            ({"steps": 1, "clip": -math.inf}, "clip must be .* got -inf"),
            ({"steps": 1, "clip": math.nan}, "clip must be .* got nan"),
        ],
    )
    def test_limits_are_refused_with_what_was_given(self, limits, message):
        model = line()
        with pytest.raises(ValueError, match=message):
            fit(model, BATCHES, squared, optimizer=sgd(model), **limits)

    def test_empty_batches_are_named(self):
        model = line()
        with pytest.raises(ValueError, match="nothing in epoch 1: it is empty"):
            fit(model, [], squared, optimizer=sgd(model), epochs=2)

    def test_a_generator_is_refused_for_two_epochs_before_any_step(self):
        model, batches = line(), iter(BATCHES)
        with pytest.raises(ValueError, match=r"generator.*once.*2 epochs.*DataLoader"):
            fit(model, batches, squared, optimizer=sgd(model), epochs=2)
        assert len(list(batches)) == 3
        one = fit(model, iter(BATCHES), squared, optimizer=sgd(model), epochs=1)
        assert one.steps == [1, 2, 3]

    def test_a_generator_that_ends_before_the_steps_do_is_named(self):
        model = line()
        with pytest.raises(ValueError, match=r"nothing in epoch 2.*read once"):
            fit(model, iter(BATCHES), squared, optimizer=sgd(model), steps=5)

    def test_a_model_with_nothing_to_train_is_named(self):
        model = line()
        optimizer = sgd(model)
        model.requires_grad_(False)
        with pytest.raises(
            ValueError, match="no parameter of this Linear that requires"
        ):
            fit(model, BATCHES, squared, optimizer=optimizer, epochs=1)

    def test_the_optimizer_of_another_model_is_refused(self):
        with pytest.raises(
            ValueError, match=r"no parameter of this Linear .*: make it"
        ):
            fit(line(), BATCHES, squared, optimizer=sgd(line()), epochs=1)

    @pytest.mark.parametrize(
        ("finish", "message"),
        [
            (lambda losses: losses.mean().item(), "got float"),
            (lambda losses: losses.detach(), "without gradient"),
        ],
    )
    def test_a_loss_without_gradient_is_refused(self, finish, message):
        model = line()
        with pytest.raises(ValueError, match=message):
            fit(
                model,
                BATCHES,
                lambda model, batch: finish(squared(model, batch)),
                optimizer=sgd(model),
                epochs=1,
            )

    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    def test_a_loss_that_is_not_finite_stops_before_the_weights_are_lost(self, wrong):
        broken = [*BATCHES[:2], (BATCHES[2][0] * wrong, BATCHES[2][1])]
        model, expected = line(), line()
        with pytest.raises(FloatingPointError, match=r"step 3 .*smaller learning rate"):
            fit(model, broken, squared, optimizer=sgd(model), epochs=1)
        fit(expected, BATCHES, squared, optimizer=sgd(expected), steps=2)
        assert model.weight.equal(expected.weight)

    def test_a_gradient_that_is_not_finite_stops_as_well(self):
        def root(model, batch):  # of 0: the slope there is infinite
            return (model(batch[0]) * 0).abs().sqrt()

        model, expected = line(), line()
        with pytest.raises(FloatingPointError, match=r"loss 0\.0 and gradient norm"):
            fit(model, BATCHES, root, optimizer=sgd(model), epochs=1)
        assert model.weight.equal(expected.weight)


class TestTokenLosses:
    def test_each_target_word_and_the_end_count_and_padding_does_not(self):
        class Fixed(nn.Module):
            """Say the same, whatever comes: (batch, token, vocab)."""

            def forward(self, source, lengths, target):
                self.given = source, lengths, target
                return torch.arange(2 * 3 * 4.0).reshape(2, 3, 4).sin()

        source, lengths = torch.tensor([[3, 3], [3, 0]]), torch.tensor([2, 1])
        target = torch.tensor([[1, 3, 3, 2], [1, 2, 0, 0]])
        model = Fixed()
        batch = Batch(source, lengths, target, torch.tensor([4, 2]))
        losses = token_losses(model, batch)

        logits = model(None, None, None)
        said = [(0, 0, 3), (0, 1, 3), (0, 2, 2), (1, 0, 2)]
        expected = [-logits[i, t].log_softmax(-1)[word] for i, t, word in said]
        torch.testing.assert_close(losses, torch.stack(expected))

    def test_the_model_is_given_the_target_up_to_the_word_before(self):
        seen = []

        def model(source, lengths, target):
            seen.extend([source, lengths, target])
            return torch.zeros(1, 2, 4)

        source, lengths = torch.tensor([[3]]), torch.tensor([1])
        token_losses(
            model, Batch(source, lengths, torch.tensor([[1, 3, 2]]), lengths + 2)
        )
        assert [tensor.tolist() for tensor in seen] == [[[3]], [1], [[1, 3]]]

    def test_smoothing_gives_a_share_of_the_truth_to_every_word(self):
        logits = torch.tensor([[[2.0, 0.0, 5.0]]])
        batch = Batch(None, None, torch.tensor([[1, 2]]), torch.tensor([2]))
        smooth = token_losses(lambda *_: logits, batch, smoothing=0.3)
        truth = torch.tensor([0.1, 0.1, 0.8])  # 0.7 and a third of 0.3
        by_hand = -(truth * logits[0, 0].log_softmax(-1)).sum()
        torch.testing.assert_close(smooth, by_hand[None])


class TestSchedule:
    def test_warmup_rises_in_a_line_and_the_cosine_falls_to_0(self):
        schedule = warmup_cosine(4, 12)
        rise, fall = [0.25, 0.5, 0.75, 1.0], [1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5]
        assert [schedule(step) for step in range(4)] == rise
        assert [schedule(step) for step in (4, 6, 8, 10)] == pytest.approx(fall)
        assert [schedule(step) for step in (12, 20)] == [0, 0]

    def test_there_may_be_no_warmup_but_not_only_warmup(self):
        assert warmup_cosine(0, 10)(0) == 1
        with pytest.raises(ValueError, match="less than the second, got 10 and 10"):
            warmup_cosine(10, 10)

    @pytest.mark.parametrize(
        "numbers", [(-1, 10), (2.5, 10), (2, 10.5), (math.nan, 10), (0, math.inf)]
    )
    def test_both_must_be_whole_numbers_that_are_not_negative(self, numbers):
        with pytest.raises(ValueError, match="whole numbers, the first at least 0"):
            warmup_cosine(*numbers)
