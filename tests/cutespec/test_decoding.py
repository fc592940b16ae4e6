"""Grammars for constrained decoding accept the specs that the parser reads, and no others."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from cutegen_lab.core.errors import SpecError
from cutegen_lab.cutespec import GRAMMAR, parse
from cutegen_lab.cutespec.decoding import decoding_grammar
from cutegen_lab.cutespec.parse import STATEMENTS
from tests.cutespec.engines import ENGINES, Accepts, engine
from tests.cutespec.test_parse import mangled

ROOT = Path(__file__).parents[2]
BROKEN = [
    "kernel k fortsm_90\n",
    "kernel k for sm90\n",
    "kernel k in tf33\n",
    "in x: bf16[4]\n",
    "kernel k\ninx: bf16[4]\n",
    "kernel k\nin x bf16[4]\n",
    "kernel k\nin x: float[4]\n",
    "kernel k\nin x: bf16[4\n",
    "kernel k\nin x: bf16[4] in y: bf16[4]\n",
    "kernel k\nin x: bf16[4]:(1, N)\n",
    "kernel k\nout y = x\n",
    "kernel k\nout y: f32\n",
    "kernel k\nout y: f32 = (x\n",
    "kernel k\nout y: f32 = x)\n",
    "kernel k\nout y: f32 = x +\n",
    "kernel k\nout y: f32 = x $ 2\n",
    "kernel k\nout y: f32 = x < y < z\n",
    "kernel k\nout y: f32 = x.mT\n",
    "kernel k\nout y: f32 = f(x\n)\n",
    "kernel k\nout y: f32 = # 5\n",
    "kernel k\nout y: f32 = sum(x, dim=x)\n",
    'kernel k\nout y: f32 = gelu(x, approximate="tanh)\n',
    "kernel k\ntile 128\n",
    "kernel k\nalign wide\n",
    "kernel k\nwith vec 2\n",
    "kernel k\nsize M=0.5\n",
    "```\n",
]


@pytest.fixture(scope="module", params=ENGINES)
def accepts(request: pytest.FixtureRequest) -> Accepts:
    return engine(request.param, decoding_grammar)


@cache
def specs() -> dict[str, str]:
    """Every spec in this repository: where it is -> the text, with a newline at its end and no spaces in sizes."""
    found: dict[str, str] = {}
    for place, text in _texts():
        if not re.search(r"^kernel[ \t]", text, re.MULTILINE):
            continue
        try:
            parse(text)
        except SpecError:
            continue
        found[f"{place}, {len(found)}: {text.strip().splitlines()[0][:40]}"] = _compact(text.rstrip() + "\n")
    return found


def _texts() -> Iterator[tuple[str, str]]:
    """Texts that may be specs."""
    folders = ("docs", "prompts", "tests/golden", "notebooks", "benchmarks")
    documents = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *documents):
        for block in re.findall(r"^```\w*\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE):
            yield path.name, block
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            head, _, rest = "".join(cell["source"]).partition("\n")
            yield path.name, rest if head.startswith("%%cutespec") else ""
    for path in (ROOT / "tests").rglob("*.py"):
        if "kernel " not in (source := path.read_text()) or "in " not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value
    comments = [line[2:].strip() for line in GRAMMAR.read_text().splitlines() if line.startswith("//     ")]
    for example in "\n".join(comments).split("kernel ")[1:]:
        yield GRAMMAR.name, f"kernel {example}"


def _compact(text: str) -> str:
    """``text`` with sizes such as 128 x 64 written without spaces."""
    return re.sub(r"(?<=\d)\s*x\s*(?=\d)", "x", text)


def test_every_spec_of_the_repository_is_accepted(accepts: Accepts) -> None:
    assert len(specs()) >= 30
    assert [place for place, text in specs().items() if not accepts(text)] == []


def test_what_the_parser_refuses_is_refused(accepts: Accepts) -> None:
    for text in BROKEN:
        with pytest.raises(SpecError):
            parse(text)
    assert [text for text in BROKEN if accepts(text)] == []


def test_words_stand_apart_also_where_the_parser_reads_them_as_one(accepts: Accepts) -> None:
    glued = "kernelk\nin x: bf16[4]\nout y: bf16 = x\n"
    assert parse(glued).name == "k"
    assert not accepts(glued) and accepts(glued.replace("kernelk", "kernel k"))


def test_mangled_specs_are_accepted_where_the_parser_reads_them(accepts: Accepts) -> None:
    """Except names that are keywords, which the derived grammars cannot exclude."""
    rng, sound = random.Random(11), 0  # noqa: S311 - the same every time
    parser = Lark(GRAMMAR.read_text(), parser="lalr")
    keyword = re.compile(rf"\b({'|'.join(STATEMENTS)}|for|T)\b")
    for _ in range(400):
        text = _compact(mangled(rng)) + "\n"
        try:
            parser.parse(text)
        except UnexpectedInput:
            if accepts(text):
                assert keyword.search(text), text
            continue
        sound += 1
        assert accepts(text) or not text.isascii(), text
    assert 10 < sound < 300
