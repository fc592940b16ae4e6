"""Parameters that a model proposes, as lines and values to try; this package does and checks everything else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from keyword import iskeyword

from cutegen_lab.tuning.refactor.knobs import Knob, role_of
from cutegen_lab.tuning.refactor.text import KernelText, whole_number

MOST_LINES = 20  # maximum number of lines of an answer that are read
_LINE = re.compile(r"[-*`\s]*([A-Za-z_]\w{0,30})\s*=\s*(\d{1,6})\s+at\s+lines?\s+([\d,\s]+?)\s+in\s+([\d,\s]+?)[.`\s]*")


def proposed(answer: str, text: KernelText) -> Iterator[Knob | str]:
    """A knob for each line ``name = value at lines 12, 21 in 2, 4, 8`` that fits ``text``, and messages about lines
    that do not fit. Other lines are ignored."""
    for line in answer.splitlines()[:MOST_LINES]:
        if (match := _LINE.fullmatch(line)) is None:
            continue
        name, value, lines, values = match[1], int(match[2]), _numbers(match[3]), _numbers(match[4])
        sites = tuple(
            text.span(node) for node in ast.walk(text.tree)
            if whole_number(node) == value and getattr(node, "lineno", 0) in lines and id(node) not in text.formatted
        )  # fmt: skip
        if iskeyword(name) or name in text.names:
            yield f"the name {name} is in use"
        elif not sites or any(text.owner(site) is None for site in sites):
            yield f"{name}: no {value} in a function on line {', '.join(map(str, lines))}"
        else:
            domain = tuple(sorted({value, *(v for v in values if v > 0)}))[:8]
            yield Knob(name, value, role_of(name), domain, tuple(dict.fromkeys(sites)), line=min(lines))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d{1,6}", text)]
