"""What an installer hears where the pinned versions have no wheels."""

import sys
from pathlib import Path

import pytest

from tools import building

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("version", [(3, 9), (3, 14)])
def test_another_python_is_told_how_to_get_one_that_fits(version, monkeypatch):
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match=r"3\.\d+\. .*: uv venv --python 3\.13$"):
        building.get_requires_for_build_editable()


@pytest.mark.parametrize("version", [(3, 10), (3, 13)])
def test_a_python_that_fits_builds_as_setuptools_does(version, monkeypatch):
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(building, "_requirements", lambda settings: ["setuptools"])
    assert building.get_requires_for_build_editable() == ["setuptools"]
    assert building.build_wheel.__module__ == "setuptools.build_meta"


def test_installers_ask_this_module():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'build-backend = "{building.__name__}"' in project
