"""``%cute_layout``: a CuTe layout as a picture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, magics_class
from IPython.core.magic_arguments import argument

from cutegen_lab.layouts.options import EXAMPLES, OPTIONS
from cutegen_lab.notebook.shared_options import DEBUG, magic_with_options
from cutegen_lab.views.hints import NOTEBOOK, spelled

if TYPE_CHECKING:
    from cutegen_lab.layouts.picture import Picture

_OPTIONS = (
    *(argument(name, **settings) for name, settings in OPTIONS.items()),
    argument("--json", action="store_true", help="print the indices, owners and wavefronts instead"),
    DEBUG,
)
_EXAMPLE = "\n".join(f"  %cute_layout {words}" for words in EXAMPLES)


class ShownPicture:
    """A picture in a notebook. ``facts`` has its numbers."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self.facts = picture.facts

    def __repr__(self) -> str:
        return self._picture.text()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from cutegen_lab.layouts.drawing import html

        return {"text/plain": self._picture.text(), "text/html": html(self._picture)}


@magics_class
class LayoutMagic(Magics):
    """``%cute_layout``, which needs no session."""

    @magic_with_options("cute_layout", _OPTIONS, _EXAMPLE, of_a_line=True)
    def cute_layout(self, arguments: Any) -> ShownPicture | None:
        """Draws a CuTe layout, a TMA box, an operand of a tensor-core instruction or a tiled copy.

        Point at a cell to highlight what belongs to the same thread, bank or tile, in the layout and in memory.
        """
        from cutegen_lab.layouts.request import Request

        picture = Request.of(arguments).picture().advised(lambda hint: spelled(hint, NOTEBOOK))
        if arguments.svg:
            from cutegen_lab.session.outputs import write_svg

            write_svg(arguments.svg.strip("\"'"), picture)
        if arguments.json:
            print(json.dumps(picture.facts))
            return None
        return ShownPicture(picture)
