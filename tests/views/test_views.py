"""A run as people see it: text, HTML and verbs, on runs made from events (``labextension/tests/samples``)."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import escape

from cutegen_lab.views.html import RunPage, fragment, report
from cutegen_lab.views.model import RunView, TrendPoint
from cutegen_lab.views.text import diff_text, evidence_table, standing, summary

SAMPLES = sorted((Path(__file__).parents[2] / "labextension" / "tests" / "samples").glob("*.json"))
HOSTILE = "<script>alert('x')</script><img src=x onerror=y>&\"'"


def sample(name: str) -> RunView:
    return RunView.model_validate_json(next(p for p in SAMPLES if p.stem == name).read_text())


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def tags(html: str) -> _Tags:
    parser = _Tags()
    parser.feed(html)
    return parser


@pytest.mark.parametrize("path", SAMPLES, ids=[p.stem for p in SAMPLES])
def test_every_sample_shows_in_every_form(path: Path) -> None:
    view = RunView.model_validate_json(path.read_text())
    html = fragment(view)
    assert escape(view.problem.name) in html and "script" not in tags(html).tags
    text = summary(view) + evidence_table(view)
    assert view.problem.name in text
    assert "0x" not in text, "no memory addresses: text is compared by tests of notebooks"
    for candidate in view.candidates:
        assert candidate.id in html and candidate.id in text


def test_a_saved_review_lists_the_verbs_that_may_be_used() -> None:
    view = sample("review")
    assert view.status == "review" and {"approve", "reject", "edit", "stop"} <= set(view.verbs)
    assert "approve_unproven" not in view.verbs


def test_text_from_outside_is_escaped_everywhere() -> None:
    data = json.loads(next(p for p in SAMPLES if p.stem == "review").read_text())
    data["problem"]["source"] = data["problem"]["name"] = data["note"] = HOSTILE
    for candidate in data["candidates"]:
        for field in ("title", "reason", "predicted_effect", "source", "verdict_reason", "answer", "model"):
            candidate[field] = HOSTILE
        for row in candidate["evidence"]:
            row["value"] = row["detail"] = HOSTILE
    view = RunView.model_validate(data)
    for html in (fragment(view), report([RunPage(view)], title=HOSTILE)):
        seen = tags(html)
        assert "script" not in seen.tags and "img" not in seen.tags and not seen.handlers


def test_no_text_from_outside_acts_on_a_terminal() -> None:
    acting = "\x1b]0;t\x07\x9b\x08\x7f\u202e\u2066\u200b"
    data = json.loads(next(p for p in SAMPLES if p.stem == "review").read_text())
    data["note"] = data["problem"]["name"] = acting
    for candidate in data["candidates"]:
        for field in ("title", "reason", "predicted_effect", "source", "verdict_reason", "answer", "model"):
            candidate[field] = acting
        for row in candidate["evidence"]:
            row["value"] = row["detail"] = acting
        for line in candidate["diff"]:
            line["text"] = acting
    view = RunView.model_validate(data)
    diffs = [diff_text(candidate.diff) for candidate in view.candidates]
    for text in (
        summary(view),
        evidence_table(view),
        standing(view),
        *diffs,
        fragment(view),
        report([RunPage(view)], acting),
    ):
        assert not set(acting) & set(text) - set("]0;t"), ascii(text)
        assert not text or r"\x1b]0;t\x07\x9b\x08\x7f\u202e\u2066\u200b" in text


def test_times_say_whether_they_were_measured_or_predicted() -> None:
    view = sample("review")
    times = [row for c in view.candidates for row in c.evidence if row.key == "time"]
    assert times and all(row.basis in ("measured", "predicted") for row in times)
    assert re.search(r"Time\s+\S+ \S+ \((measured|predicted)\)", evidence_table(view))


def test_a_report_is_one_self_contained_page_even_with_infinite_errors() -> None:
    view = sample("review")
    odd = [TrendPoint(candidate_id="c9", verdict="wrong_result", error=math.inf, torch_error=1e-7)]
    page = report([RunPage(view.model_copy(update={"trend": [*view.trend, *odd]}))], title="runs")
    assert page.lstrip().startswith("<!")
    assert not re.search(r"(src|href)=[\"']https?:", page)


def _contrast(colour: str, ground: str) -> float:
    """WCAG 2.1, section 1.4.3."""

    def luminance(text: str) -> float:
        parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(colour), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def test_tones_of_a_page_can_be_read_on_light_and_on_dark() -> None:
    found = re.findall(r"--cg-(\w+):[^;]*?light-dark\((#\w{6}),(#\w{6})\)", report([RunPage(sample("review"))]))
    assert {name for name, _, _ in found} == {
        "dim", "good", "bad", "warn", "mark", "least", "keyword", "string", "number", "comment", "name",
    }  # fmt: skip
    for _, light, dark in found:
        assert _contrast(light, "#ffffff") >= 4.5 and _contrast(dark, "#1a1a1a") >= 4.5


def test_seeds_and_hashes_of_a_report_are_folded_away() -> None:
    html = report([RunPage(sample("review"))])
    assert html.count("<details><summary>Provenance of c") == len(sample("review").candidates)


def test_a_config_keeps_its_order_where_keys_are_sorted() -> None:
    """As nbformat writes a notebook."""
    view = sample("review")
    candidate = view.candidates[-1]
    values = [{"name": name, "value": 1} for name in ("vec", "loads", "threads")]
    data = view.model_dump(mode="json") | {"candidates": [candidate.model_dump(mode="json") | {"config": values}]}
    read = RunView.model_validate_json(json.dumps(data, sort_keys=True))
    assert "with vec=1 loads=1 threads=1" in report([RunPage(read)])


def declared(css: str, selector: str) -> dict[str, str]:
    """What the rules of exactly this selector say."""
    found = dict[str, str]()
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)):
        if selector in (each.strip() for each in re.split(r",(?![^(]*\))", selectors)):
            parts = (part.partition(":") for part in body.split(";") if part.strip())
            found |= {name.strip(): value.strip() for name, _, value in parts}
    return found


def test_measured_and_predicted_are_never_broken_into_two_lines() -> None:
    """Cells break anywhere, for hashes and names: "predict" stood above "ed" beside a long value."""
    page = report([RunPage(sample("review"))])
    for html in (fragment(sample("review")), page):
        style = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL))
        rows = re.findall(
            r"<td([^>]*)>(?:measured|predicted|bound)</td>", re.sub(r"(?s)<figure>.*?</figure>", "", html)
        )
        assert rows and set(rows) == {' class="cg-basis"'}
        assert declared(style, ".cg td.cg-basis") == {"white-space": "nowrap", "overflow-wrap": "normal"}
    assert re.search(r"<figure>.*?<td>[^<]* predicted</td>", page, re.DOTALL)
    assert declared(page, ".cg figure td") == {"overflow-wrap": "break-word"}
    widget = (SAMPLES[0].parents[2] / "style" / "candidate.css").read_text(encoding="utf-8")
    assert declared(widget, ".cg-evidence td")["overflow-wrap"] == "anywhere"
    assert declared(widget, ".cg-basis")["white-space"] == "nowrap"
