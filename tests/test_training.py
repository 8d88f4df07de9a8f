"""Training: the loop, its history, and what it refuses."""

import math
import random

import pytest
import torch
from torch import nn

from tutorial_lib.data import Batch
from tutorial_lib.training import fit, token_losses, warmup_cosine

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


def one_weight(value):
    """Make a model whose squared loss at BATCH has the gradient 2 · value."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, value)
    return model


BATCH = (torch.ones(1, 1), torch.tensor([0.0]))


class TestTheLoop:
    def test_it_takes_the_steps_of_a_loop_written_by_hand_to_the_last_bit(self):
        model = line()
        expected = line()
        losses = []
        schedule = warmup_cosine(2, 6)
        optimizer = torch.optim.AdamW(expected.parameters())
        for step, (points, targets) in enumerate(BATCHES * 2):
            mean = ((expected(points)[:, 0] - targets) ** 2).mean()
            optimizer.zero_grad()
            mean.backward()
            nn.utils.clip_grad_norm_(expected.parameters(), 1.0)
            optimizer.param_groups[0]["lr"] = 0.1 * schedule(step)
            optimizer.step()
            losses.append(mean.item())

        adamw = torch.optim.AdamW(model.parameters(), lr=0.1)
        options = {"optimizer": adamw, "schedule": schedule}
        history = fit(model, BATCHES, squared, epochs=2, **options)

        assert history.losses == losses
        assert model.weight.equal(expected.weight)
        assert model.bias.equal(expected.bias)

    def test_steps_may_end_amid_an_epoch_and_no_further_batch_is_read(self):
        class Counted(list):
            read = 0

            def __iter__(self):
                for batch in super().__iter__():
                    self.read += 1
                    yield batch

        model = line()
        batches = Counted(BATCHES)
        history = fit(model, batches, squared, optimizer=sgd(model), steps=4)
        assert len(history.losses) == batches.read == 4

    def test_a_gradient_is_clipped_to_a_norm_of_1(self):
        for value, after in [(3.0, 2.0), (0.25, -0.25)]:  # gradients 6 and 0.5
            model = one_weight(value)
            fit(model, [BATCH], squared, optimizer=sgd(model, 1.0), steps=1)
            assert model.weight.item() == pytest.approx(after, abs=1e-5)

    def test_a_second_training_begins_with_the_learning_rate_of_the_first(self):
        model = line()
        expected = line()
        optimizer = sgd(model)
        options = {"steps": 1, "schedule": lambda step: 0.0}
        fit(model, BATCHES, squared, optimizer=optimizer, **options)
        assert model.weight.equal(expected.weight)
        fit(model, BATCHES, squared, optimizer=optimizer, steps=1)
        fit(expected, BATCHES, squared, optimizer=sgd(expected), steps=1)
        assert model.weight.equal(expected.weight)

    def test_a_scalar_loss_is_its_own_mean(self):
        def mean_squared(model, batch):
            return squared(model, batch).mean()

        model = line()
        expected = line()
        one = fit(model, BATCHES, mean_squared, optimizer=sgd(model), epochs=1)
        other = fit(expected, BATCHES, squared, optimizer=sgd(expected), epochs=1)
        assert one == other

    def test_the_seed_fixes_dropout_and_leaves_what_comes_after_as_it_was(self):
        def train(seed):
            model = nn.Sequential(line(), nn.Dropout(0.5))
            torch.manual_seed(5)
            random.seed(5)
            options = {"optimizer": sgd(model), "epochs": 2, "seed": seed}
            history = fit(model, BATCHES, squared, **options)
            return history.losses, torch.rand(1).item(), random.random()

        losses, *after = train(1)
        assert train(1) == (losses, *after)
        assert train(2) == (train(2)[0], *after)
        assert train(2)[0] != losses

    def test_the_model_learns_in_training_mode_and_is_left_in_evaluation_mode(self):
        model = line().eval()
        modes = []

        def loss(model, batch):
            modes.append(model.training)
            return squared(model, batch)

        fit(model, BATCHES, loss, optimizer=sgd(model), epochs=2)
        assert modes == [True] * 6
        assert not model.training

    def test_batches_are_told_the_epoch(self):
        epochs = []

        class Batches(list):
            def set_epoch(self, epoch):
                epochs.append(epoch)

        model = line()
        fit(model, Batches(BATCHES), squared, optimizer=sgd(model), epochs=2)
        assert epochs == [0, 1]

    def test_ctrl_c_ends_the_cell_and_says_in_one_line_where(self):
        def stopped(model, batch):
            if batch is BATCHES[2]:
                raise KeyboardInterrupt
            return squared(model, batch)

        model = line()
        with pytest.raises(KeyboardInterrupt) as raised:
            fit(model, BATCHES, stopped, optimizer=sgd(model), epochs=2)
        message = "Stopped after step 2 of 6; run the cell again"
        assert raised.value._render_traceback_() == [message]


class TestWhatDoesNotFit:
    @pytest.mark.parametrize("limit", [{"epochs": 2}, {"steps": 5}])
    @pytest.mark.parametrize("batches", [[], iter(BATCHES)])
    def test_empty_batches_and_generators_that_have_ended_are_named(
        self, batches, limit
    ):
        model = line()
        with pytest.raises(ValueError, match="is empty, or a generator: give a list"):
            fit(model, batches, squared, optimizer=sgd(model), **limit)

    @pytest.mark.parametrize(
        "lengths", [{}, {"epochs": 0}, {"epochs": -1}, {"epochs": 2, "steps": -1}]
    )
    def test_a_training_without_an_end_or_a_step_is_refused(self, lengths):
        model = line()
        with pytest.raises(ValueError, match="say how long to train"):
            fit(model, BATCHES, squared, optimizer=sgd(model), **lengths)

    def test_a_generator_may_be_read_once(self):
        model = line()
        one = fit(model, iter(BATCHES), squared, optimizer=sgd(model), epochs=1)
        assert len(one.losses) == 3

    def test_the_optimizer_of_another_model_is_refused(self):
        model = line()
        other = line()
        fit(other, BATCHES, squared, optimizer=sgd(other), epochs=1)
        with pytest.raises(ValueError, match="the parameters of this very model"):
            fit(model, BATCHES, squared, optimizer=sgd(other), epochs=1)

    @pytest.mark.parametrize("finish", [torch.Tensor.detach, lambda x: x.sum().item()])
    def test_a_loss_without_gradient_is_refused(self, finish):
        def loss(model, batch):
            return finish(squared(model, batch))

        model = line()
        with pytest.raises(ValueError, match=r"no gradient: leave out \.item\(\)"):
            fit(model, BATCHES, loss, optimizer=sgd(model), epochs=1)

    @pytest.mark.parametrize("wrong", [math.nan, math.inf])
    def test_a_loss_that_is_not_finite_stops_before_the_weights_are_lost(self, wrong):
        broken = [*BATCHES[:2], (BATCHES[2][0] * wrong, BATCHES[2][1])]
        model = line()
        expected = line()
        with pytest.raises(FloatingPointError, match="a smaller learning rate"):
            fit(model, broken, squared, optimizer=sgd(model), epochs=1)
        fit(expected, BATCHES, squared, optimizer=sgd(expected), steps=2)
        assert model.weight.equal(expected.weight)

    def test_a_gradient_that_is_not_finite_stops_as_well(self):
        def root(model, batch):  # of 0: the slope there is infinite
            return (model(batch[0]) * 0).abs().sqrt()

        model = line()
        expected = line()
        with pytest.raises(FloatingPointError):
            fit(model, BATCHES, root, optimizer=sgd(model), epochs=1)
        assert model.weight.equal(expected.weight)


class TestTokenLosses:
    def test_each_target_token_and_the_end_count_and_padding_does_not(self):
        seen = []

        def model(source, lengths, target):  # always the same logits
            seen.extend([source, lengths, target])
            return logits

        logits = torch.arange(2 * 3 * 4.0).reshape(2, 3, 4).sin()
        source = torch.tensor([[3, 3], [3, 0]])
        lengths = torch.tensor([2, 1])
        target = torch.tensor([[1, 3, 3, 2], [1, 2, 0, 0]])
        losses = token_losses(
            model, Batch(source, lengths, target, torch.tensor([4, 2]))
        )

        targets = [(0, 0, 3), (0, 1, 3), (0, 2, 2), (1, 0, 2)]
        expected = [-logits[i, t].log_softmax(-1)[token] for i, t, token in targets]
        torch.testing.assert_close(losses, torch.stack(expected))
        assert seen[0] is source
        assert seen[1] is lengths
        assert seen[2].tolist() == [[1, 3, 3], [1, 2, 0]]  # the tokens before

    def test_smoothing_gives_a_share_of_the_truth_to_every_word(self):
        logits = torch.tensor([[[2.0, 0.0, 5.0]]])
        batch = Batch(None, None, torch.tensor([[1, 2]]), torch.tensor([2]))
        smooth = token_losses(lambda *_: logits, batch, label_smoothing=0.3)
        truth = torch.tensor([0.1, 0.1, 0.8])  # 0.7 and a third of 0.3
        by_hand = -(truth * logits[0, 0].log_softmax(-1)).sum()
        torch.testing.assert_close(smooth, by_hand[None])


def test_warmup_rises_in_a_line_and_the_cosine_falls_to_0():
    schedule = warmup_cosine(4, 12)
    rise, fall = [0.25, 0.5, 0.75, 1.0], [1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5]
    assert [schedule(step) for step in range(4)] == rise
    assert [schedule(step) for step in (4, 6, 8, 10)] == pytest.approx(fall)
    assert [schedule(step) for step in (12, 20)] == [0, 0]
    assert warmup_cosine(0, 10)(0) == 1
    with pytest.raises(ValueError, match="from 0 to below steps: 5 of 5"):
        warmup_cosine(5, 5)


@pytest.mark.parametrize(
    "lengths", [{"steps": 1.5}, {"epochs": True}, {"steps": math.nan}]
)
def test_a_training_takes_a_whole_number_of_steps(lengths):
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    with pytest.raises(ValueError, match="must be a positive whole number"):
        fit(model, [torch.ones(1)], None, optimizer=optimizer, **lengths)
