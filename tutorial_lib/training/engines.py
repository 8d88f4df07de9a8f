"""Engines: what computes a step, one process or several under ``accelerate launch``.

Several processes share every batch among them and take the same steps that one would
take: a loss is the mean over all that the whole batch predicts. They run on Hugging
Face's Accelerate, which also brings other precisions and devices.

This module does not know what is trained, nor on what.
"""

import math
import os
from contextlib import contextmanager

import torch

from tutorial_lib.nests import map_nest
from tutorial_lib.training.randomness import read_randomness, write_randomness

LAUNCHED = "ACCELERATE_MIXED_PRECISION"  # which every `accelerate launch` sets


def start_engine(device):
    """Return the engine for this process; ``device`` is for a process on its own.

    Raises ImportError if the process was launched by accelerate, but lacks it.
    """
    if LAUNCHED not in os.environ:
        return OneProcess(device)
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise ImportError(
            "accelerate launched this process but cannot be imported in it: "
            'pip install "accelerate>=1.0"'
        ) from error
    return ManyProcesses(Accelerator())


class OneProcess:
    """The engine of one process on one device; None means where the model is."""

    main = True  # whether this process speaks and writes for all
    scaled = False  # whether gradients may overflow, and the step is then left out

    def __init__(self, device):
        self.device = device

    def prepare(self, model, optimizer):
        """Bring the model to the device; return what to call and what to step."""
        if self.device is None:
            self.device = next(model.parameters()).device
        model.to(self.device)
        return model, optimizer

    @contextmanager
    def share(self, batch, step):
        """Give a ``with`` block this process's share of the batch, on the device."""
        yield map_nest(lambda tensor: tensor.to(self.device), batch)

    def backward(self, losses):
        """Compute the gradients of the mean of the losses; return it as a number."""
        mean = losses.mean()
        mean.backward()
        return mean.item()

    def clip(self, model, norm):
        """Scale the gradients down to ``norm``; return what theirs was, as a number."""
        norm = math.inf if norm is None else norm
        return torch.nn.utils.clip_grad_norm_(model.parameters(), norm).item()

    def agree(self, thing):
        """Return the main process's ``thing``."""
        return thing


class ManyProcesses(OneProcess):
    """The engine of one among several processes, which Accelerate holds together.

    Row i of a batch belongs to process i modulo the number of processes. One that gets
    no row computes the first row along with its owner, and weighs it 0.
    """

    def __init__(self, accelerator):
        super().__init__(accelerator.device)
        self.accelerator = accelerator
        self.main = accelerator.is_main_process
        self.scaled = accelerator.scaler is not None

    def prepare(self, model, optimizer):
        """Let Accelerate wrap the model and the optimizer."""
        return self.accelerator.prepare(model, optimizer)

    @contextmanager
    def share(self, batch, step):
        """Give a block every so many rows, and random numbers of this process alone."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        self.rows = len(range(rank, _count_rows(batch), processes))
        first = rank if self.rows else 0

        def part(tensor):
            mine = tensor[first::processes] if tensor.ndim else tensor
            return mine.to(self.device)

        state = read_randomness()
        seed = torch.initial_seed() + 1 + step * processes + rank
        torch.manual_seed(seed % 2**63)
        try:
            yield map_nest(part, batch)
        finally:
            write_randomness(state)

    def backward(self, losses):
        """Compute the gradients of the mean over all processes; return that mean."""
        count = self.rows if losses.ndim == 0 else losses.numel() * (self.rows > 0)
        total = losses.mean() * count if count else losses.sum() * 0
        sums = torch.tensor([total.item(), count], device=self.device)
        total_of_all, count_of_all = self.accelerator.reduce(sums, "sum").tolist()
        processes = self.accelerator.num_processes  # whose gradients are averaged
        self.accelerator.backward(total * processes / count_of_all)
        return total_of_all / count_of_all

    def clip(self, model, norm):
        """Scale the gradients of all down to ``norm``; return what theirs was."""
        norm = math.inf if norm is None else norm
        return float(self.accelerator.clip_grad_norm_(model.parameters(), norm))

    def agree(self, thing):
        """Return the main process's ``thing`` in every process."""
        from accelerate.utils import broadcast_object_list

        return broadcast_object_list([thing])[0]


def _count_rows(batch):
    rows = set()
    map_nest(lambda tensor: rows.update(tensor.shape[:1]), batch)
    if len(rows) != 1:
        raise ValueError(
            "several processes share a batch row by row, so all its tensors must have "
            f"the batch as first axis: got first axes of {sorted(rows)}"
        )
    return rows.pop()
