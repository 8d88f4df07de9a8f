"""Training: the loop, a schedule of the learning rate, and a translator's losses.

`fit` is the loop that the chapters write out, with a bar of progress. It runs in one
process and in the model's own precision. To train on several devices or in half
precision, write the loop out and let Hugging Face's Accelerate prepare the model, the
optimizer and the batches, with ``accelerator.backward(loss)`` for ``loss.backward()``;
or put the loss into the ``training_step`` of a LightningModule.
"""

import itertools
import math
from collections import namedtuple
from operator import length_hint

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from tutorial_lib.notebook import progress_bar
from tutorial_lib.randomness import seeded
from tutorial_lib.sizes import check_counts

MAX_GRAD_NORM = 1.0
History = namedtuple("History", "losses")  # one a step: the mean over its batch


def fit(
    model,
    batches,
    loss,
    *,
    optimizer,
    epochs=None,
    steps=None,
    schedule=None,
    seed=None,
):
    """Train ``model`` for so many ``epochs`` or ``steps``, and return the History.

    The mean of ``loss(model, batch)`` is minimized, with gradients clipped to a norm of
    1. ``schedule(step)`` is the factor of the learning rates. ``seed`` fixes what is
    random in here, and leaves what comes after as it was. ``batches`` are told the
    number of each epoch, if they have ``set_epoch``. The model is left in evaluation
    mode. Raises ValueError for no batches, no gradient and another model's optimizer,
    FloatingPointError before a step that would not be finite, and Stopped where
    somebody interrupts.
    """
    lengths = [number for number in (epochs, steps) if number is not None]
    if not lengths or min(lengths) < 1:
        raise ValueError("say how long to train: epochs= or steps=, at least 1")
    check_counts(epochs=epochs, steps=steps)
    total = steps or epochs * length_hint(batches) or None
    scheduler = LambdaLR(optimizer, schedule or (lambda step: 1.0))
    losses = []
    model.train()
    with seeded(seed), progress_bar(total) as bar:
        for batch in _epoch_by_epoch(batches, epochs, steps):
            mean = _mean(loss(model, batch))
            optimizer.zero_grad()
            mean.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
            _check_gradient(optimizer, norm)
            optimizer.step()
            scheduler.step()
            losses.append(mean.item())
            bar.set_postfix_str(f"loss {losses[-1]:.3g}", refresh=False)
            bar.update()
    model.eval()
    return History(losses)


def _epoch_by_epoch(batches, epochs, steps):
    """Yield the batches of each epoch, until the last epoch or step."""
    step = 0
    for epoch in range(epochs) if epochs else itertools.count():
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch)
        first_step = step
        for batch in batches:
            yield batch
            step += 1
            if step == steps:
                return
        if step == first_step:
            raise ValueError("batches is empty, or a generator: give a list")


def _mean(losses):
    if not getattr(losses, "requires_grad", False):
        raise ValueError("the loss has no gradient: leave out .item() and no_grad()")
    mean = losses.mean()
    if not mean.isfinite():
        raise FloatingPointError("the loss is not finite: try a smaller learning rate")
    return mean


def _check_gradient(optimizer, norm):
    """Raise an error where the step would lose the weights, or leave them alone."""
    if not norm.isfinite():
        raise FloatingPointError(
            "the gradient is not finite: try a smaller learning rate"
        )
    for group in optimizer.param_groups:
        if any(parameter.grad is not None for parameter in group["params"]):
            return
    raise ValueError("make the optimizer from the parameters of this very model")


def warmup_cosine(warmup, steps):
    """Return a schedule: up in a straight line, then down along half a cosine.

    The factor is 1 / warmup at step 0, 1 at step warmup - 1, and 0 from ``steps`` on.
    Raises ValueError unless 0 <= warmup < steps. Loshchilov and Hutter (2017),
    equation 5, without restarts.
    """
    if not 0 <= warmup < steps:
        raise ValueError(f"warmup must be from 0 to below steps: {warmup} of {steps}")

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        progress = min((step - warmup) / (steps - warmup), 1)
        return (1 + math.cos(math.pi * progress)) / 2

    return factor


def token_losses(model, batch, *, label_smoothing=0.0):
    """Return the cross-entropy of every target token but padding: (tokens,), in nats.

    Each is predicted from the source and the true tokens before it: teacher forcing,
    Williams and Zipser (1989). ``label_smoothing``: Szegedy et al. (2016), section 7.
    """
    logits = model(batch.source, batch.source_lengths, batch.target[:, :-1])
    targets = batch.target[:, 1:]  # (batch, token)
    lengths = (batch.target_lengths - 1).unsqueeze(1)  # (batch, 1)
    valid = torch.arange(targets.shape[1], device=targets.device) < lengths
    return F.cross_entropy(
        logits[valid], targets[valid], label_smoothing=label_smoothing, reduction="none"
    )
