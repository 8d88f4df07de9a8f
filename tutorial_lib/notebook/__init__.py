"""What is different where a notebook runs: controls, folds, claims, missing models."""

from tutorial_lib.notebook.claims import claim
from tutorial_lib.notebook.console import printable
from tutorial_lib.notebook.folds import prepare_notebook, unfolded
from tutorial_lib.notebook.progress import Stopped, progress_bar
from tutorial_lib.notebook.widgets import explore

__all__ = [
    "Stopped",
    "claim",
    "explore",
    "prepare_notebook",
    "printable",
    "progress_bar",
    "unfolded",
]
