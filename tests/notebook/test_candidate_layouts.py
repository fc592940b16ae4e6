"""``run.layouts()``: a candidate's layouts as a table and as pictures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.trial import SharedAccess
from cutegen_lab.layouts.conflicts import conflicting
from cutegen_lab.layouts.traced import MadeLayout
from cutegen_lab.notebook.candidate_layouts import CandidateLayouts
from tests.notebook.test_magics import started


@pytest.mark.kernel
def test_of_a_run(shell: InteractiveShell) -> None:
    run = started(shell)
    found = run.layouts()
    assert len(found) and str(found.made[0].lines[0]) in repr(found)
    assert found[0].facts["layout"] == found.made[0].layout
    line = found.made[0].lines[0]
    assert run.source.split("\n")[line - 1].strip()[:40] in repr(found)
    with pytest.raises(InputError, match=r"c99 of run .* is not compiled"):
        run.layouts("c99")


def test_a_table_is_escaped_and_counts_its_lines() -> None:
    found = CandidateLayouts(
        [MadeLayout("(8,64):(64,1)", "f16", (1, 2, 3, 4, 5, 6), "tensor in shared memory")], "a < b  # \x1b[0m\n" * 6
    )
    assert "1, 2, 3, 4 and 2 more" in repr(found) and "\x1b" not in repr(found)
    assert "a &lt; b" in found._repr_html_() and "<td>f16 tensor in shared memory</td>" in found._repr_html_()
    assert [picture.facts["layout"] for picture in found] == ["(8,64):(64,1)"]
    with pytest.raises(InputError, match=r"there is no layout 1\. There are 1, counted from 0"):
        found[1]


def test_an_access_with_conflicts_is_a_line_of_the_table() -> None:
    kept = SharedAccess(2, "load", 4, tuple(range(32)), tuple(range(0, 4096, 128)), 32, 1, 992.0)
    found = CandidateLayouts([*conflicting([kept, replace(kept, line=0)])], "a = 1\nb = tile[lane, row]\n")
    said = "load of 4 bytes per lane: 32 wavefronts instead of 1  access with bank conflicts  2      b = tile"
    assert said in repr(found)
    assert found[0].facts["wavefronts"] == 32 and "<td>b = tile[lane, row]</td>" in found._repr_html_()


def test_a_part_is_drawn_without_options_that_there_are_not() -> None:
    (picture,) = CandidateLayouts([MadeLayout("(128,256):(256,1)", "", (1,), "layout")], "layout = ...")
    assert "Shown: rows 0 to 63 of 128\n" in repr(picture) and "--rows" not in repr(picture)
