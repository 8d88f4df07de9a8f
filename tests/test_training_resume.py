"""Runs that are stopped, kept in a file and resumed: the same as if never stopped."""

import os
import signal

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tutorial_lib.training import fit, warmup_cosine

POINTS = torch.arange(40.0).reshape(20, 2).sin()
TARGETS = POINTS @ torch.tensor([2.0, -1.0]) + 0.5
DATA = TensorDataset(POINTS, TARGETS)  # 5 batches an epoch


class Stop(Exception):
    pass


def network():
    """Make a model in which everything goes on from step to step."""
    torch.manual_seed(0)
    layers = (nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    return nn.Sequential(*layers)


def squared(model, batch):
    return (model(batch[0])[:, 0] - batch[1]) ** 2


def failing_at(call, error):
    """Return the loss ``squared``, which fails at a call after it used the model."""
    calls = []

    def loss(model, batch):
        calls.append(batch)
        losses = squared(model, batch)
        if len(calls) == call:
            raise error
        return losses

    return loss


def shuffled():
    return DataLoader(DATA, batch_size=4, shuffle=True)


def shuffled_by_its_own_generator():
    generator = torch.Generator().manual_seed(3)
    return DataLoader(DATA, batch_size=4, shuffle=True, generator=generator)


class ShuffledByEpoch:
    """Batches as torch's DistributedSampler gives them, and the book's own."""

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 5

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.epoch)
        for rows in torch.randperm(20, generator=generator).split(4):
            yield POINTS[rows], TARGETS[rows]


class MadeUp:
    """Batches of random numbers, drawn between the random numbers of dropout."""

    def __iter__(self):
        for _ in range(5):
            points = torch.randn(4, 2)
            yield points, points.sum(1)


def train(batches=None, *, loss=squared, model=None, epochs=3, **options):
    """Train a network that is new, as that of a new process."""
    model = model or network()
    torch.manual_seed(1)
    history = fit(
        model,
        batches or shuffled(),
        loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.05),
        schedule=warmup_cosine(4, 20),
        **({"epochs": epochs} | options),
    )
    return history, model.state_dict(), torch.rand(3)


def assert_same(one, other):
    assert one[0] == other[0]
    for name, tensor in one[1].items():
        assert tensor.equal(other[1][name]), name
    assert one[2].equal(other[2])


SHUFFLES = [shuffled, shuffled_by_its_own_generator, ShuffledByEpoch, MadeUp]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.pt"


