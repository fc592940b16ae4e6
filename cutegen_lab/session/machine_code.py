"""PTX and SASS of a compiled candidate, each line with the line of the candidate's text that it is from."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_lab.compile.disassembly import NoDisassembler, disassembled
from cutegen_lab.core.artifact import Build
from cutegen_lab.session.same_lines import ptx_lines
from cutegen_lab.views.model import ListingLine, MachineCodeView


def machine_code(
    candidate_id: str, workload: str, build: Build, lines: Mapping[int, int] | None = None
) -> MachineCodeView:
    """Listings of ``build``. ``lines``: line of the compiled text → line of the text that is shown; None if these are
    the same text."""

    def shown(line: int) -> int:
        return line if lines is None else lines.get(line, 0)

    ptx = [ListingLine(text=text.expandtabs(4), line=shown(line or 0)) for text, line in ptx_lines(build)]
    note, sass = "", list[ListingLine]()
    try:
        for each in disassembled(build.cubin):
            sass.append(ListingLine(text=each.text, line=shown(each.line), stall=each.stall))
    except NoDisassembler as error:
        note = str(error)
    return MachineCodeView(candidate_id=candidate_id, workload=workload, ptx=ptx, sass=sass, sass_note=note)
