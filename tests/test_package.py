"""What importing the library costs: torch, and nothing else that is heavy."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("tutorial_lib", "tutorial_exercises", "tutorial_figures", "tools")
HEAVY = ["IPython", "PIL", "ipywidgets", "matplotlib", "nbclient"]
HEAVY += ["nbformat", "pandas", "pooch", "requests", "sacrebleu"]
HEAVY += ["scipy", "sklearn", "torchvision"]
DRAWING = {  # what others import where something is drawn
    "tools.pictures",
    "tutorial_lib.plotting.figure",
}
PROGRAM = """
import importlib, json, sys
heavy, modules = map(json.loads, sys.argv[1:])
loaded = {}
for module in modules:
    importlib.import_module(module)
    for name in heavy:
        if name in sys.modules:
            loaded.setdefault(name, module)
print(json.dumps(loaded))
"""


def modules():
    """List every module but the command line, which runs, and those that draw."""
    for path in sorted(path for one in PACKAGES for path in (ROOT / one).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if parts[-1] != "__main__" and name not in DRAWING:
            yield name


def test_no_module_loads_anything_heavy_when_it_is_imported():
    lists = [json.dumps(HEAVY), json.dumps([*modules()])]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *lists],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert json.loads(ran.stdout) == {}
