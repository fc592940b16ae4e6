"""The page that is sent: it loads nothing, runs nothing, and shows the text with its costly lines."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import replace
from html import unescape

import pytest
from run_script import Script

from cutegen_lab.cli.arguments import build_parser
from cutegen_lab.core.cost import Price, price_of
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.profiles import plot_data, roofline
from cutegen_lab.profiles.row import Row
from cutegen_lab.profiles.rows import rows as rows_of
from cutegen_lab.views.again import command, problem_file
from cutegen_lab.views.coloured import coloured_lines
from cutegen_lab.views.html import RunPage, report
from cutegen_lab.views.model import HeatColumn, TermView
from cutegen_lab.views.numbered import numbered_lines
from cutegen_lab.views.plots.words import cell_text, moved_text
from cutegen_lab.views.run_view import build_view
from tests.profiles.recorded import recorded
from tests.views.test_views import HOSTILE, sample, tags

MATMUL = recorded("matmul")
ROWS = rows_of(MATMUL.state, MATMUL.builds)


def page() -> str:
    view = sample("review")
    shown = view.candidates[-1]
    heat = [
        HeatColumn(label="Sectors", unit=HOSTILE, total=40, lines={1: 10, 3: 20}),
        HeatColumn(label="Waits", unit="waits", total=4, lines={3: 1}),
    ]
    text = f"one\n{HOSTILE}\nthree <b>"
    terms = [TermView(name="memory", us=3), TermView(name="loads", us=1, part=True), TermView(name="launch", us=1)]
    changed = shown.model_copy(update={"source": text, "heat": heat, "terms": terms, "specialised": None})
    view = view.model_copy(update={"candidates": [*view.candidates[:-1], changed], "current_id": changed.id})
    return report([RunPage(view, command=f"cutegen run {HOSTILE}")])


def bare(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


def test_nothing_is_loaded_and_no_script_runs() -> None:
    html = page()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy.startswith("default-src 'none';") and "script-src" not in policy
    assert html.index("Content-Security-Policy") < html.index("<style>"), "it holds for what follows it"
    seen = tags(html)
    assert not seen.handlers and not {"script", "img", "iframe", "link", "object", "form"} & set(seen.tags)
    assert not re.search(r"url\(|@import", html[html.index("<style>") : html.index("</style>")])


def test_lines_are_numbered_and_the_costly_ones_have_bars() -> None:
    html = page()
    text = html[html.index('<pre class="cg-source"') :]
    lines = re.findall(
        r"<span(?: title=\"([^\"]*)\")?><i>(\d+)</i><b>(?:<u style=\"width:([\d.]+)%\"></u>)?</b>"
        r"((?:<span class=\"\w\">.*?</span>|[^<])*)</span>", text,
    )  # fmt: skip
    assert [(n, w, bare(t)) for _, n, w, t in lines[:3]] == [
        ("1", "50.0", "one"), ("2", "", HOSTILE), ("3", "100.0", "three <b>"),
    ]  # fmt: skip
    assert [title for title, *_ in lines[:3]] == ["Sectors 25.0%", "", "Sectors 50.0%, Waits 25.0%"]


def test_a_text_without_a_profile_has_numbers_and_no_bars() -> None:
    candidate = sample("review").candidates[-1].model_copy(update={"heat": []})
    assert [line.number for line in numbered_lines(candidate)] == list(range(1, len(candidate.source.splitlines()) + 1))
    assert all(line.share == 0 and not line.title for line in numbered_lines(candidate))


def test_the_summary_comes_first_and_provenance_is_folded() -> None:
    html = page()
    order = [
        'class="cg-cards"',
        'class="cg-plots"',
        "<figcaption>Lineage",
        "<figcaption>Where the predicted time of",
        'class="cg-source"',
        "How to run it again",
        "Provenance of",
    ]
    assert sorted(order, key=html.index) == order
    widths = re.findall(r'<td class="cg-bar"><b><u style="width:([\d.]+)%"', html)
    assert widths == ["75.0", "25.0", "25.0"]
    for folded in ("Provenance of", "Workloads ("):
        assert re.search(rf"<details><summary>{re.escape(folded)}", html), folded
    assert "@media print" in html and "color-scheme:light dark" in html


def recorded_page(rows: tuple[Row, ...] = ROWS) -> str:
    return report([RunPage(build_view(MATMUL.state, []), rows, command(MATMUL.state))])


def test_plots_are_of_the_numbers_that_the_notebooks_have() -> None:
    html = recorded_page()
    names = re.findall(r'<svg class="cg-plot" viewBox="[^"]+" role="img" aria-label="([^"]+)"', html)
    figures = re.findall(r"<figure>.*?</figure>", html, re.S)
    assert [name.partition(":")[0].partition(" of ")[0] for name in names[:6]] == [
        "Lineage", "Roofline", "Time", "Error against fp64", "Memory", "Occupancy",
    ]  # fmt: skip
    assert all("<summary>Table</summary>" in figure for figure in figures if "<svg" in figure)
    drawn = next(figure for figure in figures if "<figcaption>Roofline" in figure)
    assert drawn.count("<circle") == 2 + len(roofline.points(ROWS)) and drawn.count("cg-ceiling") == 4
    assert {bare(name) for name in re.findall(r"<text class=\"cg-name\".*?</text>", drawn)} == set(
        MATMUL.state.candidates
    )
    shown = next(figure for figure in figures if "<figcaption>Memory of c1" in figure)
    for bar in plot_data.memory(ROWS, "c1"):
        assert moved_text(bar) in shown
    taken = next(figure for figure in figures if "<figcaption>Occupancy of c1" in figure)
    assert "gemm_kernel is limited by shared memory" in taken and "8 of 64 warps" in taken
    cells = plot_data.checks(ROWS, "c1")
    matrix = html[html.index("Checks of c1: ") :].partition("</table>")[0]
    assert f"0 of {sum(cell.checks for cell in cells)} checks failed" in matrix
    assert [bare(cell) for cell in re.findall(r"<td[^>]*>.*?</td>", matrix) if bare(cell)] == [
        cell_text(cell)
        for draw in dict.fromkeys(c.draw for c in cells) for name in dict.fromkeys(c.workload for c in cells)
        for cell in cells if (cell.workload, cell.draw) == (name, draw)
    ]  # fmt: skip


def test_every_candidate_of_the_lineage_has_its_verdict_and_time() -> None:
    figure = recorded_page().partition("<figcaption>Lineage")[2].partition("</figure>")[0]
    assert "c1 · accepted · 4.18 µs predicted · best · current" in figure
    assert "c2 · passed · 4.5 µs predicted, +7.8% vs c1" in figure
    failed = report([RunPage(Script().generate().fail_compile().view())]).partition("<figcaption>Lineage")[2]
    assert 'class="cg-square cg-bad"' in failed and "c1 · compile error" in failed


def test_the_command_on_a_page_starts_the_same_run() -> None:
    limits = Budget(max_steps=3, max_seconds=60.0, max_tokens=5000, max_usd=0.5)
    for settings in (
        MATMUL.state.settings,
        RunSettings("replay:an answer; rm -rf.json", "a 'model'", device="cuda:1", gpu="H100", language="spec",
                    budget=limits, price=Price(1.25, 10.0)),
    ):  # fmt: skip
        sol = replace(MATMUL.state.sol, gpu=settings.gpu or "H200")
        state = replace(
            MATMUL.state, settings=settings, sol=sol, problem=replace(MATMUL.state.problem, inputs_text="a b")
        )
        program, *words = shlex.split(command(state))
        read = build_parser().parse_args(words)
        assert program == "cutegen" and read.inputs == "a b" and read.problem == "matmul.py"
        for name in ("provider", "model", "arch", "device", "auto", "language"):
            assert getattr(read, name) == getattr(settings, name)
        asked = Budget(read.max_steps, settings.budget.max_fixes, read.max_seconds, read.max_tokens, read.max_cost)
        assert read.gpu == sol.gpu and asked == settings.budget
        assert price_of(read.price) == settings.price
    assert command(MATMUL.state) in unescape(recorded_page())
    assert problem_file("../x; y") == "___x__y.py"


def test_names_in_plots_are_escaped_and_act_on_nothing() -> None:
    """Kernels, workloads and draws of a run that somebody sent."""
    bad = f"{HOSTILE}\x1b\u202e"
    rows = tuple(
        replace(
            row, kernel=row.kernel and bad + row.kernel, workload=bad,
            subject=bad if row.source == "judge" else row.subject,
        )
        for row in ROWS
    )  # fmt: skip
    html = recorded_page(rows)
    seen = tags(html)
    assert HOSTILE not in html and not seen.handlers and not {"script", "img"} & set(seen.tags)
    assert "\x1b" not in html and "\u202e" not in html and html.count("&lt;script&gt;") > 6
    for value in (float("nan"), float("inf"), 0.0, -1.0):
        odd = tuple(replace(row, value=value) if row.source in ("emulator", "judge") else row for row in ROWS)
        drawn = "".join(re.findall(r"<svg.*?</svg>", recorded_page(odd), re.S))
        assert "nan" not in drawn and '"inf' not in drawn


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return 'a' + str(x)  # twice\n", "a\r\nb\x0cc\u2028'''x\ny\x85z\n\n", "'''never closed\n<b>\n",
        "no python: ( [ \\ \x00\n\tx", "", "\n\n", f"{HOSTILE}\n'{HOSTILE}'\n# {HOSTILE}\n@{HOSTILE}", "x" * 300_000,
    ],
)  # fmt: skip
def test_coloured_text_is_the_text(text: str) -> None:
    lines = coloured_lines(text)
    assert [bare(line) for line in lines] == text.splitlines()
    assert not re.search(r"<(?!/?span)", "".join(lines))


def test_python_has_colours_on_a_page_and_its_lines_stay() -> None:
    assert coloured_lines("@jit\ndef f(x):\n    return 1.5  # half") == [
        '<span class="d">@jit</span>', '<span class="k">def</span> <span class="f">f</span>(x):',
        '    <span class="k">return</span> <span class="n">1.5</span>  <span class="c"># half</span>',
    ]  # fmt: skip
    started = time.process_time()
    for hard in ("'''" * 60_000, "(" * 190_000, "f'{" * 60_000, "'\\\n" * 60_000):
        coloured_lines(hard)
    assert time.process_time() - started < 60
