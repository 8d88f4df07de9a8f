import subprocess
import sys


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, tutorial_lib.attention, tutorial_lib.plotting, "
        "tutorial_lib.figures, tutorial_lib.exercises\n"
        "heavy = {'matplotlib', 'pandas', 'sklearn', 'torchvision', 'PIL', 'IPython'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
