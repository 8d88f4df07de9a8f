"""Exercises that answer: `check`, `hint`, `solution`, `use` and `progress`.

For authors
-----------
A chapter's exercises are one file, `chapter_NN.py`, found by itself. An exercise is its
solution, decorated; what follows says how an answer is looked at, and what people
write instead::

    @Exercise("1.2", "Normalize amounts", axes="item")
    def normalized(amounts):
        \"\"\"Divide amounts (item,) by their sum.\"\"\"
        return amounts / amounts.sum()

    @normalized.oracle  # slow and plain, and not the solution again
    def _(amounts):
        total = sum(float(amount) for amount in amounts)
        return torch.tensor([float(amount) / total for amount in amounts])

    @normalized.cases  # a label that completes "the answer …", and the inputs
    def _():
        yield "five amounts", torch.rand(5)
        yield "one amount", torch.rand(1)

    @normalized.demand("the sum is 1")  # where no single answer is right
    def _(answer):
        if abs(answer(torch.rand(5)).sum() - 1) > 1e-5:
            return "Your amounts do not sum to 1."

    normalized.hints = \"\"\"
    - What do all amounts together make?
    - `amounts.sum()` is what to divide by.
    \"\"\"

    normalized.mistakes = \"\"\"
    You divide by the largest, not by the sum.
        amounts.sum() → amounts.max()
    right:
        amounts / amounts.sum() → amounts.div(amounts.sum())
    \"\"\"

A mistake is a sentence and, indented, what is written in place of a piece of the
solution that stands in it once. Lines indented by four more go on with the new text,
in which `…` stands for the old; `and old → new` changes a second place. The next edit
below is another way to make the same mistake. Whatever fails, a mistake that gives the
student's output, or error, for the same inputs is named before anything else: choose
inputs on which mistakes differ from the truth and from each other. Below `right:` stand
other right answers. What steps find by themselves need not be listed.

A class is given its sizes first, `yield "two heads", (12, 2), x`, and gets the oracle's
weights; in a demand `answer.build(12, 2)` does that. A solution without arguments makes
an exercise that asks for a value: its docstring explains the value. A demand may also
use `answer.same()`, `answer.expected()` and `answer.gradients(x)`.
"""

from .check import check, hint, progress, solution, use
from .exercise import Exercise

__all__ = ["Exercise", "check", "hint", "progress", "solution", "use"]
