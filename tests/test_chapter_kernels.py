"""How the chapters' kernels are started when they are tested: notebooks/conftest.py."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "notebooks" / "conftest.py"


@pytest.fixture
def started_twice(monkeypatch):
    nbval_kernel = pytest.importorskip("nbval.kernel")
    monkeypatch.setattr(nbval_kernel, "start_new_kernel", lambda: None)
    spec = importlib.util.spec_from_file_location("chapters_conftest", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.started_twice


def starting(answers):
    """Return a start that dies where the next answer is an error."""
    answers = iter(answers)

    def start(name):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return name, answer

    return start


def test_a_kernel_that_dies_at_its_start_is_started_again(started_twice):
    start = started_twice(starting([RuntimeError("died"), 1]))
    assert start(name="one") == ("one", 1)


def test_a_kernel_that_dies_twice_is_reported(started_twice):
    start = started_twice(starting([RuntimeError("died"), RuntimeError("again")]))
    with pytest.raises(RuntimeError, match="again"):
        start(name="one")