class TestResuming:
    @pytest.mark.parametrize("call", [2, 6, 8, 11])  # the 6th and 11th open an epoch
    @pytest.mark.parametrize("make", SHUFFLES)
    def test_a_run_stopped_by_an_error_comes_to_what_it_would_have(
        self, file, make, call
    ):
        with pytest.raises(Stop):
            train(make(), loss=failing_at(call, Stop()), checkpoint=file)
        torch.rand(7)  # as another process would
        assert_same(train(make(), checkpoint=file), train(make()))

    @pytest.mark.parametrize("make", SHUFFLES)
    def test_so_does_one_stopped_by_ctrl_c(self, file, make):
        loss = failing_at(8, KeyboardInterrupt())
        stopped = train(make(), loss=loss, checkpoint=file)
        assert stopped[0].interrupted
        assert stopped[0].steps == list(range(1, 8))
        resumed = train(make(), checkpoint=file)
        assert not resumed[0].interrupted
        assert_same(resumed, train(make()))

    def test_so_does_one_stopped_while_a_batch_was_read(self, file):
        class Failing(ShuffledByEpoch):
            def __iter__(self):
                for i, batch in enumerate(super().__iter__()):
                    if self.epoch == 1 and i == 3:
                        torch.rand(1)
                        raise Stop
                    yield batch

        with pytest.raises(Stop):
            train(Failing(), checkpoint=file)
        resumed = train(ShuffledByEpoch(), checkpoint=file)
        assert_same(resumed, train(ShuffledByEpoch()))

    def test_so_does_one_stopped_many_times(self, file):
        for _ in range(6):
            loss = failing_at(3, KeyboardInterrupt())
            stopped = train(loss=loss, checkpoint=file)[0]
        assert stopped.steps == list(range(1, 13))
        assert_same(train(checkpoint=file), train())

    def test_so_does_one_whose_process_was_killed(self, file, monkeypatch):
        """Of which only what was written before is left."""
        kept = {}

        def watched(model, batch):
            kept[len(kept)] = file.read_bytes() if file.exists() else b""
            return squared(model, batch)

        expected = train(loss=watched, checkpoint=file)
        assert [step for step in kept if kept[step] != kept.get(step - 1, b"")] == [
            5,
            10,
        ]  # after every epoch
        file.write_bytes(kept[9])
        assert_same(train(checkpoint=file), expected)

    def test_the_seed_counts_once(self, file):
        loss = failing_at(8, KeyboardInterrupt())
        train(loss=loss, checkpoint=file, seed=4)
        assert_same(train(checkpoint=file, seed=4), train(seed=4))

    def test_the_file_is_written_every_so_many_steps(self, file):
        written = []

        def watched(model, batch):
            written.append(file.stat().st_mtime_ns if file.exists() else None)
            return squared(model, batch)

        train(loss=watched, checkpoint=file, save_every=2, epochs=1)
        assert written[:2] == [None, None]
        assert written[2] == written[3] is not None
        assert written[4] not in written[:4]

    def test_a_run_that_is_over_is_told_again_without_a_step(self, file):
        expected = train(checkpoint=file)
        written = file.read_bytes()

        def never(model, batch):
            raise AssertionError

        class Unread(ShuffledByEpoch):
            __iter__ = never

        assert_same(train(loss=never, checkpoint=file), expected)
        assert file.read_bytes() == written

    @pytest.mark.parametrize("fewer", [{"epochs": 2}, {"epochs": None, "steps": 8}])
    def test_more_may_be_asked_for_later(self, file, fewer):
        train(checkpoint=file, **fewer)
        assert_same(train(checkpoint=file), train())

    def test_fewer_may_not(self, file):
        train(checkpoint=file)
        with pytest.raises(ValueError, match="holds 15 steps, more than"):
            train(checkpoint=file, epochs=2)
        with pytest.raises(ValueError, match="holds 15 steps, more than"):
            train(checkpoint=file, epochs=None, steps=7)

    def test_a_notebook_may_go_on_with_the_model_it_has(self, file):
        model, expected = network(), train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        options = {"optimizer": optimizer, "epochs": 3, "checkpoint": file}
        options["schedule"] = warmup_cosine(4, 20)
        torch.manual_seed(1)
        fit(model, shuffled(), failing_at(7, KeyboardInterrupt()), **options)
        history = fit(model, shuffled(), squared, **options)
        assert_same((history, model.state_dict(), torch.rand(3)), expected)


class TestCtrlC:
    def test_it_waits_until_the_step_is_taken_whole(self, file):
        class Slow(torch.optim.SGD):
            def step(self):
                signal.raise_signal(signal.SIGINT)
                super().step()

        model, expected = network(), network()
        handler = signal.getsignal(signal.SIGINT)
        history = fit(
            model,
            ShuffledByEpoch(),
            squared,
            optimizer=Slow(model.parameters(), lr=0.1),
            epochs=1,
            seed=0,
        )
        assert history.interrupted
        assert history.steps == [1]
        assert signal.getsignal(signal.SIGINT) is handler
        sgd = torch.optim.SGD(expected.parameters(), lr=0.1)
        fit(expected, ShuffledByEpoch(), squared, optimizer=sgd, steps=1, seed=0)
        assert model[0].weight.equal(expected[0].weight)

    def test_it_says_in_one_line_how_to_go_on(self, file, capsys):
        loss = failing_at(3, KeyboardInterrupt())
        train(loss=loss)
        said = "Stopped after step 2 of 15: model and history are kept, "
        said += "and fit goes on from these weights.\n"
        assert capsys.readouterr().out == said
        train(loss=failing_at(3, KeyboardInterrupt()), checkpoint=file)
        said = f"Stopped after step 2 of 15: the same call goes on from {file}.\n"
        assert capsys.readouterr().out == said

    def test_it_may_come_before_the_first_step(self, file):
        history, *_ = train(loss=failing_at(1, KeyboardInterrupt()), checkpoint=file)
        assert history.interrupted
        assert history.steps == []
        assert_same(train(checkpoint=file), train())


