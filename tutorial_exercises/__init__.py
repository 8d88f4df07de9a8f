"""Exercises that check themselves: `check`, `hint`, `solution`, `use` and `progress`.

In a notebook `check(answer)`, or `check(answer, "1.2")`, says what is right about an
answer and what is not yet.

For authors
-----------
The exercises of a chapter stand in `chapter_NN.py`, those of an excursion in a file of
the name of its notebook, and they are found by these names. This is a whole exercise.
With `tolerance=`, `seconds=` and, for a tuple that is returned, `axes={"weights":
"query key", …}` it has more options::

    import torch

    from tutorial_exercises import Exercise

    @Exercise("1.2", "Normalize rows", axes="row item")  # the axes of the result
    def normalized(amounts):  # the solution
        \"\"\"Divide each row of amounts (row, item) by its sum.\"\"\"
        total = amounts.sum(dim=-1, keepdim=True)
        return amounts / total

    @normalized.oracle  # computes the same from the same arguments, slowly and simply
    def _(amounts):
        rows = [[float(x) / float(sum(row)) for x in row] for row in amounts]
        return torch.tensor(rows)

    @normalized.cases  # each yields a label for the student, then the arguments
    def _():
        yield "two rows of three", torch.rand(2, 3)
        yield "as many rows as items", torch.rand(3, 3)

    @normalized.demand("rows sum to 1")  # what no comparison with the oracle shows
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

**Cases and demands** are tried in order, with the same random numbers each time, until
one fails. A demand returns what is wrong, or None. In it `answer(…)` calls the answer;
if that raises, the demand ends and the student is told. After a call `answer.same()`
says how the output differs from the oracle's, or returns "", `answer.expected()` is the
oracle's output, and `answer.gradients(x)` are the gradients of the output's sum, over
all parts of a tuple, for inputs that require them; one that is missing or not finite
ends the demand.

**Mistakes**, at least two, are sentences for the student. Below a sentence, each line
indented by four is one way to make the mistake: an edit of the solution, `old → new`.
The old text must stand exactly once in the solution, signature and docstring included:
take enough of it. Further lines of the new text begin with eight spaces, in place of
which they get the indentation of the changed line; `…` is the old text. A line that
begins with `and` changes a second place of the same answer. Edits below `right:` make
other correct answers. When a case or demand fails, each mistake is run on the same
inputs, and the student is told the first that gives the same output, or error. So
choose inputs for which mistakes differ from the solution and from each other; those
that always give the same share a sentence. Wrong shapes, types, None and NaN are told
where no mistake matches.

**Hints and sentences** are text, with code between `backticks`. A formula is text, too:
x², e^s, √d; no card sets LaTeX.

**A value** is asked for by a solution without arguments, with a docstring that explains
it. It needs no cases. In a dictionary, each wrong entry has its own mistake named.

**A class** has a class as its oracle, whose `state_dict()` has the same keys. A case
gives what it is built with first: `yield "two heads", (12, 2), x`. In a demand, call
`answer.build(12, 2)`, then `answer(x)`. The student's module gets the oracle's weights.

**The notebook** has three cells for an exercise, with tags: `exercise`, the stub, with
the solution's signature and `...` for blanks; `check`, with `check(normalized)`, or for
a value `check(width, "2.1")`; and `solution`, with `solution("1.2")`. It ends with
`progress(1)`, and is saved with what it shows while all stubs are open.

**To try it**, call `check(normalized)`, or `check(wrong, "1.2")` with a wrong answer of
yours (TUTORIAL_PROGRESS=off keeps no mark). `pytest tests/test_exercises.py -k 1.2`
tries the exercise and its mistakes, and without `-k` the notebooks, too.
"""

from .check import check, hint, progress, solution, use
from .exercise import Exercise

__all__ = ["Exercise", "check", "hint", "progress", "solution", "use"]
