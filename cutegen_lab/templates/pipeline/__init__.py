"""Several kernels in one module, for what no single kernel of the families computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.pipeline.cut import Cutter, Piece
from cutegen_lab.templates.pipeline.pipeline import Pipeline
from cutegen_lab.templates.pipeline.wiring import Wiring
from cutegen_lab.templates.reader import Programs

__all__ = ["Pipeline", "pipeline_for"]
_WORDS = {"matrix": "gemm"}  # others go by the first word of their names


def pipeline_for(programs: Programs, why: ProviderError) -> Pipeline:
    """Cuts where the fewest bytes cross. ``why`` is what is wrong with one kernel for everything, raised where there
    is but one operation; otherwise ProviderError names the operation that is in the way."""
    cutter = Cutter(programs)
    alone = len(cutter.flow.order) < 2
    try:
        pieces = cutter.pieces()
    except ProviderError as error:
        raise why if alone else error from why
    if len(pieces) < 2:
        raise why
    return Pipeline(programs.problem, Wiring(cutter, pieces, list(_names(pieces))))


def _names(pieces: Sequence[Piece]) -> Iterator[str]:
    """``gemm``, ``row``; with a number where there are several."""
    words = [piece.family.NAME.split()[0] for piece in pieces]
    words = [_WORDS.get(word, word) for word in words]
    seen = Counter[str]()
    for word in words:
        seen[word] += 1
        yield word if words.count(word) == 1 else f"{word}{seen[word]}"
