"""Several processes under ``accelerate launch`` train as one process does."""

import json
import os
import shutil
import subprocess
import sys

import launched
import pytest
import torch

from tutorial_lib.training.engines import (
    LAUNCHED,
    ManyProcesses,
    _count_rows,
    start_engine,
)

pytest.importorskip("accelerate")
# `--cpu` would start a single process, however many are asked for.
LAUNCH = [sys.executable, "-m", "accelerate.commands.launch"]
TWO = ["--multi_gpu", "--num_processes=2", "--num_machines=1", "--main_process_port=0"]
PLAIN = ["--mixed_precision=no", "--dynamo_backend=no"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Train in two processes, once; what came of it is in this folder."""
    folder = tmp_path_factory.mktemp("launched")
    ran = subprocess.run(
        [*LAUNCH, *TWO, *PLAIN, launched.__file__, str(folder)],
        env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == ""
    return folder


@pytest.fixture(scope="module")
def outcomes(folder):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


def assert_close(outcome, history):
    assert outcome["losses"] == pytest.approx(history.losses, abs=1e-5)
    assert outcome["gradient_norms"] == pytest.approx(history.gradient_norms, abs=1e-5)
    assert outcome["steps"] == history.steps
    assert outcome["epochs"] == history.epochs


def test_both_processes_tell_the_same(outcomes):
    one, other = ({**outcome, "dropout": None} for outcome in outcomes)
    assert one["processes"] == 2
    assert one == other


def test_losses_are_means_over_the_tokens_of_both(outcomes):
    history = launched.train_translator()
    assert len(history.losses) == 9
    assert_close(outcomes[0]["tokens"], history)


def test_batches_that_are_drawn_are_those_of_the_main_process(outcomes):
    torch.manual_seed(0)
    assert_close(outcomes[0]["points"], launched.train_line(launched.squared))


def test_a_mean_counts_as_much_as_the_rows_it_is_taken_over(outcomes):
    torch.manual_seed(0)
    assert_close(outcomes[0]["means"], launched.train_line(launched.squared))


def test_a_run_that_was_stopped_is_resumed_by_both(outcomes):
    assert outcomes[0]["resumed"] == outcomes[0]["tokens"]


def test_one_process_goes_on_from_the_file_of_two(folder, tmp_path):
    file = shutil.copy(folder / "half.pt", tmp_path)
    history = launched.train_translator(checkpoint=file)
    expected = launched.train_translator()
    assert history.losses == pytest.approx(expected.losses, abs=1e-5)


def test_dropout_differs_between_processes_and_steps(outcomes):
    masks = [tuple(mask) for outcome in outcomes for mask in outcome["dropout"]]
    assert [len(mask) for mask in masks] == [64] * 4
    assert len(set(masks)) == 4


def test_a_process_without_a_row_counts_nothing():
    class ThirdOfThree:
        device, process_index, num_processes = torch.device("cpu"), 2, 3
        is_main_process, scaler = False, None

        def reduce(self, sums, reduction):
            self.sums = sums
            return sums + torch.tensor([8.0, 4.0])  # those of the other two

        def backward(self, loss):
            loss.backward()

    accelerator = ThirdOfThree()
    engine, weight = ManyProcesses(accelerator), torch.ones(2, requires_grad=True)
    with engine.share(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 0) as share:
        assert share.tolist() == [[1, 2]]  # lent, so that it can take part
        assert engine.backward(share * weight) == 8 / 4
    assert accelerator.sums.tolist() == [0, 0]
    assert weight.grad.tolist() == [0, 0]


def test_a_batch_that_cannot_be_shared_by_rows_is_refused():
    with pytest.raises(ValueError, match=r"as first axis: got first axes of \[2, 3\]"):
        _count_rows([torch.ones(2), {"lengths": torch.ones(3, 1)}])


def test_a_launch_without_accelerate_says_what_to_install(monkeypatch):
    monkeypatch.setenv(LAUNCHED, "no")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ImportError, match=r'launched .* pip install "accelerate>=1'):
        start_engine(None)


def test_nothing_of_accelerate_is_imported_without_a_launch():
    code = "import sys, tutorial_lib.training; print('accelerate' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "False"
