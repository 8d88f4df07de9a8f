"""Fitting: the training loop.

This module knows no model class and no data set: a loss function connects the two.
"""

import math

import torch

from tutorial_lib.training.course import Course
from tutorial_lib.training.engines import start_engine
from tutorial_lib.training.randomness import seeded
from tutorial_lib.training.run import Run


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
    """Train ``model`` for so many ``epochs`` or ``steps``, and return the History.

    ``batches`` is any iterable of tensors, or of tuples, lists and dictionaries of
    them, and is iterated once an epoch, after ``batches.set_epoch(epoch)`` if it has
    that. ``loss(model, batch)`` returns a tensor of losses, one for each thing that is
    predicted, whose mean is made smaller by ``optimizer``. ``schedule(step)`` is the
    factor of its learning rates at a step, from 0; ``clip`` is the largest norm of the
    gradient, None for any.

    ``device`` is where to train, None for where the model is. ``seed`` fixes what is
    random in here, and leaves what comes after as it was. Ctrl-C ends the run early,
    between two steps, with model and history kept. ``checkpoint`` names a file that
    keeps the run after every epoch, or after every ``save_every`` steps, and when it
    ends in any way: the same call then goes on from there, and comes to the same
    history and weights as if never stopped. ``progress`` shows a bar.

    The model is trained in training mode and left in evaluation mode; learning rates
    are left as they were. Under ``accelerate launch`` the processes share each batch,
    row by row, and come to the losses that one process would: every parameter must
    then take part in the loss. Raises ValueError if something does not fit together,
    and FloatingPointError, before the step, if loss or gradient are not finite.
    """
    _check(model, optimizer)
    course, engine = Course(batches, epochs=epochs, steps=steps), start_engine(device)
    trained, stepper = engine.prepare(model, optimizer)
    run = Run(model, optimizer, course, engine)
    run.keep_in(checkpoint, every=save_every, settings={"clip": clip, "seed": seed})
    with seeded(seed), run, run.progress_bar(shown=progress) as bar:
        for batch in run.batches():
            run.set_rates(schedule(course.done) if schedule else 1.0)
            with engine.share(batch, course.done) as share:
                losses = loss(trained, share)  # predict, and compare with the truth
            _check_losses(losses)
            optimizer.zero_grad()
            mean = engine.backward(losses)
            norm = engine.clip(trained, clip)
            _check_finite(course.done + 1, mean, norm, scaled=engine.scaled)
            with run.step(loss=mean, gradient_norm=norm):
                stepper.step()
            bar.set_postfix_str(f"loss {mean:.3g}", refresh=False)
            bar.update()
    return run.history


def _check(model, optimizer):
    learned = {id(weight) for weight in model.parameters() if weight.requires_grad}
    if not learned:
        raise ValueError(
            f"{type(model).__name__} has no parameter that requires a gradient: there "
            "is nothing to train"
        )
    held = {
        id(weight) for group in optimizer.param_groups for weight in group["params"]
    }
    if not learned & held:
        raise ValueError(
            f"the optimizer holds no parameter of this {type(model).__name__}: make it "
            "from model.parameters(), again after every new model"
        )


def _check_losses(losses):
    if not isinstance(losses, torch.Tensor):
        raise ValueError(
            f"loss must return a tensor of losses, got {type(losses).__name__}: leave "
            ".item() and the like to fit"
        )
    if not losses.requires_grad:
        raise ValueError(
            "loss returned a tensor without gradient: compute it from what the model "
            "returns, without torch.no_grad() and .detach()"
        )


def _check_finite(step, loss, norm, *, scaled):
    """Raise an error unless loss and norm are finite; a scaled norm may overflow."""
    if not (math.isfinite(loss) and (scaled or math.isfinite(norm))):
        raise FloatingPointError(
            f"step {step} has loss {loss} and gradient norm {norm}, so it is not taken "
            "and the weights are those before it: try a smaller learning rate, a "
            "warm-up, or look for a division by 0 in the loss"
        )