class TestTheFile:
    def test_a_damaged_file_is_named_and_left_alone(self, file):
        train(checkpoint=file, epochs=1)
        file.write_bytes(file.read_bytes()[:-100])
        damaged = file.read_bytes()
        with pytest.raises(ValueError, match=r"run\.pt cannot be read.*delete it"):
            train(checkpoint=file)
        assert file.read_bytes() == damaged

    @pytest.mark.parametrize("content", [b"", b"words", b"PK\x03\x04"])
    def test_a_file_of_another_kind_is_named_and_left_alone(self, file, content):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"run\.pt cannot be read"):
            train(checkpoint=file)
        assert file.read_bytes() == content

    @pytest.mark.parametrize("other", [{"weights": torch.ones(2)}, torch.ones(2)])
    def test_a_file_that_fit_did_not_write_is_left_alone(self, file, other):
        torch.save(other, file)
        before = file.read_bytes()
        with pytest.raises(ValueError, match=r"run\.pt is not by fit: give another"):
            train(checkpoint=file)
        assert file.read_bytes() == before

    def test_a_file_that_could_run_code_is_not_opened(self, file, tmp_path):
        class Evil:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "harm"),)

        torch.save({"format": Evil()}, file)
        with pytest.raises(ValueError, match="cannot be read"):
            train(checkpoint=file)
        assert not (tmp_path / "harm").exists()

    @pytest.mark.parametrize(
        ("other", "difference"),
        [
            ({"clip": 0.5}, "clip is 0.5 here and 1.0 there"),
            ({"seed": 3}, "seed is 3 here and None there"),
            ({"batches": [(POINTS, TARGETS)]}, "number of batches is 1 here and 5"),
            ({"model": nn.Linear(2, 1)}, "the shape of 0.weight is missing here and"),
        ],
    )
    def test_the_file_of_another_run_says_what_differs(self, file, other, difference):
        train(checkpoint=file, epochs=1)
        model, before = other.get("model"), file.read_bytes()
        weights = model and model.weight.clone()
        with pytest.raises(ValueError, match=difference):
            train(checkpoint=file, **other)
        assert file.read_bytes() == before
        assert model is None or model.weight.equal(weights)

    def test_so_does_that_of_another_learning_rate(self, file):
        def train_at(rate):
            model = network()
            sgd = torch.optim.SGD(model.parameters(), lr=rate)
            options = {"optimizer": sgd, "epochs": 1, "checkpoint": file}
            return fit(model, shuffled(), squared, **options)

        train_at(0.1)
        with pytest.raises(ValueError, match=r"lr of .* is 0\.2 here and 0\.1 there"):
            train_at(0.2)

    def test_a_folder_that_is_missing_is_named_before_the_first_step(self, file):
        never = failing_at(1, AssertionError())
        with pytest.raises(ValueError, match=r"run\.pt is in a folder that does not"):
            train(loss=never, checkpoint=file.parent / "missing" / "run.pt")

    def test_a_failure_to_write_leaves_the_last_file(self, file, monkeypatch):
        train(checkpoint=file, epochs=1)
        before = file.read_bytes()

        def full(state, path):
            path.write_bytes(b"half")
            raise OSError("no space left")

        monkeypatch.setattr(torch, "save", full)
        with pytest.raises(OSError, match="no space left"):
            train(checkpoint=file)
        assert file.read_bytes() == before
        assert [path.name for path in file.parent.iterdir()] == ["run.pt"]

    def test_half_a_step_of_a_failing_optimizer_is_not_kept(self, file):
        class Failing(torch.optim.AdamW):
            def step(self):
                super().step()
                if next(iter(self.state.values()))["step"] == 7:
                    raise Stop

        model = network()
        options = {"epochs": 3, "checkpoint": file, "schedule": warmup_cosine(4, 20)}
        torch.manual_seed(1)
        with pytest.raises(Stop):
            failing = Failing(model.parameters(), lr=0.05)
            fit(model, shuffled(), squared, optimizer=failing, **options)
        assert torch.load(file)["history"]["steps"] == [1, 2, 3, 4, 5]
