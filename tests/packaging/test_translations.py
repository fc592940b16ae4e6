"""JupyterLab's server finds the catalogues; tests/translation.test.tsx in labextension/ is about what is in them."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from jupyterlab_server import translation_utils

ROOT = Path(__file__).parents[2]


def test_the_server_finds_the_catalogue_by_the_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    group = translation_utils.JUPYTERLAB_LOCALE_ENTRY
    points = [EntryPoint(name, value, group) for name, value in declared[group].items()]
    monkeypatch.setattr(translation_utils, "entry_points", lambda group: points)
    found, errors = translation_utils.get_installed_packages_locale("de_DE")
    assert not errors.strip()
    assert found["cutegen_lab"]["New run"] == ["Neuer Lauf"]
    assert found["cutegen_lab"][""]["domain"] == "cutegen_lab"
