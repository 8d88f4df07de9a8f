"""Training: fit a model to batches of examples, with everything that goes wrong.

``fit`` is the loop: predict, loss, zero, backward, step. Around it stand, each in a
file of its own, the ``history`` that it returns, the ``course`` through the batches,
the ``run`` that can be stopped and resumed, its ``checkpoints``, the ``randomness``
that belongs to them, and the ``engines``: one process, or several under
``accelerate launch``.

Nothing here knows a model class or a data set: a loss function connects the two.
"""

from tutorial_lib.training.fitting import fit
from tutorial_lib.training.history import History
from tutorial_lib.training.losses import token_losses
from tutorial_lib.training.schedules import warmup_cosine

__all__ = ["History", "fit", "token_losses", "warmup_cosine"]
