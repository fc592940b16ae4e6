"""Words that may stand next in a spec, for completion in an editor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from cutegen_lab.core.roofline import GPUS
from cutegen_lab.cutespec.functions import NAMED
from cutegen_lab.cutespec.parse import ARCH, DTYPES, STATEMENTS

_LAST_WORD = re.compile(r"\w*\Z")
_TYPED = re.compile(r"\s*(?:in|out|tmp)\s+\w+\s*:\s*")
_VALUE = re.compile(r"\s*(?:(?:out|tmp)\s[^=]*|\w+\s*)=(?!=)")
_CALL = re.compile(r"(\w+)\s*\([^()]*\Z")
_DEFINED = re.compile(r"^[ \t]*(?:(?:in|out|tmp)[ \t]+(\w+)[ \t]*:|(\w+)[ \t]*=)", re.MULTILINE)


def words_in_spec(text: str) -> list[str]:
    """Words that may stand at the end of ``text``, a spec up to the cursor, whose last word is incomplete or empty."""
    last = _LAST_WORD.search(text)
    assert last is not None
    above, _, line = text[: last.start()].rpartition("\n")
    return [word for word in _fitting(above, line) if word.startswith(last[0])]


def _fitting(above: str, line: str) -> Iterable[str]:
    statement, *words = line.split() or [""]
    if "#" in line:
        return ()
    if not statement:
        return STATEMENTS
    if _TYPED.fullmatch(line):
        return DTYPES
    match statement:
        case "kernel":
            return _after_name(words)
        case "schedule":
            return _parameters()["schedule"]
        case "with":
            assigned = re.search(r"(\w+)\s*=\s*\Z", line)
            return _parameters().get(assigned[1], ()) if assigned else (f"{name}=" for name in sorted(_parameters()))
    if _VALUE.match(line):
        called = _CALL.search(line)
        keywords = NAMED[called[1]].keywords if called and called[1] in NAMED else ()
        defined = (first or second for first, second in _DEFINED.findall(above))
        return dict.fromkeys([*(f"{keyword}=" for keyword in keywords), *defined, *sorted(NAMED)])
    return ()


def _after_name(words: Sequence[str]) -> Iterable[str]:
    if words[-1:] == ["for"]:
        return dict.fromkeys(gpu.arch for gpu in GPUS.values())
    if words[-1:] == ["in"]:
        return ("tf32",)
    return [word for word in ("for", "in") if word not in words] if words else ()


@cache
def _parameters() -> Mapping[str, Sequence[str]]:
    """Values of all templates' parameters, by name."""
    from cutegen_lab.templates.registry import families  # takes half a second: imported only here

    found: dict[str, list[str]] = {}
    for family in families(ARCH):
        for name, values in family.domains.items():
            found[name] = list(dict.fromkeys([*found.get(name, ()), *map(str, values)]))
    return found
