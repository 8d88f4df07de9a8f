"""Exercises that check themselves: `check`, `hint`, `solution`, `use` and `progress`.

In a notebook `check(answer)`, or `check(answer, "1.2")`, says what is right about an
answer and what is not yet.

For authors
-----------
A chapter's exercises are one file, `chapter_NN.py`, discovered automatically. An
exercise is its solution, decorated. The rest says how an answer is checked, and which
wrong answers are expected::

    import torch

    from tutorial_exercises import Exercise

    @Exercise("1.2", "Normalize rows", axes="row item")  # axes of what is returned
    def normalized(amounts):
        \"\"\"Divide each row of amounts (row, item) by its sum.\"\"\"
        total = amounts.sum(dim=-1, keepdim=True)
        return amounts / total

    @normalized.oracle  # slow and simple, written independently of the solution
    def _(amounts):
        rows = [[float(x) / float(sum(row)) for x in row] for row in amounts]
        return torch.tensor(rows)

    @normalized.cases  # a label for the card, then the inputs
    def _():
        yield "two rows of three", torch.rand(2, 3)
        yield "as many rows as items", torch.rand(3, 3)

    @normalized.demand("rows sum to 1")  # where more than one result is right
    def _(answer):
        if abs(answer(torch.rand(1, 5)).sum() - 1) > 1e-5:
            return "Your rows do not sum to 1."

    normalized.hints = \"\"\"
    - What do the amounts of a row add up to?
    - Divide by `amounts.sum(dim=-1, keepdim=True)`.
    \"\"\"

    normalized.mistakes = \"\"\"
    You divide by the largest, not by the sum.
        amounts.sum(dim=-1, keepdim=True) → amounts.amax(dim=-1, keepdim=True)
    You divide by the sum of all rows. Each row has a sum of its own.
        amounts.sum(dim=-1, keepdim=True) → amounts.sum()
        return amounts / total → total = sum(
                row.sum() for row in amounts
            )
            …
    right:
        amounts.sum(dim=-1, keepdim=True) → amounts.sum(dim=-1)
        and amounts / total → amounts / total[:, None]
    \"\"\"

An exercise needs an oracle, a hint and two mistakes. A mistake is a sentence and,
indented by four, edits: `old → new`, where `old` occurs exactly once in the solution,
its docstring and signature included (take enough text around it). Each edit is another
way to make the mistake. Lines indented by eight continue the new text, in which `…`
repeats the old. A line that begins with `and` changes a second place of the same
answer. Under `right:` are other correct answers.

Whatever fails, a mistake that gives the student's output, or error, for the same inputs
is reported first: choose inputs for which mistakes differ from the correct result and
from each other. Shapes, types, None, NaN and the first entry that differs are reported
without being listed. Numbers agree within the exercise's `tolerance`, whatever their
precision.

Each input of a case is given by position. A class receives its constructor arguments
first, `yield "two heads", (12, 2), x`, and then the oracle's weights, by name; in a
demand `answer.build(12, 2)` does that. A solution without arguments makes an exercise
that asks for a value: its docstring explains the value. In a demand `answer.same()`
compares the last output with the oracle's and returns a sentence or "",
`answer.expected()` returns the oracle's output, and `answer.gradients(x)` requires
finite gradients of the output's sum, and returns them.

`pytest tests/test_exercises.py -k 1.2` tries all of it. In the notebook the stub's cell
is tagged `exercise` (blanks are `...`), `check(normalized)` below it `check`, and
`solution("1.2")` below that `solution`.
"""

from .check import check, hint, progress, solution, use
from .exercise import Exercise

__all__ = ["Exercise", "check", "hint", "progress", "solution", "use"]
