"""Run: a training run as something that can be stopped, kept and resumed.

This module does not know how a step is computed, only whether it is done.
"""

from contextlib import contextmanager
from pathlib import Path

import torch

from tutorial_lib.progress_bar import progress_bar
from tutorial_lib.training.checkpoints import (
    describe,
    read_checkpoint,
    write_checkpoint,
)
from tutorial_lib.training.history import History
from tutorial_lib.training.interrupts import uninterrupted
from tutorial_lib.training.randomness import read_randomness, write_randomness

LISTS = ("steps", "epochs", "losses", "learning_rates", "gradient_norms")


class Run:
    """What a run has come to: weights, optimizer, history and the place on its course.

    A ``with`` block around it starts the run, and ends it in order however the block is
    left: its file is written, the learning rates are the given ones again, the model is
    ready to be evaluated. Ctrl-C ends the block without an error.
    """

    def __init__(self, model, optimizer, course, engine):
        self.model, self.optimizer = model, optimizer
        self.course, self.engine = course, engine
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.history = History()
        self.whole = True  # False while a step is being taken
        self.checkpoint = None

    def keep_in(self, checkpoint, *, every, settings):
        """Keep the run in a file, if one is named, and start from it, if it exists.

        It is written after ``every`` so many steps, or with None after every epoch.
        ``settings`` are what a resumed run must share with it, besides the names of
        its weights and the options of its optimizer.
        """
        if every is not None and (checkpoint is None or every < 1):
            raise ValueError(
                f"save_every={every!r} must be a positive number of steps, and needs a "
                f"file: got checkpoint={checkpoint!r}"
            )
        if checkpoint is not None and not Path(checkpoint).absolute().parent.is_dir():
            raise ValueError(
                f"checkpoint {checkpoint} is in a folder that does not exist: make it"
            )
        self.checkpoint, self.every = checkpoint, every
        self.settings = {
            **settings,
            "the number of batches": self.course.length,
            **describe(self.model, self.optimizer),
        }
        self.saved = self.course.place  # which the file holds, or is not worth one

    def __enter__(self):
        state = None
        if self.checkpoint is not None and self.engine.main:
            state = read_checkpoint(self.checkpoint, self.settings)
        state = self.engine.agree(state)
        if state is not None:
            self._resume(state)
        else:
            write_randomness(self.engine.agree(read_randomness()))
        self.buffers = [buffer.clone() for buffer in self.model.buffers()]
        self.model.train()
        return self

    def __exit__(self, kind, error, trace):
        self.set_rates(1.0)
        self.model.eval()
        if kind is not None:
            self._forget_half_a_step()
        if self.whole:  # else the optimizer failed, and the last file is the better one
            self.save()
        if kind is not KeyboardInterrupt:
            return False
        self.history.interrupted = True
        if self.engine.main:
            print(self._farewell())
        return True

    def progress_bar(self, *, shown):
        """Open a bar that starts where the run does."""
        course, shown = self.course, shown and self.engine.main
        return progress_bar(course.total, done=course.done, shown=shown)

    def batches(self):
        """Yield the batches that are left, and write the file after every epoch."""
        epoch = self.course.epoch
        for batch in self.course:
            if self.course.epoch > epoch and self.every is None:
                self.save()
            epoch = self.course.epoch
            yield batch

    def set_rates(self, factor):
        """Make the learning rates ``factor`` times the given ones."""
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor

    @contextmanager
    def step(self, *, loss, gradient_norm):
        """Count the step that is taken in a ``with`` block: all of it, or none."""
        with uninterrupted():
            self.whole = False
            yield
            rate = self.optimizer.param_groups[0]["lr"]
            self.history.append(
                epoch=self.course.epoch + 1,
                loss=loss,
                learning_rate=rate,
                gradient_norm=gradient_norm,
            )
            self.course.advance()
            self.buffers = [buffer.clone() for buffer in self.model.buffers()]
            self.whole = True
            if self.every and self.course.done % self.every == 0:
                self.save()

    def save(self):
        """Write the file, if one was asked for and the run is further than it."""
        place = self.course.place
        if self.checkpoint is None or not self.engine.main or place is self.saved:
            return
        state = {
            "settings": self.settings,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "history": {name: getattr(self.history, name) for name in LISTS},
            "place": place,
        }
        with uninterrupted():
            write_checkpoint(self.checkpoint, state)
            self.saved = place

    def _resume(self, state):
        course, place = self.course, state["place"]
        course.resume(place)
        if course.is_past_the_end():
            raise ValueError(
                f"checkpoint {self.checkpoint} holds {place['done']} steps, more than "
                "the run asked for: ask for as many, or give another name"
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.history = History(**state["history"])
        self.saved = place

    def _forget_half_a_step(self):
        """Take back what a step that was not finished did to the model's buffers."""
        with torch.no_grad():
            for buffer, before in zip(self.model.buffers(), self.buffers, strict=True):
                buffer.copy_(before)

    def _farewell(self):
        done, total = self.course.done, self.course.total or "?"
        if self.checkpoint is None:
            advice = "model and history are kept, and fit goes on from these weights"
        else:
            advice = f"the same call goes on from {self.checkpoint}"
        return f"Stopped after step {done} of {total}: {advice}."
