"""Try an answer: call it next to the oracle, and name the known mistake it shows.

Does not know what should be true of an output: that is the probe's business.
"""

import numbers

from torch import nn

from .calling import copied, identical, run, with_weights
from .compare import alike, describe
from .exercise import Wrong


class Trial:
    """The answer to one exercise, called as often as one step likes.

    It is called like the answer itself (`trial(scores, mask)`, and `trial()` for a
    value). After a call, `output` is what the answer returned.
    """

    def __init__(self, exercise, answer):
        self.exercise, self.answer = exercise, answer
        self.module = self.reference = self.output = None
        self._sizes = self._arguments = (), {}

    def build(self, *args, **kwargs):
        """Build the student's module with the oracle's weights; return it.

        The oracle's class is built with the same arguments; from then on a call calls
        the module, in eval mode. Raises Wrong("parameters") where the two modules'
        parameters differ in name or shape.
        """
        self._sizes = args, kwargs
        self.reference = self.exercise.oracle(*args, **kwargs).eval()
        module = self._run(self.answer, args, kwargs)
        if not isinstance(module, nn.Module):
            message = f"Expected a subclass of nn.Module, got {describe(module)}."
            raise Wrong("type", message)
        self.module = with_weights(module, self.reference)
        return self.module

    def __call__(self, *args, **kwargs):
        """Call the answer and return all it returned."""
        self._arguments = copied((args, kwargs))
        if self.exercise.is_value:
            self.output = self.answer
            return self.output
        target = self.answer if self.module is None else self.module
        self.output = self._run(target, args, kwargs)
        if self.output is None:
            message = "Your code returned None. Is there a `return` at the end?"
            raise Wrong("no-return", message)
        if not identical(self._arguments, (args, kwargs)):
            self.fail(
                "in-place",
                "Your code changed one of its inputs in place (`masked_fill_`, "
                "`x += …`, `x[m] = …`, `shuffle(x)`). Work on a copy: the caller needs "
                "the original.",
            )
        self._expect_parts()
        return self.output

    def oracle(self):
        """Return what the oracle gives for the arguments of the last call."""
        oracle = self.exercise.oracle if self.module is None else self.reference
        args, kwargs = copied(self._arguments)
        return oracle(*args, **kwargs)

    def fail(self, code, message):
        """Raise Wrong: the known mistake the last output shows, or else this one."""
        known = self._known_mistake()
        raise Wrong(known.code, known.message) if known else Wrong(code, message)

    def unusable(self, error):
        """Return the diagnosis for an output that a step could not work with."""
        return Wrong(
            "unusable",
            f"Your code returned {describe(self.output)}, which the check could not "
            f"work with ({type(error).__name__}: {error}).",
        )

    def _run(self, function, args, kwargs):
        seconds = self.exercise.seconds
        return run(function, args, kwargs, answer=self.answer, seconds=seconds)

    def _known_mistake(self):
        if self._gives_output(self.oracle):
            return None  # whatever is wrong, it is not the last output
        for known in self.exercise.misconceptions:
            if self._gives_output(lambda known=known: self._mistaken(known.answer)):
                return known
        named = self.exercise.misconceptions if _are_named_numbers(self.output) else ()
        return next(filter(self._has_wrong_numbers_of, named), None)

    def _has_wrong_numbers_of(self, known):
        """Whether all that a known mistake gets wrong in a dictionary is here, too."""
        try:
            mistaken, right = self._mistaken(known.answer), self.oracle()
            wrong = [key for key in right if not alike(mistaken[key], right[key])]
            return (
                bool(wrong)
                and self.output.keys() == right.keys()
                and all(
                    alike(self.output[key], mistaken[key], self.exercise.tolerance)
                    for key in wrong
                )
            )
        except Exception:  # it may fail, or have other keys
            return False

    def _mistaken(self, wrong_answer):
        if self.module is not None:
            args, kwargs = self._sizes
            wrong_answer = with_weights(wrong_answer(*args, **kwargs), self.reference)
        args, kwargs = copied(self._arguments)
        return wrong_answer(*args, **kwargs)

    def _gives_output(self, other):
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
            self.fail("parts", message)


def _are_named_numbers(output):
    values = output.values() if isinstance(output, dict) else [None]
    return all(isinstance(value, numbers.Number) for value in values)
