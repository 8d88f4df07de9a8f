"""Training: fit a model to batches of examples, with a loop that one can read.

Several processes, other precisions and a run's files are those of Hugging Face's
Accelerate, whose ``Accelerator`` is passed in; without one, torch is all there is.

Nothing here knows a model class or a data set: a loss function connects the two.
"""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from operator import length_hint

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.data import DataLoader

from tutorial_lib.progress_bar import progress_bar
from tutorial_lib.randomness import seeded


def fit(
    model,
    batches,
    loss,
    *,
    optimizer,
    epochs=None,
    steps=None,
    schedule=None,
    clip=1.0,
    seed=None,
    history=None,
    after_epoch=None,
    accelerator=None,
    progress=True,
):
    """Train ``model`` for so many ``epochs`` or ``steps``, and return the History.

    ``batches`` is any iterable of tensors, or of tuples, lists and dictionaries of
    them, and is read once an epoch, after ``batches.set_epoch(epoch)`` if it has that.
    ``loss(model, batch)`` returns a tensor of losses, one for each thing that is
    predicted, whose mean is made smaller by ``optimizer``. ``schedule(step)`` is the
    factor of its learning rates at a step, from 0; ``clip`` is the largest norm of the
    gradient, None for any. ``seed`` fixes what is random in here, and leaves what comes
    after as it was. Ctrl-C ends the run early, with model and history kept. Raises
    ValueError if something does not fit together, and FloatingPointError, before the
    step, if a number is not finite. The model is left in evaluation mode.

    A ``history`` is gone on with, without seeding again. ``after_epoch()`` is called
    after every epoch, and at the end. So a run is kept in a folder, and a script that
    was stopped comes to the history and weights of one that was not, if it is the same
    script: nothing is compared, a damaged file is believed, and the generator of a
    sampler's own is not kept::

        accelerator, history = Accelerator(), History()
        model, optimizer = accelerator.prepare(model, optimizer)
        accelerator.register_for_checkpointing(history)
        if os.path.exists("run"):
            accelerator.load_state("run")
        fit(model, batches, loss, optimizer=optimizer, epochs=10, history=history,
            after_epoch=lambda: accelerator.save_state("run"), accelerator=accelerator)

    An ``accelerator`` has prepared model and optimizer. Its processes must be given the
    same batches: they share the rows of each, every so many, and take the step that one
    process would take with them all. A torch ``DataLoader`` must be prepared as well.
    """
    _check(model, optimizer, batches, epochs, steps, clip, accelerator)
    history = History() if history is None else history
    accelerator = _Alone(model) if accelerator is None else accelerator
    with seeded(None if history.steps else seed):
        weights, limits = list(model.parameters()), (epochs, steps)
        course = _walk(model, batches, history, limits, after_epoch, accelerator)
        total = steps or epochs * length_hint(batches) or None
        with _running(model, history, total, accelerator, progress) as bar:
            for epoch, batch in course:
                factor = schedule(len(history.steps)) if schedule else 1.0
                losses = loss(model, batch)  # predict, and compare with the truth
                mean, number = _mean(losses, accelerator)
                optimizer.zero_grad()
                accelerator.backward(mean)
                norm = accelerator.clip_grad_norm_(weights, clip or math.inf).item()
                _check_finite(history, number, norm, accelerator)
                with _times(factor, optimizer.param_groups) as rate:
                    optimizer.step()
                history.append(epoch, number, rate, norm)
                bar.set_postfix_str(f"loss {number:.3g}", refresh=False)
                bar.update()
    return history


