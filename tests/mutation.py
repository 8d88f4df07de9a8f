"""Break a module in one line, again and again, and see whether its tests notice.

CONTRIBUTING.md says how it is run. The library is copied, and nothing in the working
tree is changed.
"""

import argparse
import compileall
import contextlib
import itertools
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest
from mutants import mutants

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]


def tests_of(module):
    """List the files with a module's own tests; browsers try nothing of it."""
    name = Path(module).name
    others = (ROOT / "tests").glob(f"test_{name}_*.py")
    own = [path for path in others if not path.stem.endswith("_browser")]
    return [ROOT / "tests" / f"test_{name}.py", *sorted(own)]


def run_tests(folder, files):
    """Run tests with the library in ``folder``; what they print goes to its log."""
    os.chdir(ROOT)
    places = os.pathsep.join([str(folder), str(ROOT)])
    os.environ |= {"PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True  # what was written a second ago would count as new
    sys.path[:0] = [str(folder), str(ROOT)]  # the other packages are not copied
    with open(folder / "log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    status = pytest.main([*OPTIONS, *map(str, files)])
    assert Path(sys.modules["tutorial_lib"].__file__).is_relative_to(folder)
    os._exit(status)


def status_of(*arguments, limit=None):
    """Return pytest's exit status in a process forked for it, None if too slow."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=run_tests, args=arguments)
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    return process.exitcode


def import_what_tests_import(files):
    """Import what all the tests import, but not the library nor the tests themselves.

    Each process then begins with it, for it takes longer than most modules' tests.
    """
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main([*OPTIONS, "--collect-only", *map(str, files)])
    for name, module in [*sys.modules.items()]:
        place = Path(getattr(module, "__file__", None) or "/")
        ours = place.is_relative_to(ROOT) and "site-packages" not in place.parts
        if ours and name != "__main__":
            del sys.modules[name]


def try_module(module, most, seed, folder):
    """Print the mutants of a module that its tests let pass, and the share noticed."""
    place, files = folder / "tutorial_lib" / f"{module}.py", tests_of(module)
    source, begin = place.read_text(encoding="utf-8"), time.monotonic()
    if status_of(folder, files) != 0:
        sys.exit(
            f"The tests of {module} fail as it is:\n{(folder / 'log').read_text()}"
        )
    limit = 30 + 5 * (time.monotonic() - begin)
    found = list(mutants(source))
    chosen = random.Random(seed).sample(range(len(found)), min(most, len(found)))
    passed = 0
    for line, (gone, new), mutant in (found[i] for i in sorted(chosen)):
        place.write_text(mutant, encoding="utf-8")
        if status_of(folder, files, limit=limit) == 0:
            change = f"{' | '.join(gone)} -> {' | '.join(new)}"
            print(f"{module}.py:{line}: {change}", flush=True)
            passed += 1
    place.write_text(source, encoding="utf-8")
    noticed = len(chosen) - passed
    print(f"{module}: {noticed} of {len(chosen)} noticed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", help="as in: masks data/text")
    parser.add_argument("--most", type=int, default=40, help="mutants of each (40)")
    parser.add_argument("--seed", type=int, default=0, help="chooses them (0)")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    sys.path.append(str(ROOT))
    import_what_tests_import(itertools.chain(*map(tests_of, arguments.modules)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shutil.copytree(ROOT / "tutorial_lib", folder / "tutorial_lib")
        compileall.compile_dir(folder, quiet=1)
        for module in arguments.modules:
            try_module(module, arguments.most, arguments.seed, folder)


if __name__ == "__main__":
    main()
