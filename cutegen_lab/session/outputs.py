"""Files written where the analyst says (``--out``, ``export``); files that cutegen did not write are never
overwritten."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.session.kernels import is_unmodified, write_atomically

if TYPE_CHECKING:
    from cutegen_lab.layouts.picture import Picture

ARCHIVE_SUFFIX = ".cutegen"
"""Suffix of a file with a whole run."""
SUITE_FORMAT: Final = "cutegen-suite"
"""Value of the first field, ``format``, of a suite's record."""
_MOST_BYTES = 64 << 20  # largest page that is recognised as cutegen's, in bytes


def may_write(path: Path, problem: str | Path = "") -> None:
    """Raises InputError if ``path`` is the problem's own file, or one that cutegen did not write or that was changed
    since. Call it before the work, and again before writing."""
    if not os.path.lexists(path):
        return
    if problem and path.exists() and Path(problem).exists() and path.samefile(problem):
        raise InputError(f"{path} is the problem's own file", Hint(Advice.OTHER_OUT))
    if not path.is_file():
        raise InputError(f"{path} exists and is not a regular file", "Name another one.")
    if not _ours(path):
        raise InputError(
            f"{path} exists, and cutegen did not write it, or it was changed since", "Name another one, or delete it."
        )


def write_out(path: Path, contents: str | bytes, problem: str | Path = "") -> None:
    """Writes a file atomically. Raises InputError as :func:`may_write`, StoreError if it cannot be written. A file that
    already has these contents is accepted, whoever wrote it."""
    if path.is_file() and path.read_bytes() == (contents.encode() if isinstance(contents, str) else contents):
        return
    may_write(path, problem)
    write_atomically(path, contents)


def write_svg(path: str, picture: Picture) -> None:
    """Writes a picture of a layout. Raises as :func:`write_out`."""
    from cutegen_lab.layouts.drawing import svg
    from cutegen_lab.views.html import GENERATOR

    write_out(Path(path), f"<!-- {GENERATOR} -->\n{svg(picture)}")


def _ours(path: Path) -> bool:
    """Whether the file is a kernel or problem with the hash of its own text, a page, view, profile, picture or suite,
    or an archived run."""
    from pydantic import ValidationError

    from cutegen_lab.core.timeline import TRACE_MARK
    from cutegen_lab.profiles.row import COLUMNS, RECORD
    from cutegen_lab.stores.archive import read_archive
    from cutegen_lab.views.html import GENERATOR
    from cutegen_lab.views.model import RunView

    if path.suffix == ARCHIVE_SUFFIX:
        try:
            read_archive(path)
        except InputError:
            return False
        return True
    try:
        if path.stat().st_size > _MOST_BYTES:
            return False
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if path.suffix == ".csv":
        return text.startswith((",".join(COLUMNS) + "\n", f"{RECORD},"))
    if path.suffix == ".json":
        if text.startswith('{"traceEvents":') and TRACE_MARK in text:
            return True
        if text.startswith(f'{{\n  "format": "{SUITE_FORMAT}"'):
            return True
        try:
            RunView.model_validate_json(text)
        except ValidationError:
            return False
        return True
    return is_unmodified(text) or GENERATOR in text[:2000]