@dataclass
class History:
    """The steps of a training run, as lists of the same length.

    ``steps`` and ``epochs`` count from 1; ``losses`` are means over a batch, before
    the step; ``learning_rates`` are those of the optimizer's first group;
    ``gradient_norms`` are taken before clipping. ``whole_epochs`` came to their end,
    and ``interrupted`` says whether Ctrl-C ended the run early.
    """

    steps: list = field(default_factory=list)
    epochs: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    learning_rates: list = field(default_factory=list)
    gradient_norms: list = field(default_factory=list)
    whole_epochs: int = 0
    interrupted: bool = False

    def append(self, epoch, loss, learning_rate, gradient_norm):
        """Add one step."""
        self.steps.append(len(self.steps) + 1)
        self.epochs.append(epoch)
        self.losses.append(loss)
        self.learning_rates.append(learning_rate)
        self.gradient_norms.append(gradient_norm)

    def state_dict(self):
        """Return a copy of all this, as Accelerate saves it."""
        return copy.deepcopy(vars(self))

    def load_state_dict(self, state):
        """Become the history whose ``state_dict`` it was."""
        vars(self).update(copy.deepcopy(state))


def warmup_cosine(warmup, steps):
    """Return a schedule: up in a straight line, then down along half a cosine.

    The factor is 1 / warmup at step 0 and 1 at step warmup - 1; it falls to 0 at
    ``steps``, where it stays. Raises ValueError unless both are whole numbers and
    0 <= warmup < steps. Loshchilov and Hutter (2017), equation 5, without restarts.
    """
    whole = isinstance(warmup, int) and isinstance(steps, int)
    if not (whole and 0 <= warmup < steps):
        raise ValueError(
            "warmup and steps must be whole numbers, the first at least 0 and less "
            f"than the second, got {warmup} and {steps}"
        )

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        progress = min((step - warmup) / (steps - warmup), 1)
        return (1 + math.cos(math.pi * progress)) / 2

    return factor


def token_losses(model, batch, *, smoothing=0.0):
    """Return the cross-entropy of every target token but padding: (tokens,), in nats.

    ``batch`` has source (batch, token), source_lengths (batch,), target (batch, token)
    and target_lengths (batch,), which count <bos> and <eos>. Each target token but
    <bos> is predicted from the source and the target tokens before it: teacher
    forcing, Williams and Zipser (1989). ``smoothing`` is the share of the probability
    that the truth gives to the whole vocabulary: Szegedy et al. (2016), section 7.
    """
    logits = model(batch.source, batch.source_lengths, batch.target[:, :-1])
    targets = batch.target[:, 1:]  # (batch, token)
    lengths = (batch.target_lengths - 1).unsqueeze(1)  # (batch, 1)
    spoken = torch.arange(targets.shape[1], device=targets.device) < lengths
    return F.cross_entropy(
        logits[spoken], targets[spoken], label_smoothing=smoothing, reduction="none"
    )


class _Alone:
    """What ``fit`` asks of an ``Accelerator``, in torch's words, where the model is."""

    process_index, num_processes, is_main_process, scaler = 0, 1, True, None
    backward = staticmethod(torch.Tensor.backward)
    clip_grad_norm_ = staticmethod(torch.nn.utils.clip_grad_norm_)
    reduce = staticmethod(lambda tensor, _: tensor)

    def __init__(self, model):
        self.device = next(model.parameters()).device


def _walk(model, batches, history, limits, after_epoch, accelerator):
    """Yield (epoch, batch), beginning where the history ends."""
    epochs, steps = limits
    while len(history.steps) < steps if steps else history.whole_epochs < epochs:
        epoch = history.whole_epochs + 1
        model.train()  # which ``after_epoch`` may have evaluated
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch - 1)
        for batch in islice(batches, history.epochs.count(epoch), None):
            yield epoch, _share(batch, batches, accelerator)
            if len(history.steps) == steps:
                break
        else:
            if epoch not in history.epochs[-1:]:
                raise ValueError(
                    f"batches gave nothing in epoch {epoch}: it is empty, or a "
                    "generator, which can be read once: give a list or a DataLoader"
                )
            history.whole_epochs = epoch
        if after_epoch:
            after_epoch()


