"""What steps of several chapters expect in the same words.

Knows no exercise, and nothing of how a result is shown.
"""

from .exercise import Wrong


def call_advising(probe, arguments, errors):
    """Call the answer; where it raises an error that is known, say what it means.

    errors: (part of the error's text, code, message), of which the first that fits
    replaces what Python says.
    """
    try:
        return probe(*arguments)
    except Wrong as wrong:
        for part, code, message in errors:
            if wrong.code == "error" and part in wrong.message:
                raise Wrong(code, message) from None
        raise


def expect_count(probe, names, *sizes, **more):
    """Expect the oracle's number, and name the sizes that a wrong one was given for."""
    try:
        probe(*sizes, **more)
        probe.same()
    except Wrong as wrong:
        given = dict(zip(names, sizes, strict=True)) | more
        named = ", ".join(f"{name}={size}" for name, size in given.items())
        raise Wrong(wrong.code, f"{wrong.message} (Called with {named}.)") from None
