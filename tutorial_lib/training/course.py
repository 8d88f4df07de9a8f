"""Course: the way through the batches, epoch after epoch, from any place on it.

This module does not know what a batch holds, nor what is done with it.
"""

from collections.abc import Iterator

import torch

from tutorial_lib.training.randomness import read_randomness, write_randomness


class Course:
    """The batches of a run: so many ``epochs`` of them, or the first so many ``steps``.

    Iterating yields batches, and ``advance`` says that one is done. ``place`` is where
    that leads to, and ``resume`` goes there: what was done is then drawn again, so
    that a generator of random numbers is where it was, and left out. ``total`` is the
    number of batches, None if nobody knows. If ``batches`` has ``set_epoch``, it is
    told each epoch, from 0. Raises ValueError unless exactly one of epochs and steps
    is a positive whole number, or where ``batches`` cannot give that many.
    """

    def __init__(self, batches, *, epochs=None, steps=None):
        given = [limit for limit in (epochs, steps) if limit is not None]
        if len(given) != 1 or not (isinstance(given[0], int) and given[0] >= 1):
            raise ValueError(
                "give either epochs or steps, as a positive whole number: "
                f"got epochs={epochs!r} and steps={steps!r}"
            )
        if isinstance(batches, Iterator) and (epochs or 1) > 1:
            raise ValueError(
                f"batches is a generator, which can be read once and not in {epochs} "
                "epochs: give a list or a DataLoader, or steps instead of epochs"
            )
        self.batches, self.epochs, self.steps = batches, epochs, steps
        self.length = _length(batches)
        self.total = steps or (self.length and self.length * epochs)
        self.place = {"epoch": 0, "position": 0, "done": 0}

    @property
    def epoch(self):
        """The epoch that the next batch belongs to, from 0."""
        return self.place["epoch"]

    @property
    def done(self):
        """The number of batches that are done."""
        return self.place["done"]

    def is_over(self):
        """Tell whether nothing is left to do."""
        return self.done >= self.steps if self.steps else self.epoch >= self.epochs

    def is_past_the_end(self):
        """Tell whether more is done than was asked for."""
        if self.steps:
            return self.done > self.steps
        return (self.epoch, self.place["position"]) > (self.epochs, 0)

    def resume(self, place):
        """Go to a ``place``, and put the random generators where they were there."""
        self.place = place
        write_randomness(place.get("now", place["start"]))

    def advance(self):
        """Count the batch that was yielded last as done."""
        position, done = self.place["position"] + 1, self.done + 1
        self.place = {**self.place, "position": position, "done": done}
        self.place["now"] = read_randomness()

    def __iter__(self):
        while not self.is_over():
            yield from self._epoch()
            if self.is_over():
                return  # after so many steps, amid an epoch
            if self.place["position"] == 0:
                raise ValueError(
                    f"batches gave nothing in epoch {self.epoch + 1}: it is empty, or "
                    "a generator, which can be read once: give a list or a DataLoader"
                )
            self.place = {"epoch": self.epoch + 1, "position": 0, "done": self.done}
            self.place["start"] = self._read_start()

    def _epoch(self):
        """Yield what is left of the epoch."""
        self._write_start(self.place.setdefault("start", self._read_start()))
        if hasattr(self.batches, "set_epoch"):
            self.batches.set_epoch(self.epoch)
        batches = iter(self.batches)
        for _ in range(self.place["position"]):
            next(batches, None)
        if "now" in self.place:
            write_randomness(self.place["now"])
        for batch in batches:
            yield batch
            if self.is_over():
                return

    def _read_start(self):
        """Return what the order of an epoch's batches may depend on."""
        state, generator = read_randomness(), getattr(self.batches, "generator", None)
        if isinstance(generator, torch.Generator):  # a DataLoader's own
            state["batches"] = generator.get_state()
        return state

    def _write_start(self, state):
        write_randomness(state)
        if "batches" in state:
            self.batches.generator.set_state(state["batches"])


def _length(batches):
    try:
        return len(batches)
    except TypeError:  # a generator, or a stream of data
        return None
