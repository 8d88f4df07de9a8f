"""Exercises that answer: `check`, `hint`, `solution`, `use` and `progress`.

The kit never touches the network, and does not know the book's models. What passed is
kept for the next session: `marks` says where.

For authors
-----------
A chapter's exercises are a folder `tutorial_exercises/chapter_NN/`, found by itself:
`checks.py` (what is asked, and how it is looked at; a second file beside it if it grows
too long), `solutions.py` (right answers, nothing else), `mistakes.diff` (known wrong
answers), and `specimens.py` where answers are tried on something. An answer is a
function, a value, or an `nn.Module`; all three have an oracle, a slow and plain
definition that is not the solution, and steps::

    share = Exercise("1.2", "Shares", name="share", returns="item", hints=["…"])

    @share.spec
    def share_of_total(amounts):
        total = sum(float(amount) for amount in amounts)
        return torch.tensor([float(amount) / total for amount in amounts])

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
what else may be expected, and `counting.Count` says by which terms a count is wrong. An
exercise without a name asks for a value: its oracle takes no arguments, and it needs no
step. A module is first built by `probe.build(d_key=4)`, which copies the oracle's
weights into it.

A mistake is an edit of the solution's lines: its code, what to say, the lines::

    # 1.2 share
    by-largest: You divide by the largest, not by the sum.
    - return amounts / amounts.sum()
    + return amounts / amounts.max()

Whatever fails, a known mistake that gives the student's output on these arguments is
named first, so choose arguments on which mistakes differ from the truth and from each
other. An entry without words after the colon is one that a step finds by itself, and
`right:` are other right answers: `mistakes` describes the file. `solutions.py` holds
functions and classes, and `ANSWERS = {"1.1": …}`, each entry explained by the comment
above it. `tests/test_exercises.py` tries them all, and `tests/test_mutants.py` what no
list knows: twenty mutants of each solution, which a check must refuse.

In the notebook the stub's cell is tagged `exercise` (blanks are `...`), `check(share)`
stands right below, tagged `check`, and `solution("1.2")` below that, tagged `solution`.

In a copy without solutions both `solutions.py` and `mistakes.diff` are missing, since
an edit gives its answer away. A check then still compares with the oracle and says what
its steps and `Probe` find, but names no mistake of the file; `use` hands out the
library's function or the oracle, and `solution` says what is missing.
"""

from .check import check, use
from .exercise import Exercise, Wrong
from .help import hint, progress, solution

__all__ = ["Exercise", "Wrong", "check", "hint", "progress", "solution", "use"]
