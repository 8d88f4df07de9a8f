"""Training: the loop, a schedule of the learning rate, and a translator's losses.

Nothing here knows a model class or a data set: a loss function connects the two.
"""

import math
from collections import namedtuple
from functools import partial
from itertools import islice
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
    progress=True,
):
    """Train ``model`` for so many ``epochs`` or ``steps``, and return the History.

    The mean of ``loss(model, batch)`` is made smaller; ``schedule(step)`` is the factor
    of the learning rates. ``seed`` fixes what is random in here, and leaves what comes
    after as it was. The model is left in evaluation mode. An ``accelerator`` of Hugging
    Face's Accelerate has prepared model, optimizer and DataLoader. Raises ValueError,
    and FloatingPointError before a step that would not be finite.
    """
    losses, total = [], steps or epochs * length_hint(batches) or None
    scheduler = LambdaLR(optimizer, schedule or (lambda step: 1.0))
    step = partial(_step, model, loss, optimizer, scheduler, max_grad_norm, accelerator)
    shown = progress and (accelerator is None or accelerator.is_main_process)
    try:
        with seeded(seed), progress_bar(total, shown=shown) as bar:
            for epoch in range(epochs or steps):
                if hasattr(batches, "set_epoch"):
                    batches.set_epoch(epoch)
                before = len(losses)
                for batch in islice(batches, steps and steps - before):
                    losses.append(step(batch))
                    bar.set_postfix_str(f"loss {losses[-1]:.3g}", refresh=False)
                    bar.update()
                if len(losses) == before:
                    raise ValueError("batches is empty, or a generator: give a list")
                if after_epoch:
                    after_epoch()
                if len(losses) == steps:
                    break
    except KeyboardInterrupt:
        print(f"Stopped after step {len(losses)} of {total or '?'}; run the cell again")
        raise
    model.eval()
    return History(losses)


def _step(model, loss, optimizer, scheduler, max_grad_norm, accelerator, batch):
    """Take one step, and return the mean loss before it."""
    model.train()
    losses = loss(model, batch)  # predict, and compare with the truth
    if not getattr(losses, "requires_grad", False):
        raise ValueError("the loss has no gradient: leave out .item() and no_grad()")
    mean = losses.mean()
    optimizer.zero_grad()
    backward = accelerator.backward if accelerator else torch.Tensor.backward
    backward(mean)
    norm = (accelerator or nn.utils).clip_grad_norm_(model.parameters(), max_grad_norm)
    if not (mean.isfinite() and (accelerator or norm.isfinite())):
        raise FloatingPointError("the loss is not finite: try a smaller learning rate")
    if all(p.grad is None for group in optimizer.param_groups for p in group["params"]):
        raise ValueError("make the optimizer from the parameters of this very model")
    optimizer.step()
    scheduler.step()
    return mean.item()


def warmup_cosine(warmup, steps):
    """Return a schedule: up in a straight line, then down along half a cosine.

    The factor is 1 / warmup at step 0, 1 at step warmup - 1, and 0 from ``steps`` on.
    Loshchilov and Hutter (2017), equation 5, without restarts.
    """

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
