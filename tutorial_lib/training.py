"""Training: the loop, a schedule of the learning rate, and a translator's losses.

Nothing here knows a model class or a data set: a loss function connects the two.
"""

import itertools
import math
from collections import namedtuple
from operator import length_hint

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from tutorial_lib.progress_bar import progress_bar
from tutorial_lib.randomness import seeded

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
    max_grad_norm=1.0,
    seed=None,
    after_epoch=None,
    accelerator=None,
):
    """Train ``model`` for so many ``epochs`` or ``steps``, and return the History.

    The mean of ``loss(model, batch)`` is minimized; ``schedule(step)`` is the factor of
    the learning rates. ``seed`` fixes what is random in here, and leaves what comes
    after as it was. The model is left in evaluation mode. An ``accelerator`` of Hugging
    Face's Accelerate has prepared model, optimizer and DataLoader. Raises ValueError
    for no batches, no gradient and another model's optimizer, FloatingPointError before
    a step that would not be finite, and Stopped where somebody interrupts.
    """
    losses, total = [], _total(batches, epochs, steps)
    scheduler = LambdaLR(optimizer, schedule or (lambda step: 1.0))
    backward = accelerator.backward if accelerator else torch.autograd.backward
    clip = accelerator.clip_grad_norm_ if accelerator else nn.utils.clip_grad_norm_
    shown = accelerator is None or accelerator.is_main_process
    with seeded(seed), progress_bar(total, shown=shown) as bar:
        for batch in _epoch_by_epoch(batches, epochs, steps, after_epoch):
            model.train()  # which after_epoch may have evaluated
            mean = _mean(loss(model, batch))  # predict, compare with the truth
            optimizer.zero_grad()
            backward(mean)
            norm = clip(model.parameters(), max_grad_norm)
            _check(optimizer, mean if accelerator else mean + norm)
            optimizer.step()
            scheduler.step()
            losses.append(mean.item())
            bar.set_postfix_str(f"loss {losses[-1]:.3g}", refresh=False)
            bar.update()
    model.eval()
    return History(losses)


def _total(batches, epochs, steps):
    """Return the number of steps, or None if only the batches know it."""
    if not (epochs or steps):
        raise ValueError("say how long to train: give epochs= or steps=")
    return steps or epochs * length_hint(batches) or None


def _epoch_by_epoch(batches, epochs, steps, after_epoch):
    """Yield the batches of each epoch, until the last epoch or step."""
    step = 0
    for epoch in range(epochs) if epochs else itertools.count():
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch)
        before = step
        for batch in batches:
            yield batch
            step += 1
            if step == steps:
                break
        if step == before:
            raise ValueError("batches is empty, or a generator: give a list")
        if after_epoch:
            after_epoch()
        if step == steps:
            break


def _mean(losses):
    if not getattr(losses, "requires_grad", False):
        raise ValueError("the loss has no gradient: leave out .item() and no_grad()")
    return losses.mean()


def _check(optimizer, number):
    """Raise an error where the step would lose the weights, or leave them alone."""
    if not number.isfinite():
        raise FloatingPointError("the loss is not finite: try a smaller learning rate")
    if all(p.grad is None for group in optimizer.param_groups for p in group["params"]):
        raise ValueError("make the optimizer from the parameters of this very model")


def warmup_cosine(warmup, steps):
    """Return a schedule: up in a straight line, then down along half a cosine.

    The factor is 1 / warmup at step 0, 1 at step warmup - 1, and 0 from ``steps`` on.
    Raises ValueError unless 0 <= warmup < steps. Loshchilov and Hutter (2017),
    equation 5, without restarts.
    """
    if not 0 <= warmup < steps:
        raise ValueError(f"warmup must be less than steps: {warmup} of {steps}")

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
    return nn.functional.cross_entropy(
        logits[valid], targets[valid], label_smoothing=label_smoothing, reduction="none"
    )
