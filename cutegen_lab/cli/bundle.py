"""``cutegen bundle FILE…``: joins a kernel and the modules that it imports into one text that can be judged."""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path
from typing import Any

from cutegen_lab.cli.judge import OTHER_VERDICT
from cutegen_lab.cli.output import Output, note
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.verdict import Diagnostic


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.bundle import bundle
    from cutegen_lab.compile import gate
    from cutegen_lab.session.kernels import with_header
    from cutegen_lab.session.outputs import may_write, write_out

    files = [Path(file) for file in arguments.files]
    out = Path(arguments.out or f"{files[0].stem}_bundle.py")
    if any(out.exists() and file.exists() and out.samefile(file) for file in files):
        raise InputError(f"{out} is one of the files to join", "Name another one with --out.")
    may_write(out)
    made = bundle(files, arguments.entry)
    text = with_header([], made.text)
    above = text.count("\n") - made.text.count("\n")  # number of lines of the heading
    write_out(out, text)
    for one in made.notices:
        note(f"{one.file}:{one.line}: {one.message}. {one.action}")
    refused = gate.check(made.text)
    output.line(f"{out}: {len(made.pieces)} definitions of {len(made.files)} files, {len(text.encode()):,} B")
    for name, new in made.renamed.items():
        output.line(f"  {name} is called {new} there")
    for found in refused:
        where = made.origin(found.line) or f"{out}:{found.line + above}"
        output.line(f"  {where}: {found.code}: {found.message}. {found.suggestion}")
    if refused:
        output.line(f"{out} would be refused: change these {len(refused)} places, and bundle again")
    else:
        output.line(f"judge it by: cutegen judge PROBLEM.py {out}")
    pieces = [
        {"line": piece.line + above, "file": piece.file, "names": list(piece.names), "lines": _runs(piece.source_lines)}
        for piece in made.pieces
    ]
    facts = {
        "kernel": str(out), "bytes": len(text.encode()), "files": list(made.files), "renamed": made.renamed,
        "reason": f"the gate refuses {len(refused)} places" if refused else "",
        "notices": [vars(one) for one in made.notices],
        "refused": [_refusal(found, made.origin(found.line), above) for found in refused],
        "map": pieces,
    }  # fmt: skip
    output.result(facts)
    return OTHER_VERDICT if refused else 0


def _refusal(found: Diagnostic, origin: str, above: int) -> dict[str, Any]:
    return {
        "line": found.line + above if found.line else 0, "from": origin, "code": found.code, "message": found.message,
        "action": found.suggestion,
    }  # fmt: skip


def _runs(lines: tuple[int, ...]) -> list[list[int]]:
    """Runs of consecutive lines of a definition: [first line in the file, number of lines]."""
    runs = []
    for _, group in groupby(enumerate(lines), key=lambda pair: pair[1] - pair[0]):
        several = [line for _, line in group]
        runs.append([several[0], len(several)])
    return runs
