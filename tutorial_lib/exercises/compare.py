"""Compare an answer with what was expected, and say the difference in words.

Tensors, numbers, strings, and lists, tuples, dicts and sets of them. Nothing here
knows what an exercise is.
"""

import cmath
import numbers
from dataclasses import dataclass

import torch

RELATIVE = 1e-4


def describe(value):
    """Say in a few words what a value is: its shape, or a short text of it."""
    if torch.is_tensor(value):
        kind = "" if value.dtype == torch.float32 else f" {value.dtype}"
        return f"a tensor of shape {tuple(value.shape)}{kind}".replace("torch.", "")
    if isinstance(value, (tuple, list)) and any(map(torch.is_tensor, value)):
        return f"a {type(value).__name__} of {', '.join(map(describe, value))}"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = shown(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def shown(value):
    """Return `repr(value)`, or the type's name where that fails or shows an address."""
    try:
        text = repr(value)
    except Exception:
        text = " at 0x"
    return f"a {type(value).__name__}" if " at 0x" in text else text


def alike(got, expected, tolerance=1e-5):
    """Whether two values agree, within the tolerance for numbers."""
    return Comparison(tolerance).difference(got, expected) is None


@dataclass(frozen=True)
class Comparison:
    """How to compare two values, and how to say where they differ.

    tolerance: largest absolute difference that counts as equal.
    axes: names of a tensor's axes, used in the sentence where their number fits.
    reveal: whether the sentence may say what was expected.
    """

    tolerance: float = 1e-5
    axes: tuple = ()
    reveal: bool = True

    def difference(self, got, expected):
        """Return None where two values agree, else (code, sentence)."""
        if torch.is_tensor(expected) and expected.ndim:
            return self._of_tensors(got, expected)
        if _is_number(expected):
            return self._of_numbers(got, expected)
        if isinstance(expected, (list, tuple)):
            return self._of_sequences(got, expected)
        if isinstance(expected, dict) and isinstance(got, dict):
            return self._of_mappings(got, expected)
        if isinstance(expected, str) and isinstance(got, str):
            same = got.strip().casefold() == expected.strip().casefold()
        else:
            same = type(got) is type(expected) and bool(got == expected)
        return None if same else self._not_it(got, expected)

    def _not_it(self, got, expected):
        if type(got) is not type(expected):
            kind = type(expected).__name__
            return "type", f"Expected a value of type {kind}, got {describe(got)}."
        right = f": expected {describe(expected)}" if self.reveal else ""
        return "value", f"{describe(got)} is not right{right}."

    def _of_numbers(self, got, expected):
        truth = isinstance(_plain(expected), bool)
        if not _is_number(got) or isinstance(_plain(got), bool) != truth:
            kind = "True or False" if truth else "a number"
            return "type", f"Expected {kind}, got {describe(got)}."
        got, expected = _plain(got), _plain(expected)
        both_nan = got != got and expected != expected
        if both_nan or cmath.isclose(
            got, expected, rel_tol=RELATIVE, abs_tol=self.tolerance
        ):
            return None
        right = f": expected {expected:.6g}" if self.reveal else ""
        return "value", f"{got:.6g} is not right{right}."

    def _of_sequences(self, got, expected):
        got = got.tolist() if hasattr(got, "tolist") else got
        if not isinstance(got, (list, tuple)):
            return "type", f"Expected {len(expected)} entries, got {describe(got)}."
        if len(got) != len(expected):
            return "length", f"Expected {len(expected)} entries, got {len(got)}."
        numbered = zip(range(len(got)), got, expected, strict=True)
        return self._of_entries(numbered)

    def _of_mappings(self, got, expected):
        if got.keys() != expected.keys():
            return "keys", f"Expected the keys {[*expected]}, got {[*got]}."
        return self._of_entries((key, got[key], expected[key]) for key in expected)

    def _of_entries(self, entries):
        for key, got, expected in entries:
            found = self.difference(got, expected)
            if found:
                return found[0], f"Entry {key!r}: {found[1]}"
        return None

    def _of_tensors(self, got, expected):
        found = shape_difference(got, expected.shape, self.axes)
        if found:
            return found
        if (got.dtype == torch.bool) != (expected.dtype == torch.bool):
            return "dtype", f"Expected dtype {expected.dtype}, got {got.dtype}."
        written = bool if expected.dtype == torch.bool else "{:.4f}".format
        got, expected = got.detach().cpu().double(), expected.detach().cpu().double()
        bad = ~torch.isclose(got, expected, RELATIVE, self.tolerance, equal_nan=True)
        if not bad.any():
            return None
        many = int((got.isnan() & ~expected.isnan()).sum())
        if many:
            return "nan", f"{many} of {got.numel()} entries are NaN (not a number)."
        return "value", self._first(got, expected, bad, written)

    def _first(self, got, expected, bad, written):
        index = tuple(bad.nonzero()[0].tolist())
        names = self.axes if len(self.axes) == len(index) else ["index"] * len(index)
        where = ", ".join(f"{n} {i}" for n, i in zip(names, index, strict=True))
        if written(got[index]) == written(expected[index]):
            written = "{:.6g}".format
        right = f", expected {written(expected[index])}" if self.reveal else ""
        return (
            f"{int(bad.sum())} of {bad.numel()} values differ. The first is at "
            f"{where}: yours is {written(got[index])}{right}."
        )


def _is_number(value):
    if torch.is_tensor(value) or type(value).__module__ == "numpy":
        return getattr(value, "ndim", 1) == 0
    return isinstance(value, numbers.Number)


def _plain(value):
    return value.item() if hasattr(value, "item") else value


def shape_difference(got, sizes, axes=()):
    """Return None where this is a tensor of these sizes, else (code, sentence)."""
    if not torch.is_tensor(got):
        return "type", f"Expected a torch.Tensor, got {describe(got)}.{_within(got)}"
    shape, sizes = tuple(got.shape), tuple(sizes)
    if shape == sizes:
        return None
    wanted = str(sizes)
    if len(axes) == len(sizes):
        pairs = zip(axes, sizes, strict=True)
        wanted = f"({', '.join(f'{axis}={size}' for axis, size in pairs)})"
    return "shape", f"Expected shape {wanted}, got {shape}.{_reason(shape, sizes)}"


def _within(got):
    tensors = isinstance(got, (tuple, list)) and len(got) and torch.is_tensor(got[0])
    return " Return one tensor: one of these, or all joined?" if tensors else ""


def _reason(shape, sizes):
    if sorted(shape) == sorted(sizes):
        return (
            " The sizes are right, but the axes are in a different order: look for "
            "a missing or an extra transpose, or a `stack` along another axis."
        )
    if len(shape) == len(sizes) - 1:
        return (
            " One axis is missing: a `sum`, `mean` or `max` without `keepdim=True`, "
            "or an index that dropped an axis?"
        )
    if len(shape) == len(sizes) + 1:
        return " There is one axis too many: an extra `unsqueeze`, or a missing sum?"
    fits = all(size in (1, right) for size, right in zip(shape, sizes, strict=False))
    if fits and len(shape) == len(sizes):
        return (
            " An axis has one entry for all: is an `expand` missing, or was a `sum` or "
            "`mean` one too many?"
        )
    return ""
