"""With an Accelerator: files to resume from, other precisions, several processes."""

import json
import os
import socket
import subprocess
import sys

import launched
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tutorial_lib.training import History, fit, warmup_cosine

accelerate = pytest.importorskip("accelerate")
POINTS = torch.arange(40.0).reshape(20, 2).sin()
TARGETS = POINTS @ torch.tensor([2.0, -1.0]) + 0.5


class Stop(Exception):
    pass


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


def shuffled():
    return DataLoader(TensorDataset(POINTS, TARGETS), batch_size=4, shuffle=True)


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


def network():
    """Make a model in which everything goes on from step to step."""
    torch.manual_seed(0)
    layers = (nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    return nn.Sequential(*layers)


def train(make, loss=squared, folder=None, **options):
    """Train a network that is new, as that of a new process."""
    model, history = network(), History()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    torch.manual_seed(1)
    if folder is not None:
        accelerator = accelerate.Accelerator(cpu=True)
        model, optimizer = accelerator.prepare(model, optimizer)
        accelerator.register_for_checkpointing(history)
        if folder.exists():
            accelerator.load_state(folder)
        options["accelerator"] = accelerator
        options["after_epoch"] = lambda: accelerator.save_state(folder)
    plan = {"epochs": 3, "schedule": warmup_cosine(4, 20)} | options
    fit(model, make(), loss, optimizer=optimizer, history=history, **plan)
    return history, model.state_dict()


def assert_same(one, other):
    assert one[0] == other[0]
    for name, tensor in one[1].items():
        assert tensor.equal(other[1][name]), name


class TestResuming:
    @pytest.mark.parametrize("make", [ShuffledByEpoch, shuffled, MadeUp])
    def test_a_run_that_was_stopped_comes_to_what_it_would_have(self, make, tmp_path):
        folder, expected = tmp_path / "run", train(make)
        for call in (3, 8, 2):  # in epoch 1, in epoch 2 after it, in epoch 2 again
            with pytest.raises(Stop):
                train(make, failing_at(call, Stop()), folder)
            torch.rand(7)  # as another process would
        assert_same(train(make, folder=folder), expected)
        assert_same(train(make, failing_at(1, Stop()), folder), expected)  # is over

    def test_so_does_one_that_ctrl_c_ended(self, tmp_path, capsys):
        loss, folder = failing_at(8, KeyboardInterrupt()), tmp_path / "run"
        history, _ = train(shuffled, loss, folder)
        assert history.interrupted
        assert history.steps == list(range(1, 8))
        said = "Stopped after step 7 of 15: model and history are kept, "
        said += "and fit goes on from these weights.\n"
        assert capsys.readouterr().out == said
        assert_same(train(shuffled, folder=folder), train(shuffled))

    def test_the_seed_counts_once(self, tmp_path):
        folder = tmp_path / "run"
        with pytest.raises(Stop):
            train(MadeUp, failing_at(8, Stop()), folder, seed=4)
        assert_same(train(MadeUp, folder=folder, seed=4), train(MadeUp, seed=4))

    def test_more_may_be_asked_for_later(self, tmp_path):
        train(ShuffledByEpoch, folder=tmp_path / "run", epochs=None, steps=8)
        resumed = train(ShuffledByEpoch, folder=tmp_path / "run")
        assert resumed[0].steps == list(range(1, 16))
        assert resumed[0].epochs == [1] * 5 + [2] * 5 + [3] * 5
        assert_same(resumed, train(ShuffledByEpoch))


def test_another_precision_is_accelerates():
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    try:
        accelerator = accelerate.Accelerator(cpu=True, mixed_precision="bf16")
        model, types = network(), []
        model[0].register_forward_hook(lambda *call: types.append(call[2].dtype))
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        model, sgd = accelerator.prepare(model, sgd)
        options = {"optimizer": sgd, "epochs": 1, "accelerator": accelerator}
        fit(model, ShuffledByEpoch(), squared, **options)
    finally:
        AcceleratorState._reset_state(True)
    assert types == [torch.bfloat16] * 5


def test_gradients_that_are_to_be_accumulated_are_refused():
    accelerator, model = accelerate.Accelerator(cpu=True), network()
    accelerator.gradient_accumulation_steps = 2
    sgd = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.1))
    options = {"optimizer": sgd, "epochs": 1, "accelerator": accelerator}
    with pytest.raises(ValueError, match=r"every batch: gradient_accumulation_steps=1"):
        fit(model, ShuffledByEpoch(), squared, **options)


def test_what_the_accelerator_has_not_prepared_is_refused():
    accelerator = accelerate.Accelerator(cpu=True)
    with pytest.raises(ValueError, match=r"accelerator.prepare\(…\) first"):
        train(ShuffledByEpoch, accelerator=accelerator)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Train in two processes, once; return what came of it in each."""
    folder = tmp_path_factory.mktemp("launched")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free.getsockname()[1]),
        }
    shared = os.environ | address | {"WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, launched.__file__, str(folder)],
            env=shared | {"RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in "01"
    ]
    said = [process.communicate(timeout=500)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in "01"]


def assert_close(outcome, history):
    assert outcome["losses"] == pytest.approx(history.losses, abs=1e-5)
    assert outcome["gradient_norms"] == pytest.approx(history.gradient_norms, abs=1e-5)
    assert outcome["epochs"] == history.epochs


class TestTwoProcesses:
    def test_both_tell_the_same(self, outcomes):
        one, other = ({**outcome, "rows": None} for outcome in outcomes)
        assert one["processes"] == 2
        assert one == other

    def test_losses_are_means_over_the_tokens_of_both(self, outcomes):
        history = launched.train_translator()
        assert len(history.losses) == 9
        assert_close(outcomes[0]["tokens"], history)

    def test_means_of_as_many_rows_each_are_the_mean_of_all(self, outcomes):
        assert_close(outcomes[0]["even"], launched.train_line(6))

    def test_means_of_more_rows_count_no_more_than_those_of_fewer(self, outcomes):
        model = nn.Linear(2, 1)
        nn.init.ones_(model.weight)
        nn.init.zeros_(model.bias)
        shares = launched.POINTS[[0, 2]], launched.POINTS[[1]]
        means = [launched.mean_of_squares(model, share).item() for share in shares]
        assert outcomes[0]["uneven"]["losses"][0] == pytest.approx(sum(means) / 2)

    def test_a_run_that_was_stopped_is_resumed_by_both(self, outcomes):
        assert outcomes[0]["resumed"] == outcomes[0]["tokens"]

    def test_everything_is_kept_once(self, outcomes):
        assert outcomes[0]["files"] == [
            "custom_checkpoint_0.pkl",
            "model.safetensors",
            "optimizer.bin",
            "random_states_0.pkl",
            "random_states_1.pkl",
        ]

    def test_a_data_loader_gives_every_row_to_one_of_them(self, outcomes):
        rows = [outcome["rows"] for outcome in outcomes]
        assert [len(mine) for mine in rows] == [4, 4]
        assert sorted(rows[0] + rows[1]) == list(range(8))

    def test_a_batch_that_cannot_be_shared_by_rows_is_refused(self, outcomes):
        assert outcomes[0]["refusal"] == (
            "tensors of a batch must have as many rows, got {2, 3}"
        )
