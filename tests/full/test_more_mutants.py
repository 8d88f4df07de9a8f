"""No mutant of a right answer passes: those that tests/test_mutants.py leaves."""

from test_mutants import FIRST, chosen, each_task, require_that_only_right_ones_pass


@each_task
def test_only_mutants_that_are_right_pass(chapter, task, monkeypatch):
    monkeypatch.setattr(task, "seconds", 2.0)
    tried = [*chosen(task.source).items()]
    require_that_only_right_ones_pass(chapter, task, dict(tried[FIRST:]))
