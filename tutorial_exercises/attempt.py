"""One attempt: an answer is called, and its output compared with the oracle's.

Whatever the answer does becomes an output, or a sentence for the student.
"""

import ast
import inspect
import traceback

import numpy
import torch
from torch import nn

from tutorial_lib.definitions import functions_of, tree_of

from .compare import (
    alike,
    describe,
    describe_error,
    difference,
    of_another_kind,
    unusual,
)
from .exercise import Wrong
from .sandbox import TimeUp, call_within

CHANGED = (
    "Your code changed one of its inputs in place (`masked_fill_`, `x += …`, "
    "`x[m] = …`, `shuffle(x)`). Work on a copy: the caller needs the original."
)
CHANGED_MODULE = (
    "Your code changed the weights of a module that it was given. Work on copies of "
    "the weights, or on a `copy.deepcopy` of the module: the caller needs the original."
)
NO_GRADIENT = (
    "No gradient reaches one of the inputs: a `.detach()`, `.item()`, `.tolist()`, "
    "`torch.tensor(…)` or `torch.no_grad()` cuts the graph before it."
)
NO_TENSOR = (
    "You return a plain number, through which no gradient flows: return a tensor, "
    "without `.item()` or `float()` on the way."
)
BAD_GRADIENT = (
    "A gradient is infinite or NaN, so training would break here. Is something divided "
    "by 0, and mended afterwards? Mend the divisor."
)
OVERWRITTEN = (
    "You overwrite numbers in place (`x[i] = …`, `x += …`) that the gradients still "
    "need. Make a new tensor: `torch.where`, `masked_fill`, a product."
)
TOO_LONG = "Your code was still running after {:g} s: does a loop never end?"
ENDS_PYTHON = "Your code ends Python (`quit`, `exit`). To end a function, `return`."


