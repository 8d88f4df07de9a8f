"""The tests compute as the book's kernels do."""

import json
import os
import subprocess
import sys

from tools.notebooks import ENVIRONMENT

IMPORTING = """
import json, sys
sys.path.insert(0, "tests")
import conftest
print(json.dumps("torch" in sys.modules))
"""


def test_tests_compute_with_the_environment_of_kernels():
    assert ENVIRONMENT.items() <= os.environ.items()


def test_the_environment_is_set_before_torch_is_imported():
    command = [sys.executable, "-c", IMPORTING]
    shown = subprocess.run(command, capture_output=True, check=True, text=True)
    assert json.loads(shown.stdout) is False
