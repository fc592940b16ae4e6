"""Documents: links lead somewhere, specs compile, the two first pages stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cutegen_lab.cli import main
from cutegen_lab.judge.draws import distributions, names, structured

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
MOST_LINES = {"README.md": 150, "ARCHITECTURE.md": 120}
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPEC = re.compile(r"^```(?:cutespec\n|python\n%%cutespec\n)(.*?)^```$", re.MULTILINE | re.DOTALL)
SPECS = [
    pytest.param(text, id=f"{path.stem}-{number}")
    for path in DOCUMENTS
    for number, text in enumerate(_SPEC.findall(path.read_text(encoding="utf-8")), 1)
]


def anchors(path: Path) -> set[str]:
    """Names that a link may give after ``#``, as GitHub makes them of headings."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file) if file else path
        assert target.exists(), f"{link}: there is no such file"
        assert not anchor or anchor in anchors(target), f"{link}: there is no such heading"


@pytest.mark.parametrize("name", MOST_LINES)
def test_a_first_page_is_short(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= MOST_LINES[name]


@pytest.mark.parametrize("text", SPECS)
def test_a_spec_in_a_document_compiles(text: str, tmp_path: Path) -> None:
    (tmp_path / "spec").write_text(text, encoding="utf-8")
    assert main(["spec", "check", str(tmp_path / "spec")]) == 0


def test_specs_are_found() -> None:
    assert len(SPECS) > 8


def test_every_draw_that_evidence_names_is_in_the_judges_document() -> None:
    document = (ROOT / "docs" / "judge.md").read_text()
    constants = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    groups = {each for value in vars(names).values() if isinstance(value, tuple) for each in value}
    every = {*distributions.DISTRIBUTIONS, *distributions.BEYOND_F16, *structured.STRUCTURED, *constants, *groups}
    told = {f"{name}N" if name.endswith(" ") else name for name in every - {names.ALL_TRUE}}
    assert not {name for name in told if f"`{name}`" not in document}
