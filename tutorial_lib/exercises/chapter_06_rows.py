"""The check of exercise 6.2, which rows of a memory a changed word changes.

An answer is read as three sets of row numbers, in whatever order they are given. This
module does not run an encoder.
"""

from .exercise import Exercise, Wrong

ROWS, CHANGED = range(4), 2

rows = Exercise(
    "6.2",
    "Who knows the next word?",
    hints=[
        "A state knows what was read before it. Reading forward, the words before "
        "*bird* were read before anything changed.",
        "Forward, row 2 changes and every row after it. Backward is the mirror image.",
        "A row of the memory is both states side by side: it changes if one does.",
    ],
)


@rows.spec
def changed_rows():
    """Mark a row if the changed word is among those read up to it."""
    forward = [j for j in ROWS if CHANGED in range(j + 1)]
    backward = [j for j in ROWS if CHANGED in range(j, len(ROWS))]
    both = sorted({*forward, *backward})
    return {"forward": forward, "backward": backward, "both": both}


for _code, _message, _answer in [
    (
        "forward-swapped",
        "The directions are swapped: reading forward, the words BEFORE *bird* were "
        "read before it and cannot know it.",
        {"forward": [0, 1, 2], "backward": [2, 3], "both": [0, 1, 2, 3]},
    ),
    (
        "itself",
        "The state of *bird* itself is made after reading *bird*: row 2 changes in "
        "both directions.",
        {"forward": [3], "backward": [0, 1], "both": [0, 1, 3]},
    ),
    (
        "only-itself",
        "The embedding changes in row 2 alone, but a state is made from the state "
        "before it, so the change is carried on.",
        {"forward": [2], "backward": [2], "both": [2]},
    ),
    (
        "intersection",
        "A row of the memory holds both states side by side. It changes if one of them "
        "does, not only if both do.",
        {"forward": [2, 3], "backward": [0, 1, 2], "both": [2]},
    ),
]:
    rows.misconception(_code, _message)(lambda answer=_answer: answer)


@rows.step("the rows that change")
def _(probe):
    answer = probe()
    named = isinstance(answer, dict) and {"forward", "backward", "both"} == set(answer)
    found = {key: _numbers(value) for key, value in answer.items()} if named else {}
    message = (
        "Answer with three lists of rows: {'forward': [...], 'backward': [...], …}."
    )
    if not named or None in found.values():
        raise Wrong("parts", message)
    message = "The rows are numbered 0 to 3: *the* has row 0, *sleeps* row 3."
    known = all(row in ROWS for numbers in found.values() for row in numbers)
    probe.require(known, "not-a-row", message)
    probe.output = found
    for key, right in changed_rows().items():
        probe.require(found[key] == right, key, f"{key}: {_REASONS[key]}")


_REASONS = {
    "forward": "the words of rows 0 and 1 were read before *bird*; from *bird* on, "
    "each state is made from the one before.",
    "backward": "row 3 was read before *bird*; from *bird* on, towards the start, each "
    "state is made from the one before.",
    "both": "a row of the memory is both states side by side, so it changes if either "
    "does.",
}


def _numbers(value):
    """Return the numbers in a list, set, range or tensor, sorted; None for others."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple, set, frozenset, range)):
        return None
    whole = all(isinstance(row, int) for row in value)
    return sorted(set(value)) if whole else None
