"""What a step is given: the student's answer, called safely and looked at closely.

Every method returns quietly or raises `Wrong` with a message that helps. A probe does
not know how results are counted or shown.
"""

import torch

from .compare import Comparison, alike, describe, shape_difference
from .exercise import Wrong
from .trial import Trial


class Probe(Trial):
    """An answer on trial, and what may be expected of its outputs.

    Whatever is found wrong, a known mistake that the last output shows is named first.
    """

    def same(self, expected=None, *, output=None, tolerance=None):
        """Expect `output` (else the last one) to equal `expected` (else the oracle)."""
        output = self.output if output is None else output
        expected = self.oracle() if expected is None else expected
        tolerance = self.exercise.tolerance if tolerance is None else tolerance
        for name, got, right in self._pairs(output, expected):
            axes = self._axes(name)
            comparison = Comparison(tolerance, axes, not self.exercise.is_value)
            self._report(name, comparison.difference(got, right))

    def shape(self, tensor, **axes):
        """Expect a tensor whose axes are these, in this order: `query=3, key=4`."""
        name = self._name(tensor)
        if torch.is_tensor(tensor):
            found = shape_difference(tensor, axes.values(), tuple(axes))
        else:
            found = "type", f"Expected a torch.Tensor, got {describe(tensor)}."
        self._report(name, found)

    def sums_to_one(self, weights, axis=-1):
        """Expect weights that are not negative and sum to 1 along the axis."""
        sums = weights.sum(axis)
        if weights.isnan().any():
            self.fail(
                "nan",
                "Your weights contain NaN. Does exp() of a large score overflow, or a "
                "row divide 0 by 0? `torch.softmax` takes care of the first.",
            )
        if (weights < 0).any():
            message = f"A weight is negative: the smallest is {weights.min():.4f}."
            self.fail("negative", message)
        if _ones(sums):
            return
        if weights.ndim > 1 and _ones(weights.sum(axis - 1)):
            self.fail(
                "wrong-axis",
                "Each COLUMN of your weights sums to 1, but each ROW should: every "
                "query shares its attention out over the keys. Look at `dim=`.",
            )
        self.fail(
            "row-sum",
            "The rows of your weights do not sum to 1: they sum to "
            f"{sums.min():.3f} … {sums.max():.3f}.",
        )

    def gradients(self, *tensors, output=None):
        """Expect finite gradients of the output's sum for these tensors; return them.

        The tensors are inputs of the last call with `requires_grad`, or parameters.
        """
        found = self._gradients(self.output if output is None else output, tensors)
        if any(gradient is None for gradient in found):
            self.fail(
                "no-gradient",
                "No gradient reaches one of the inputs: a `.detach()`, `.item()`, "
                "`.tolist()`, `torch.tensor(…)` or `torch.no_grad()` cuts the graph, "
                "so nothing before this step could learn.",
            )
        if not all(gradient.isfinite().all() for gradient in found):
            message = "A gradient is infinite or NaN, so training would break here."
            self.fail("bad-gradient", message)
        return found

    def require(self, condition, code, message):
        """Expect a condition of your own."""
        if not condition:
            self.fail(code, message)

    def close(self, first, second, tolerance=1e-5):
        """Whether two values agree (never fails: for use with `require`)."""
        return alike(first, second, tolerance)

    def _gradients(self, output, tensors):
        try:
            return _gradients(output, tensors)
        except RuntimeError as error:
            if "inplace" not in str(error):
                raise
        return self.fail(
            "overwritten",
            "You overwrite numbers in place (`x[i] = …`, `fill_diagonal_`) that the "
            "slopes still need. Make a new tensor: `torch.where`, `masked_fill`, a "
            "product.",
        )

    def verdict(self, *args):
        """Call the answer, which is itself a test, and return its True or False."""
        try:
            found = self(*args)
        except Wrong as wrong:
            if "raised AssertionError" not in wrong.message:
                raise
            message = (
                "An `assert` in your test fails, which ends it. Return the verdict "
                "instead: True where something is wrong, else False."
            )
            raise Wrong("asserts", message) from None
        self.require(found in (True, False), "type", "Return True or False.")
        return bool(found)

    def _report(self, name, found):
        if found:
            code, sentence = found
            self.fail(code, f"{name}: {sentence}" if name else sentence)

    def _pairs(self, output, expected):
        """Yield (name of the part, got, expected), for one part or for each."""
        parts = self.exercise.returns
        if isinstance(parts, dict) and isinstance(expected, (tuple, list)):
            yield from zip(parts, output, expected, strict=True)
        else:
            yield self._name(output), output, expected

    def _name(self, output):
        """Return the name of the returned part that this is, or ""."""
        parts = self.exercise.returns
        if not isinstance(parts, dict) or output is self.output:
            return ""
        names = zip(parts, self.output, strict=True)
        return next((name for name, part in names if part is output), "")

    def _axes(self, name):
        parts = self.exercise.returns
        axes = parts.get(name, "") if isinstance(parts, dict) else parts
        return tuple(axes.split())


def _ones(sums):
    return alike(sums, torch.ones_like(sums), 1e-4)


def _gradients(output, tensors):
    if not output.requires_grad:
        return [None]
    total = output.sum()
    return torch.autograd.grad(total, tensors, allow_unused=True, retain_graph=True)
