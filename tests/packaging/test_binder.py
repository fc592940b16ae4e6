"""``binder/`` by repo2docker's rules: constraints are relative to its file, an editable install to the checkout."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"


def test_paths_of_the_requirements_exist() -> None:
    lines = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    options = {line.split()[0]: line.split()[1] for line in lines}
    assert (BINDER / options["-c"]).is_file()
    assert (ROOT / options["-e"] / "pyproject.toml").is_file()


def test_torch_is_the_build_without_cuda() -> None:
    """PyPI's brings several GB that a machine without a GPU has no use for."""
    assert "--extra-index-url https://download.pytorch.org/whl/cpu" in (BINDER / "requirements.txt").read_text()


def test_its_python_is_one_that_the_package_takes() -> None:
    version = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version in SpecifierSet(project["requires-python"])


def test_post_build_can_be_executed() -> None:
    assert os.access(BINDER / "postBuild", os.X_OK)
