"""What a step is given: the student's answer, called safely and looked at closely.

Every method either returns quietly or raises `Wrong` with a message that helps. A
probe does not know how results are counted or shown.
"""

import torch
from torch import nn

from .calling import copied, identical, run, with_weights
from .compare import Comparison, alike, describe, shape_difference
from .exercise import Wrong


class Probe:
    """The answer to one exercise, for the length of one step.

    A probe is called like the answer itself (`probe(scores, mask)`, and `probe()` for
    a value). Before it says anything else, it says which known wrong answer it got.
    """

    def __init__(self, exercise, answer, printed):
        self.exercise, self.answer, self.printed = exercise, answer, printed
        self.module = self.reference = None
        self.output = self._sizes = self._arguments = None

    def build(self, *args, **kwargs):
        """Build the student's module with the oracle's weights; return it.

        The oracle's class is built with the same arguments; from then on the probe
        calls the module. Raises Wrong("parameters") where names or shapes differ.
        """
        self._sizes = args, kwargs
        self.reference = self.exercise.oracle(*args, **kwargs).eval()
        module = self._run(self.answer, args, kwargs)
        if not isinstance(module, nn.Module):
            message = f"Expected a subclass of nn.Module, got {describe(module)}."
            raise Wrong("type", message)
        self.module = with_weights(module, self.reference)
        return module

    def __call__(self, *args, **kwargs):
        """Call the answer and return what it returned, whole."""
        kept = copied((args, kwargs))
        self._arguments = kept
        if self.exercise.is_value:
            self.output = self.answer
            return self.output
        target = self.answer if self.module is None else self.module
        self.output = self._run(target, args, kwargs)
        if self.output is None:
            message = "Your code returned None. Is there a `return` at the end?"
            raise Wrong("no-return", message)
        if not identical(kept, (args, kwargs)):
            self._fail(
                "in-place",
                "Your code changed one of its inputs in place (`masked_fill_`, "
                "`x += …`, `x[m] = …`). Work on a copy: the caller needs the original.",
            )
        self._expect_parts()
        return self.output

    def same(self, expected=None, *, output=None, tolerance=None):
        """Expect `output` (else the last one) to equal `expected` (else the oracle)."""
        output = self.output if output is None else output
        expected = self._oracle() if expected is None else expected
        tolerance = self.exercise.tolerance if tolerance is None else tolerance
        for part, got, right, axes in self._parts(output, expected):
            comparison = Comparison(tolerance, axes, not self.exercise.is_value)
            found = comparison.difference(got, right)
            if found:
                self._fail(found[0], part + found[1])

    def shape(self, tensor, **axes):
        """Expect a tensor whose axes are these, in this order: `query=3, key=4`."""
        part = self._part_of(tensor)
        if not torch.is_tensor(tensor):
            message = f"{part}Expected a torch.Tensor, got {describe(tensor)}."
            self._fail("type", message)
        found = shape_difference(tensor, axes.values(), tuple(axes))
        if found:
            self._fail(found[0], part + found[1])

    def sums_to_one(self, weights, axis=-1):
        """Expect non-negative weights whose sum along the axis is 1."""
        sums = weights.sum(axis)
        if weights.isnan().any():
            self._fail(
                "nan",
                "Your weights contain NaN: exp() of a large score overflows. Subtract "
                "the row's maximum first, or use `torch.softmax`.",
            )
        if alike(sums, torch.ones_like(sums), 1e-4) and (weights >= 0).all():
            return
        if (weights < 0).any():
            message = f"A weight is negative: the smallest is {weights.min():.4f}."
            self._fail("negative", message)
        columns = weights.sum(axis - 1) if weights.ndim > 1 else sums
        if alike(columns, torch.ones_like(columns), 1e-4):
            self._fail(
                "wrong-axis",
                "Each COLUMN of your weights sums to 1, but each ROW should: every "
                "query shares its attention out over the keys. Look at `dim=`.",
            )
        self._fail(
            "row-sum",
            "The rows of your weights do not sum to 1: they sum to "
            f"{sums.min():.3f} … {sums.max():.3f}.",
        )

    def gradients(self, *tensors, output=None):
        """Expect finite gradients of the output's sum for these tensors; return them.

        The tensors must have been given to the answer with `requires_grad`.
        """
        output = self.output if output is None else output
        found = [None]
        if output.requires_grad:
            total = output.sum()
            found = torch.autograd.grad(
                total, tensors, allow_unused=True, retain_graph=True
            )
        if any(gradient is None for gradient in found):
            self._fail(
                "no-gradient",
                "No gradient reaches one of the inputs: a `.detach()`, `.item()`, "
                "`.tolist()`, `torch.tensor(…)` or `torch.no_grad()` cuts the graph, "
                "so nothing before this step could learn.",
            )
        if not all(gradient.isfinite().all() for gradient in found):
            message = "A gradient is infinite or NaN, so training would break here."
            self._fail("bad-gradient", message)
        return found

    def require(self, condition, code, message):
        """Expect a condition of your own."""
        if not condition:
            self._fail(code, message)

    def close(self, first, second, tolerance=1e-5):
        """Whether two values agree (never fails: for use with `require`)."""
        return alike(first, second, tolerance)

    def unusable(self, error):
        """Return the diagnosis for an output that a step could not work with."""
        got = f"your code returned {describe(self.output)}, and the check failed on it"
        return Wrong("unusable", f"{got} with {type(error).__name__}: {error}")

    def _run(self, function, args, kwargs):
        return run(
            function,
            args,
            kwargs,
            answer=self.answer,
            seconds=self.exercise.seconds,
            printed=self.printed,
        )

    def _oracle(self):
        args, kwargs = copied(self._arguments)
        oracle = self.exercise.oracle if self.module is None else self.reference
        return oracle(*args, **kwargs)

    def _fail(self, code, message):
        """Raise the known mistake the last output shows, else what was found."""
        known = self._known_mistake()
        raise Wrong(known.code, known.message) if known else Wrong(code, message)

    def _known_mistake(self):
        if self._agrees(self._oracle):
            return None  # whatever is wrong, it is not the last output
        for known in self.exercise.misconceptions:
            if self._agrees(lambda known=known: self._mistaken(known.answer)):
                return known
        return None

    def _mistaken(self, wrong_answer):
        args, kwargs = copied(self._arguments)
        if self.module is not None:
            sizes, named = self._sizes
            wrong_answer = with_weights(wrong_answer(*sizes, **named), self.reference)
        return wrong_answer(*args, **kwargs)

    def _agrees(self, other):
        try:
            return alike(self.output, other(), self.exercise.tolerance)
        except Exception:  # a wrong answer may fail where the student's does not
            return False

    def _expect_parts(self):
        parts = self.exercise.returns
        if not isinstance(parts, dict):
            return
        if not isinstance(self.output, (tuple, list)) or len(self.output) != len(parts):
            wanted = f"return {', '.join(parts)}"
            message = f"Expected `{wanted}`, got {describe(self.output)}."
            self._fail("parts", message)

    def _parts(self, output, expected):
        """Yield (prefix for messages, got, expected, names of axes) for each part."""
        returns = self.exercise.returns
        if isinstance(returns, dict) and isinstance(expected, (tuple, list)):
            for name, got, right in zip(returns, output, expected, strict=True):
                yield f"{name}: ", got, right, tuple(returns[name].split())
        else:
            axes = "" if isinstance(returns, dict) else returns
            yield self._part_of(output), output, expected, tuple(axes.split())

    def _part_of(self, tensor):
        if isinstance(self.exercise.returns, dict):
            for name, part in zip(self.exercise.returns, self.output, strict=True):
                if part is tensor:
                    return f"{name}: "
        return ""
