"""The notebooks that come with the package."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.views.listing import TutorialView

_DOCS_LINK = re.compile(r"\[([^\]]*)\]\(\.\./(docs/[^)#]*)[^)]*\)")


@lru_cache(maxsize=1)
def tutorials_dir() -> Path | None:
    """``cutegen_lab/tutorials`` of an installed wheel, or the repository's ``notebooks/``."""
    package = Path(__file__).resolve().parents[1]
    places = package / "tutorials", package.parent / "notebooks"
    return next((place for place in places if (place / "01_quickstart.ipynb").is_file()), None)


def tutorials() -> list[TutorialView]:
    """Every tutorial, in order; titles begin with the numbers of their files."""
    folder = tutorials_dir()
    names = sorted(path.name for path in folder.glob("[0-9]*.ipynb")) if folder else []
    return [TutorialView(name=n, title=f"{int(n.partition('_')[0])} · {_title(tutorial(n), n)}") for n in names]


def tutorial(name: str) -> dict[str, Any]:
    """A tutorial as a notebook for any folder: links into the repository's ``docs/`` become names. Raises InputError if
    no tutorial has this name."""
    folder = tutorials_dir()
    for path in folder.glob("[0-9]*.ipynb") if folder else ():
        if path.name == name:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            for cell in found["cells"]:
                if cell["cell_type"] == "markdown":
                    cell["source"] = _DOCS_LINK.sub(_named, "".join(cell["source"]))
            return found
    raise InputError(f"there is no tutorial {one_line(name)[:80]!r}", "Open another.")


def _named(link: re.Match[str]) -> str:
    text, file = link.groups()
    return f"`{file}`" if text == file else f"{text} (`{file}`)"


def _title(notebook: dict[str, Any], name: str) -> str:
    """The first heading."""
    for cell in notebook["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line[2:].strip()
    return name
