"""Losses: how wrong a model is about each thing that it predicts.

This module knows what a batch of translations looks like, and no model.
"""

import torch
import torch.nn.functional as F


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
