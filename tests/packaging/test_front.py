"""What the front end's files promise the Python package."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from urllib.parse import urlparse

import cutegen_lab

ROOT = Path(__file__).parents[2]
FRONT = ROOT / "labextension"


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = json.loads((FRONT / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((FRONT / "package-lock.json").read_text(encoding="utf-8"))
    assert {package["version"], lock["version"], cutegen_lab.__version__} == {project["version"]}


def test_lockfile_names_no_other_host_than_npms() -> None:
    lock = json.loads((FRONT / "package-lock.json").read_text(encoding="utf-8"))
    resolved = [entry["resolved"] for entry in lock["packages"].values() if "resolved" in entry]
    assert {urlparse(url).hostname for url in resolved} <= {"registry.npmjs.org"}
    unpinned = [name for name, entry in lock["packages"].items() if name and "integrity" not in entry]
    assert not unpinned, "entries without an integrity hash can change under us"


def test_the_extension_is_found_under_one_name() -> None:
    package = json.loads((FRONT / "package.json").read_text(encoding="utf-8"))
    (paths,) = cutegen_lab._jupyter_labextension_paths()
    assert paths["dest"] == package["name"]
    assert (FRONT / package["jupyterlab"]["outputDir"]).resolve() == ROOT / "cutegen_lab" / paths["src"]
