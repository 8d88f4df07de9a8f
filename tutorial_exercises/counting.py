"""Say by which terms a count differs from the right one, whatever the mistake was.

A count of parameters or of operations is a polynomial in the sizes. Its differences at
a few small sizes (Newton's) tell every coefficient exactly, so that no list of mistakes
is needed. Of what is no polynomial only the value is told.

Nothing here knows what is counted.
"""

import functools
import inspect
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement, product

from .exercise import Wrong
from .run import run

MOST = 6  # terms that a sentence can hold
SECONDS = 5.0  # for the counts at all small sizes together
CODES = {(True, False): "too-much", (False, True): "too-little"}


def _in_order(*sizes):
    return sizes, {}


@dataclass(frozen=True)
class Count:
    """What the terms of a count are made of, and how it is called.

    sizes: names of the factors. degree: how many of them a term has at most. call: a
    function of the sizes that returns the arguments and the keywords of a call. about:
    {term: what it counts}, said of a term that is wrong.
    """

    sizes: tuple
    degree: int = 4
    call: Callable = _in_order
    about: dict = field(default_factory=dict)

    def expect(self, probe, *sizes):
        """Expect the oracle's count for these sizes, else say which terms are wrong."""
        args, kwargs = self.call(*sizes)
        probe(*args, **kwargs)
        try:
            probe.same()
        except Wrong as wrong:
            if wrong.code != "value":
                raise
            called = inspect.signature(probe.exercise.oracle).bind(*args, **kwargs)
            named = ", ".join(f"{name}={n}" for name, n in called.arguments.items())
            code, terms = self.difference(probe, *sizes)
            message = f"{wrong.message} (Called with {named}.) {terms}".rstrip()
            raise Wrong(code or wrong.code, message) from None

    def difference(self, probe, *sizes, of=None):
        """Return a code and a sentence on the terms that are wrong, or two "".

        sizes: those of a call that is wrong. of: the entry that is meant, where the
        answer returns a dictionary.
        """
        found = self._wrong_terms(probe, sizes, of)
        if not found:
            return "", ""
        more = _added({term: n for term, n in found.items() if n > 0})
        less = _added({term: -n for term, n in found.items() if n < 0})
        parts = f"lacks {less}" * bool(less), f"has {more} too many" * bool(more)
        sentences = [f"Your count {' and '.join(filter(None, parts))}."]
        sentences += [f"{t} counts {self.about[t]}." for t in found if t in self.about]
        code = CODES.get((bool(more), bool(less)), "other-terms")
        return code, " ".join(sentences)

    def _wrong_terms(self, probe, sizes, of):
        """Return {term: factor} of answer less oracle; {} if that is no polynomial."""

        def excess(*sizes):
            args, kwargs = self.call(*sizes)
            right = _right(probe.exercise.oracle, args, tuple(kwargs.items()))
            return _number(probe.answer(*args, **kwargs), of) - _number(right, of)

        def terms():
            found = polynomial(excess, len(sizes), self.degree)
            return found if _value(found, sizes) == excess(*sizes) else {}

        try:
            found = run(terms, (), {}, answer=probe.answer, seconds=SECONDS)
        except Wrong:  # it cannot be called with small sizes, or takes too long
            return {}
        if len(found) > MOST:
            return {}
        largest_first = sorted(found, key=sum, reverse=True)
        return {self._named(powers): found[powers] for powers in largest_first}

    def _named(self, powers):
        factors = zip(self.sizes, powers, strict=True)
        return "·".join(name + " ²³⁴⁵⁶"[n - 1].strip() for name, n in factors if n)


def polynomial(function, axes, degree):
    """Return {powers: factor} of the polynomial that a function is at small sizes.

    It is exact, and of the given degree in all ``axes`` sizes together.
    """
    chosen = combinations_with_replacement(range(axes + 1), degree)
    points = [tuple(map(one.count, range(axes))) for one in chosen]
    rises = {point: function(*(2 * i + 2 for i in point)) for point in points}
    for axis in range(axes):
        for level in range(degree):
            for point in sorted(points, reverse=True):
                if point[axis] > level:
                    before = (*point[:axis], point[axis] - 1, *point[axis + 1 :])
                    rises[point] -= rises[before]
    found = Counter()
    for point, rise in rises.items():
        for powers in product(*(range(i + 1) for i in point)) if rise else ():
            found[powers] += rise * math.prod(map(_factor, point, powers))
    return {powers: factor for powers, factor in found.items() if factor}


@functools.cache
def _factor(i, power):
    """Return the factor of xᵖᵒʷᵉʳ in (x - 2)(x - 4)…(x - 2i) / (2 · 4 · … · 2i)."""
    if not 0 <= power <= i:
        return Fraction(0)
    if i == 0:
        return Fraction(1)
    return (_factor(i - 1, power - 1) - 2 * i * _factor(i - 1, power)) / (2 * i)


def _value(terms, sizes):
    return sum(
        factor * math.prod(map(pow, sizes, powers)) for powers, factor in terms.items()
    )


@functools.cache
def _right(oracle, args, kwargs):
    return oracle(*args, **dict(kwargs))


def _number(output, of):
    output = output if of is None else output[of]
    output = output.item() if hasattr(output, "item") else output
    return Fraction(output).limit_denominator(1000)


def _added(terms):
    """Write terms with their factors as a sum."""
    words = []
    for term, factor in terms.items():
        parts = [str(factor)] * (factor != 1 or not term) + [term] * bool(term)
        words.append("·".join(parts))
    return " + ".join(words)
