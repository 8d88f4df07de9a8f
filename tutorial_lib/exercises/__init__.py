"""Exercises that answer: `check`, `hint`, `solution`, `use` and `progress`.

The kit needs nothing but torch, never touches the network, and does not know the book's
models.

For authors
-----------
Checks stand in `exercises/chapter_NN.py`, found by themselves. An answer is a function,
a value, or an `nn.Module`; all three are exercises with an oracle (a slow and plain
definition, not the solution), known wrong answers, and steps::

    share = Exercise("1.2", "Shares", name="share", returns="item", hints=["…"])

    @share.spec
    def share_of_total(amounts):
        total = sum(float(amount) for amount in amounts)
        return torch.tensor([float(amount) / total for amount in amounts])

    @share.misconception("by-largest", "You divide by the largest, not by the sum.")
    def _(amounts):
        return amounts / amounts.max()

    @share.step("one share per item")
    def _(probe):
        probe.shape(probe(torch.rand(5)), item=5)

    @share.step("shares are right")
    def _(probe):
        probe(torch.rand(5))
        probe.same()

Steps run in order, each with fresh seeds, and the first that fails is reported. Calling
the probe calls the answer: an exception, None, a changed input or more than a few
seconds end the step with a message. `same()` compares with the oracle; `Probe` lists
what else may be expected. Whatever fails, a known wrong answer that gives the student's
output on these arguments is named first, so choose arguments on which mistakes differ
from the truth and from each other. An exercise without a name asks for a value: its
oracle takes no arguments, and it needs no step. A module is first built by
`probe.build(d_key=4)`, which copies the oracle's weights into it.

Solutions and mistakes stand in `exercises/solutions/chapter_NN.py`: the functions and
classes; `ANSWERS = {"1.1": …}`, explained by the comment above each entry;
`WRONG_ANSWERS = [(number, answer, code)]`; `MUTANTS = [(name, old, new, code)]`, edits
of a solution with the diagnosis each must get, at least one for each misconception;
`ACCEPT = [(name, old, new)]`, edits that must still pass. `tests/test_exercises.py`
tries them all. In the notebook the stub's cell is tagged `exercise` (blanks are `...`),
`check(share)` stands right below, tagged `check`, and `solution("1.2")` below that,
tagged `solution`.
"""

from .checking import check, use
from .exercise import Exercise, Wrong
from .helping import hint, progress, solution

__all__ = ["Exercise", "Wrong", "check", "hint", "progress", "solution", "use"]
