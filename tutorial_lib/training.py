"""Training: fit a model to batches of examples.

This module knows no model class and no data set: a loss function connects the two.
"""

import math

import torch
import torch.nn.functional as F

from tutorial_lib.history import History
from tutorial_lib.nests import map_nest
from tutorial_lib.progress import progress_bar


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
    device=None,
    seed=None,
    checkpoint=None,
    save_every=None,
    progress=True,
):
    """Train ``model`` on ``batches`` and return the History (being completed)."""
    if seed is not None:
        torch.manual_seed(seed)
    device = next(model.parameters()).device if device is None else device
    model.to(device).train()
    bases = [group["lr"] for group in optimizer.param_groups]
    history = History()
    total = steps if steps is not None else epochs * len(batches)
    try:
        with progress_bar(total, shown=progress) as bar:
            for epoch, batch in _endless(batches):
                factor = schedule(len(history.steps)) if schedule else 1.0
                for group, base in zip(optimizer.param_groups, bases, strict=True):
                    group["lr"] = base * factor
                mean = loss(model, map_nest(lambda t: t.to(device), batch)).mean()
                optimizer.zero_grad()
                mean.backward()
                norm = torch.nn.utils.clip_grad_norm_(
                    model.parameters(), math.inf if clip is None else clip
                )
                optimizer.step()
                history.append(
                    epoch=epoch + 1,
                    loss=mean.item(),
                    learning_rate=bases[0] * factor,
                    gradient_norm=norm.item(),
                )
                bar.set_postfix_str(f"loss {mean.item():.3f}", refresh=False)
                bar.update()
                if len(history.steps) == total:
                    break
    except KeyboardInterrupt:
        history.interrupted = True
    for group, base in zip(optimizer.param_groups, bases, strict=True):
        group["lr"] = base
    model.eval()
    return history


def _endless(batches):
    epoch = 0
    while True:
        if hasattr(batches, "set_epoch"):
            batches.set_epoch(epoch)
        for batch in batches:
            yield epoch, batch
        epoch += 1


def token_losses(model, batch, *, smoothing=0.0):
    """Return the cross-entropy of every target token but padding, (tokens,).

    ``batch`` has source (batch, token), source_lengths (batch,) and target
    (batch, token) with target_lengths (batch,), which count <bos> and <eos>. Each
    target token but the first is predicted from the source and the target tokens
    before it, which is teacher forcing. ``smoothing`` spreads that much of the
    probability evenly over the vocabulary: Szegedy et al. (2016), section 7.
    """
    logits = model(batch.source, batch.source_lengths, batch.target[:, :-1])
    targets = batch.target[:, 1:]  # (batch, token)
    lengths = (batch.target_lengths - 1).unsqueeze(1)  # (batch, 1)
    spoken = torch.arange(targets.shape[1], device=targets.device) < lengths
    return F.cross_entropy(
        logits[spoken], targets[spoken], label_smoothing=smoothing, reduction="none"
    )


def warmup_cosine(warmup, steps):
    """Return a schedule: up in a straight line, then down along half a cosine.

    The factor of the learning rate is 1 / warmup at step 0, 1 at step warmup - 1,
    and falls to 0 at ``steps``, where it stays. Loshchilov and Hutter (2017),
    equation 5, without restarts. Raises ValueError unless 0 <= warmup < steps.
    """
    if not 0 <= warmup < steps:
        raise ValueError(
            f"warmup must be at least 0 and less than steps, got {warmup} and {steps}"
        )

    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        progress = min((step - warmup) / (steps - warmup), 1)
        return (1 + math.cos(math.pi * progress)) / 2

    return factor
