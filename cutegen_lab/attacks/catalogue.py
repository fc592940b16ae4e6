"""Reads the attacks in ``texts/``. A file's docstring is its front matter::

    \"\"\"What it does, in a sentence or two.

    class: writes half
    defence: outputs are poisoned before two runs, with different bytes
    verdicts: unwritten_output
    \"\"\"

Further keys: ``behind the gate`` (the correct verdicts if the gate is skipped), ``scratch`` and ``needs`` (see
``attack.py``), and ``not caught yet`` (why it is not). Indented lines continue a value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from cutegen_lab.attacks.attack import NEEDS, SCRATCH, Attack
from cutegen_lab.core.syntax import parse
from cutegen_lab.core.verdict import Verdict

TEXTS = Path(__file__).with_name("texts")
PRELUDE = TEXTS / "_prelude.py"
_KEY = re.compile(r"^([a-z][a-z ]*): *(.*)$")
_KEYS = {"class", "defence", "verdicts", "behind the gate", "scratch", "needs", "not caught yet"}


@lru_cache(maxsize=1)
def catalogue() -> tuple[Attack, ...]:
    """Every attack, sorted by class and name. Raises ValueError for a text with wrong front matter."""
    found = [_read(path) for path in TEXTS.glob("[!_]*.py")]
    return tuple(sorted(found, key=lambda a: (not a.is_kernel, a.kind, a.name)))


def read_header(text: str, keys: set[str]) -> tuple[str, Mapping[str, str]]:
    """A module's description and its front matter by key. Raises ValueError for an unknown or missing key."""
    paragraphs: list[str] = []
    values: dict[str, str] = {}
    last = ""
    for line in (ast.get_docstring(parse(text)) or "").splitlines():
        match = _KEY.match(line)
        if match and match[1] in keys:
            last = match[1]
            values[last] = match[2]
        elif last and line.startswith(" "):
            values[last] = f"{values[last]} {line.strip()}".strip()
        elif not last:
            paragraphs.append(line)
        elif line.strip():
            raise ValueError(f"front matter has the line {line!r}; the keys are {', '.join(sorted(keys))}")
    missing = {"class", "defence", "verdicts"} - set(values)
    if missing:
        raise ValueError(f"front matter lacks {', '.join(sorted(missing))}")
    return " ".join(" ".join(paragraphs).split()), values


def verdicts(text: str) -> tuple[Verdict, ...]:
    """Parses a list such as ``out_of_bounds, wrong_result``. Raises ValueError for an unknown verdict."""
    return tuple(Verdict(part.strip()) for part in text.split(",") if part.strip())


def _read(path: Path) -> Attack:
    text = path.read_text(encoding="utf-8")
    try:
        what, values = read_header(text, _KEYS)
        needs = tuple(part.strip() for part in values.get("needs", "").split(",") if part.strip())
        scratch = values.get("scratch", "")
        if not set(needs) <= set(NEEDS) or scratch not in SCRATCH:
            raise ValueError(f"unknown needs {needs} or scratch {scratch!r}")
        return Attack(
            name=path.stem, kind=values["class"], what=what, defence=values["defence"],
            verdicts=verdicts(values["verdicts"]), behind_gate=verdicts(values.get("behind the gate", "")), text=text,
            scratch=scratch, needs=needs, open_reason=values.get("not caught yet", ""),
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