class Attempt:
    """An answer as cases and demands see it: call it, then compare its ``output``."""

    def __init__(self, exercise, answer):
        self.exercise = exercise
        self.answer = answer
        self.module = None  # what a class has built
        self.inputs = None  # of the last call; None before the first
        self.output = None
        self.error = None

    def build(self, *sizes):
        """Build the student's module, with the oracle's weights, for later calls."""
        self.sizes = sizes
        self.inputs = ()
        self.reference = self.exercise.definition(*sizes).eval()
        self.module = self._call(self._built, self.answer)
        return self.module

    def __call__(self, *inputs):
        """Call the answer and return its output; copies of its inputs are kept."""
        self.inputs = copied(inputs)
        before = copied([states(value) for value in inputs])
        self.output = None
        if self.exercise.is_value:
            self.output = plain(self.answer)
        else:
            self.output = self._call(self.module or self.answer, *inputs)
            if self.output is None:
                raise Wrong("Your code returned None. Is there a `return` at the end?")
            if not alike(inputs, self.inputs, 0):
                raise Wrong(CHANGED)
            if not alike([states(value) for value in inputs], before, 0):
                self.inputs = None  # what a mistake gives for them, no one knows now
                raise Wrong(CHANGED_MODULE)
            self._require_all_parts()
        if unusual(self.output) and not unusual(self.expected()):
            raise Wrong(unusual(self.output))
        return self.output

    def _require_all_parts(self):
        """Raise Wrong where a tuple is asked for, and another is returned."""
        parts = self.exercise.axes
        if isinstance(parts, dict):
            is_tuple = isinstance(self.output, (tuple, list))
            if not is_tuple or len(self.output) != len(parts):
                names = ", ".join(parts)
                actual = describe(self.output)
                raise Wrong(f"Expected `return {names}`, got {actual}.")

    def expected(self):
        """Return what the oracle gives for the inputs of the last call."""
        try:
            return self._output_of(self.exercise.definition)
        except (Exception, TimeUp) as error:
            fault = f"the oracle raises {describe_error(error)}. Mend it."
            raise self.exercise.fault(fault) from error

    def same(self):
        """Return a sentence on how the last output differs from the oracle's, or ""."""
        axes = self.exercise.axes
        expected = self.expected()
        tolerance = self.exercise.tolerance
        if not isinstance(axes, dict):
            reveal = not self.exercise.is_value  # a value is what is asked for
            differs = difference(self.output, expected, tolerance, axes.split(), reveal)
            return differs and differs + self._unused_arguments()
        for i, (name, own_axes) in enumerate(axes.items()):
            part = self.output[i]
            differs = difference(part, expected[i], tolerance, own_axes.split())
            if differs:
                return f"{name}: {differs}{self._unused_arguments()}"
        return ""

    def gradients(self, *tensors):
        """Return the gradients of the last output's sum: all must be finite."""
        parts = self.output if isinstance(self.output, (list, tuple)) else [self.output]
        if not all(map(torch.is_tensor, parts)):
            raise Wrong(NO_TENSOR)
        try:
            total = sum(part.sum() for part in parts)
            gradients = torch.autograd.grad(total, tensors, retain_graph=True)
        except RuntimeError as error:
            is_overwritten = "inplace" in str(error)
            raise Wrong(OVERWRITTEN if is_overwritten else NO_GRADIENT) from None
        if not all(gradient.isfinite().all() for gradient in gradients):
            raise Wrong(BAD_GRADIENT)
        return gradients

    def unusable(self, error):
        """Say that a step could not use the output: what kind was expected, or why."""
        output = describe(self.output)
        another = of_another_kind(self.output, self.expected())
        return another or (
            f"Your code returned {output}, which the check could not use "
            f"({describe_error(error)})."
        )

    def _unused_arguments(self):
        """Say which arguments the solution uses and the answer does not, or ""."""
        function = tree_of(self.answer)
        solution = tree_of(self.exercise.solution)
        if not all(isinstance(one, ast.FunctionDef) for one in (function, solution)):
            return ""
        unused = names_read(solution) - names_read(function)
        names = [f"`{one.arg}`" for one in function.args.args if one.arg in unused]
        several = "s" if len(names) > 1 else ""
        ending = f"argument{several} {', '.join(names)}."
        return f"\nYour code does not use its {ending}" if names else ""

    def known_mistake(self):
        """Return the sentence of a mistake that does the same as the answer, or ""."""
        if self.inputs is None or self._does_the_same(self.exercise.definition):
            return ""
        mistakes = [known for known in self.exercise.known if known.sentence]
        if self.exercise.is_value and isinstance(self.output, dict):
            expected = self.expected()
            if isinstance(expected, dict) and expected.keys() == self.output.keys():
                return self._mistakes_of_entries(mistakes, expected)
        for known in mistakes:
            if self._does_the_same(known.answer):
                return known.sentence
        return ""

    def _mistakes_of_entries(self, mistakes, expected):
        """Return a sentence for each wrong entry of a dictionary that is known."""
        tolerance = self.exercise.tolerance
        sentences = []
        for key, entry in self.output.items():
            if alike(entry, expected[key], tolerance):
                continue
            for known in mistakes:
                if alike(entry, known.answer[key], tolerance):
                    sentences.append(known.sentence)
                    break
        return "\n".join(dict.fromkeys(sentences))

    def _does_the_same(self, other):
        """Whether another answer gives the last output, or raises the last error."""
        try:
            output = self._output_of(other)
        except (Exception, TimeUp) as error:
            return self.error == describe_error(error)
        return self.error is None and alike(
            self.output, output, self.exercise.tolerance
        )

    def _output_of(self, other):
        """Return what the oracle, or a known answer, gives for the last inputs."""
        is_oracle = other is self.exercise.definition
        if self.exercise.is_value:
            return other() if is_oracle else other
        if self.exercise.is_class:
            other = self.reference if is_oracle else self._built(other)
        return call_within(self.exercise.seconds, other, *copied(self.inputs))

    def _built(self, answer):
        """Return a class's module, in eval mode, with the reference's weights."""
        module = answer(*self.sizes)
        if not isinstance(module, nn.Module):
            raise Wrong(f"Expected a subclass of nn.Module, got {describe(module)}.")
        actual = module.state_dict()
        expected = self.reference.state_dict()
        differences = []
        for name in expected | actual:
            has = describe(actual.get(name))
            should_have = describe(expected.get(name))
            if has != should_have:
                differences.append(f"`{name}` is {has}, expected {should_have}")
        if differences:
            several = "; ".join(differences[:4])
            raise Wrong(f"Compare your module's parameters: {several}.")
        module.load_state_dict(expected)
        return module.eval()

    def _call(self, function, *arguments):
        """Return what a call returns; what it raises becomes Wrong, but for Ctrl-C."""
        self.error = None
        try:
            return call_within(self.exercise.seconds, function, *arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.error = describe_error(error)
            raise Wrong(self._explained(error)) from None

    def _explained(self, error):
        """Say what an error means, and on which line of the student's it was raised."""
        line = self._line_of(error)
        if isinstance(error, TimeUp):
            return TOO_LONG.format(self.exercise.seconds) + line
        if isinstance(error, SystemExit):
            return ENDS_PYTHON + line
        if isinstance(error, Wrong):
            return f"{error}{line}"
        details = f"{line}{self._inputs_in_words()}{self._unused_arguments()}"
        return f"Your code raised {self.error}{details}"

    def _line_of(self, error):
        """Return the student's own line under an error, as text, or ""."""
        files = {one.__code__.co_filename for one in functions_of(self.answer)}
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename in files and frame.line]
        if not own:
            return ""
        return f"\n  line {own[-1].lineno} of the cell: `{own[-1].line}`"

    def _inputs_in_words(self):
        """Say with what the answer was called, by the names of the arguments."""
        if not self.inputs:
            return ""
        called = self.reference.forward if self.module else self.exercise.solution
        names = inspect.signature(called).parameters
        arguments = []
        for name, value in zip(names, self.inputs, strict=False):
            arguments.append(f"{name} = {describe(value)}")
        return f"\nIt was called with {', '.join(arguments)}."


def plain(value):
    """Return a value in which arrays of one number, without axes, are that number."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    is_number = isinstance(value, numpy.ndarray) and not value.ndim
    return value[()] if is_number else value


def states(value):
    """Return the weights and buffers of a module by their names; none of another."""
    return dict(value.state_dict()) if isinstance(value, nn.Module) else {}


def names_read(tree):
    """Return the names that code reads."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Load)}


def copied(value):
    """Return a copy in which every tensor, however deep, is a new one."""
    if torch.is_tensor(value):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    return value.copy() if isinstance(value, set) else value
