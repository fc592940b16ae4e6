"""``cutegen export RUN``: a kernel or the whole run as files, in one of the formats of :mod:`cutegen_lab.exports`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from cutegen_lab.cli.facts import run_facts
from cutegen_lab.cli.output import Output
from cutegen_lab.cli.run import told
from cutegen_lab.core.errors import InputError
from cutegen_lab.exports import FORMATS
from cutegen_lab.session import Session


def execute(arguments: argparse.Namespace, output: Output) -> int:
    if arguments.list:
        return _list(output)
    if not arguments.run_id:
        raise InputError("which run?", "Name one of `cutegen runs list`; --list lists the formats.")
    with Session.open(arguments.workdir) as session:
        handle = session.find(arguments.run_id)
        suffix = FORMATS[arguments.format].suffix if arguments.format in FORMATS else ".py"
        path = Path(arguments.out or f"{arguments.run_id}{suffix}")
        written = handle.export_as(
            path, arguments.format, arguments.candidate, general=arguments.general, verify=not arguments.no_verify,
            say=told,
        )  # fmt: skip
        for each in written:
            output.line(str(each))
        paths = [str(each) for each in written]
        output.result({**run_facts(handle.state), "path": paths[0], "paths": paths})
    return 0


def _list(output: Output) -> int:
    from cutegen_lab.views.text import columns

    rows = [(f.name, f.suffix, f.help, f.needs) for f in FORMATS.values()]
    output.line("\n".join(columns([("format", "file", "what it is", "needs"), *rows])))
    kept = ("name", "suffix", "help", "needs", "of")
    output.result({"formats": [{k: v for k, v in asdict(f).items() if k in kept} for f in FORMATS.values()]})
    return 0
