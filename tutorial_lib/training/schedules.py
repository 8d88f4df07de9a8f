"""Schedules: the factor of the learning rate, as a function of the step.

This module does not know the learning rate itself.
"""

import math


def warmup_cosine(warmup, steps):
    """Return a schedule: up in a straight line, then down along half a cosine.

    The factor is 1 / warmup at step 0 and 1 at step warmup - 1; it falls to 0 at
    ``steps``, where it stays. Raises ValueError unless 0 <= warmup < steps.
    Loshchilov and Hutter (2017), equation 5, without restarts.
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
