"""A machine like Google Colab's: its packages, its kernel, and a way to the library.

The environment is made by the Makefile. The book's address is one that exists nowhere:
git finds this working tree behind it.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.notebooks import ENVIRONMENT

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ADDRESS, REF = "https://github.com/you/fork", "as-it-stands"
LIBRARY = "tutorial-lib"
PYTEST = [
    *("-p", "colab.cells", "-p", "no:cacheprovider", "--noconftest", "--color=no"),
    *("--nbval", "--nbval-kernel-name=colab", "--nbval-cell-timeout=300"),
    *("--nbval-sanitize-with", f"{ROOT / 'tests' / 'nbval.cfg'}"),
]
GIT = ["git", "-c", "user.name=you", "-c", "user.email=", "-c", "commit.gpgsign=no"]


class Host:
    """An environment, the repository to install from, and a folder to work in."""

    def __init__(self, python, repository, folder):
        self.python, self.folder = Path(python).absolute(), Path(folder)
        self.listing = self.python.parents[1] / "preinstalled.txt"
        kernel = self.folder / "jupyter" / "kernels" / "colab" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        kernel.write_text(json.dumps(self._kernel(repository)), encoding="utf-8")

    def _kernel(self, repository):
        """Return what Jupyter must know to start a kernel as Colab does."""
        return {
            "argv": [f"{self.python}", "-m", "google.colab", "-f", "{connection_file}"],
            "display_name": "Colab",
            "env": {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
                "GIT_CONFIG_VALUE_0": ADDRESS,
                "PYTHONPATH": f"{HERE / 'stand_in'}",
                "TUTORIAL_DATA": f"{self.folder / 'data'}",  # where nothing is yet
            }
            | ENVIRONMENT,
            "language": "python",
        }

    def restore(self):
        """Bring the environment back to what is preinstalled."""
        self._uv("sync", self.listing)

    def preinstalled(self):
        """Return the versions of the packages that were there at first, by name."""
        pins = self.listing.read_text(encoding="utf-8").split()
        return dict(pin.split("==") for pin in pins)

    def installed(self):
        """Return the versions of the packages in the environment, by name."""
        listing = json.loads(self._uv("list", "--format=json"))
        return {package["name"]: package["version"] for package in listing}

    def _uv(self, command, *words):
        uv = Path(sys.executable).with_name("uv")
        command = [uv, "pip", command, "--quiet", "--python", self.python, *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def run(self, path):
        """Run a notebook alone in an empty folder, with nbval.

        Returns what the plugin ``cells`` writes of each cell, as dictionaries, and what
        pytest prints if it fails, or "".
        """
        folder = self.folder / path.stem
        folder.mkdir()
        shutil.copy(path, folder)
        record = self.folder / f"{path.stem}.jsonl"
        record.touch()
        settings = {
            "COLAB_RECORD": f"{record}",
            "JUPYTER_PATH": f"{self.folder / 'jupyter'}",
            "PYTHONPATH": f"{HERE.parent}",
        }
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *PYTEST, f"--rootdir={folder}", path.name],
            cwd=folder,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = record.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines], ran.stdout * (ran.returncode != 0)


def publish(root, folder):
    """Make a repository of the tracked files of ``root``, with an address and a tag.

    Returns its folder.
    """
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, check=True, stdout=subprocess.PIPE
    )
    for name in map(os.fsdecode, listing.stdout.split(b"\0")[:-1]):
        if (root / name).is_file():  # else it was deleted, and that is not committed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    command = [sys.executable, "-m", "tools", "repository", ADDRESS, "--ref", REF]
    tools = os.environ | {"PYTHONPATH": f"{Path(__file__).parents[2]}"}
    subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=tools
    )
    commit = ["commit", "--quiet", "-m", "The book as it stands in the working tree"]
    for words in (["init", "--quiet"], ["add", "--all"], commit, ["tag", REF]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    return folder


def changes(before, after):
    """Say what the setup cell did to packages besides adding some.

    Both arguments map names to versions.
    """
    sentences = [] if LIBRARY in after else [f"{LIBRARY} was not installed"]
    for name, version in before.items():
        if name not in after:
            sentences.append(f"{name} {version}, which is preinstalled, was removed")
        elif after[name] != version:
            sentences.append(
                f"{name} {version}, which is preinstalled, became {after[name]}"
            )
    return sentences
