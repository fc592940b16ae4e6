"""The page that is sent: it loads nothing, runs nothing, and shows the text with its costly lines."""

from __future__ import annotations

import re
from html import unescape

from cutegen_lab.views.html import report
from cutegen_lab.views.model import HeatColumn, TermView
from cutegen_lab.views.numbered import numbered_lines
from tests.views.test_views import HOSTILE, sample, tags


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
    return report([view.model_copy(update={"candidates": [*view.candidates[:-1], changed], "current_id": changed.id})])


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
    text = html[html.index('<pre class="cg-source">') :]
    lines = re.findall(
        r"<span(?: title=\"([^\"]*)\")?><i>(\d+)</i><b>(?:<u style=\"width:([\d.]+)%\"></u>)?</b>(.*?)</span>", text
    )
    assert [(n, w, unescape(t)) for _, n, w, t in lines[:3]] == [
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
        "Where the predicted time goes",
        'class="cg-source"',
        "Provenance of",
    ]
    assert sorted(order, key=html.index) == order
    widths = re.findall(r'<td class="cg-bar"><b><u style="width:([\d.]+)%"', html)
    assert widths == ["75.0", "25.0", "25.0"]
    for folded in ("Provenance of", "Reference (", "Workloads ("):
        assert re.search(rf"<details><summary>{re.escape(folded)}", html), folded
    assert "@media print" in html and "color-scheme:light dark" in html