def _share(batch, batches, accelerator):
    """Bring this process's rows of a batch to its device: every so many of them."""
    first, processes = accelerator.process_index, accelerator.num_processes
    if processes == 1 or isinstance(batches, DataLoader):  # which Accelerate has shared
        return tree_map_only(torch.Tensor, lambda x: x.to(accelerator.device), batch)
    lengths = {len(x) for x in tree_leaves(batch) if isinstance(x, torch.Tensor)}
    if len(lengths) != 1:
        raise ValueError(f"tensors of a batch must have as many rows, got {lengths}")
    rows = slice(first % lengths.pop(), None, processes)  # one at least
    return tree_map_only(torch.Tensor, lambda x: x[rows].to(accelerator.device), batch)


def _mean(losses, accelerator):
    """Return this process's part of the mean over all of them, and that as a number."""
    if not isinstance(losses, torch.Tensor) or not losses.requires_grad:
        raise ValueError(
            "loss must return a tensor of losses with a gradient, without .item() and "
            f"torch.no_grad(): got {type(losses).__name__} without gradient"
        )
    count = torch.tensor(losses.numel(), device=losses.device)
    share = count * accelerator.num_processes / accelerator.reduce(count, "sum")
    mean = losses.mean() * share  # for gradients are averaged over the processes
    return mean, accelerator.reduce(mean.detach(), "mean").item()


@contextmanager
def _times(factor, groups):
    """Multiply the learning rates within a ``with`` block, and give it the first."""
    rates = [group["lr"] for group in groups]
    try:
        for group in groups:
            group["lr"] *= factor
        yield groups[0]["lr"]
    finally:
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate


@contextmanager
def _running(model, history, total, accelerator, progress):
    """Show a bar during a ``with`` block, and leave all in order however it ends."""
    shown, history.interrupted = progress and accelerator.is_main_process, False
    try:
        with progress_bar(total, done=len(history.steps), shown=shown) as bar:
            yield bar
    except KeyboardInterrupt:
        history.interrupted = True
        if accelerator.is_main_process:
            done = f"Stopped after step {len(history.steps)} of {total or '?'}: "
            done += "model and history are kept, and fit goes on from these weights."
            print(done)
    finally:
        model.eval()


def _check(model, optimizer, batches, epochs, steps, clip, accelerator):
    """Raise ValueError unless all this fits together."""
    limit = steps if epochs is None else epochs
    if None not in (epochs, steps) or not (isinstance(limit, int) and limit > 0):
        raise ValueError(
            f"give epochs or steps, as a positive whole number: got {epochs=}, {steps=}"
        )
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be a positive number or None, got {clip}")
    if accelerator is not None:
        _check_prepared(optimizer, batches, accelerator)
    if isinstance(batches, Iterator) and epochs not in (None, 1):
        raise ValueError(
            f"a generator can be read once and not in {epochs} epochs: give a list or "
            "a DataLoader, or steps instead of epochs"
        )
    held = {id(x) for group in optimizer.param_groups for x in group["params"]}
    if not any(x.requires_grad and id(x) in held for x in model.parameters()):
        raise ValueError(
            f"the optimizer holds no parameter of this {type(model).__name__} that "
            "requires a gradient: make it from model.parameters() of this very model"
        )


def _check_prepared(optimizer, batches, accelerator):
    """Raise ValueError unless the accelerator has prepared what it has to."""
    alone = accelerator.num_processes == 1 or not isinstance(batches, DataLoader)
    ready = hasattr(optimizer, "step_was_skipped")
    if not ready or not (alone or hasattr(batches, "end_of_dataloader")):
        raise ValueError(
            "accelerator.prepare(…) first what it trains with: model, optimizer, and a "
            "DataLoader that several processes share"
        )
    if accelerator.gradient_accumulation_steps != 1:
        raise ValueError("fit steps at every batch: gradient_accumulation_steps=1")


def _check_finite(history, loss, norm, accelerator):
    """Raise an error unless both are finite; a gradient that is scaled may overflow."""
    if not (math.isfinite(loss) and (accelerator.scaler or math.isfinite(norm))):
        raise FloatingPointError(
            f"step {len(history.steps) + 1} has loss {loss} and gradient norm {norm}: "
            "it is not taken. Try a smaller learning rate, a warm-up, or look for a "
            "division by 0 in the loss"
        )
