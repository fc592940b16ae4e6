"""A real IPython shell with the extension loaded, in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("notebook")
    patch.chdir(folder)
    patch.setenv("IPYTHONDIR", str(folder / "ipython"))
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "cutegen_lab")
    yield shell
    for run in list(shell.user_ns.values()):
        if hasattr(run, "handle"):
            run.handle.close()
    InteractiveShell.clear_instance()
    patch.undo()


@pytest.fixture
def without_displays(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal prints displays: that of an earlier run may be updated, by its thread, at any time."""
    monkeypatch.setattr(shell.display_pub, "publish", lambda *_, **__: None)


@pytest.fixture(scope="session")
def quickstart_text() -> str:
    return (Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb").read_text()
