"""``cutegen layout``: a CuTe layout as text, SVG or JSON."""

from __future__ import annotations

import argparse

from cutegen_lab.cli.output import Output
from cutegen_lab.layouts.request import Request
from cutegen_lab.views.hints import COMMAND_LINE, spelled


def execute(arguments: argparse.Namespace, output: Output) -> int:
    picture = Request.of(arguments).picture().advised(lambda hint: spelled(hint, COMMAND_LINE))
    if arguments.svg:
        from cutegen_lab.session.outputs import write_svg

        write_svg(arguments.svg, picture)
    output.line(picture.text())
    if arguments.svg:
        output.line(f"wrote {arguments.svg}")
    output.result(picture.facts)
    return 0
