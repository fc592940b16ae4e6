"""Outcomes of checks on disk, by the hash of everything that they follow from.

What a check says follows from the kernel's text, config and problem, the draws, and every module that compiles,
executes or judges it, with the libraries these stand on. All of that is in the key, so an outcome is found again only
where checking would say the same; a change in the judge makes every outcome of the old one unfindable. The modules are
found by following imports (grimp), not from a list that somebody keeps.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import grimp

from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.verdict import Verdict

PACKAGE = "cutegen_lab"
ROOT = Path(__file__).parents[2]
COMPILES = (f"{PACKAGE}.compile",)
JUDGES = (*COMPILES, f"{PACKAGE}.judge", f"{PACKAGE}.devices.emulator")
READS = (f"{PACKAGE}.templates.frontend.reader", f"{PACKAGE}.problems")
BUILDS = "CUTEGEN_TEST_BUILDS"  # environment variable: the folder of kept builds, for commands that tests give
VERSIONS = 3  # of what is kept: the one at hand, and two that a branch or a stash may bring back
_LIBRARIES = ("nvidia-cutlass-dsl", "torch", "numpy")


@dataclass(frozen=True)
class Outcome:
    """What a check said. ``workloads`` are the names of those that were looked at."""

    verdict: Verdict
    reason: str = ""
    workloads: tuple[str, ...] = ()


class Outcomes:
    """A folder of outcomes. Entries that cannot be read do not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Outcome | None:
        try:
            found = json.loads(self._path(key).read_bytes())
            return Outcome(Verdict(found["verdict"]), str(found["reason"]), tuple(found["workloads"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, outcome: Outcome) -> None:
        put(self._path(key), json.dumps({**asdict(outcome), "verdict": outcome.verdict.value}).encode())

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def put(path: Path, data: bytes) -> None:
    """A file of ``data``, whole or not at all: other workers look for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)


@cache
def digest(modules: Sequence[str]) -> str:
    """Hash of ``modules``, of all that these import, of the files beside them that are no modules (C, grammars), of
    this harness, and of the libraries that they stand on."""
    graph, found = _imports(), set[str]()
    for module in modules:
        for each in {module, *graph.find_descendants(module)}:
            found |= {each, *graph.find_upstream_modules(each)}
    files = {path for module in found for path in _files(module)}
    versions = [platform.python_version(), *(f"{name} {version(name)}" for name in _LIBRARIES)]
    return sha256(canonical_json([versions, _contents({*files, *_sources(Path(__file__).parent)})]))


@cache
def _imports() -> grimp.ImportGraph:
    return grimp.build_graph(PACKAGE, cache_dir=None)


@cache
def digest_of_everything() -> str:
    """Hash of the whole package and of all tests."""
    return sha256(canonical_json(_contents({*_sources(ROOT / PACKAGE), *_sources(ROOT / "tests")})))


def folders() -> dict[str, str]:
    """What this version keeps, and the name of the folder it keeps it in."""
    parts = {"builds": COMPILES, "outcomes": JUDGES, "graphs": READS}
    return {kind: f"{kind}-{digest(modules)[:16]}" for kind, modules in parts.items()}


def forget_others(folder: Path, kept: Iterable[str], versions: int = VERSIONS) -> None:
    """Removes what old versions left in ``folder``: of each kind all but those named in ``kept`` and the latest others,
    ``versions`` altogether."""
    names = set(kept)
    by_kind: dict[str, list[Path]] = {}
    for path in folder.iterdir():
        if path.name not in names:
            by_kind.setdefault(path.name.partition("-")[0], []).append(path)
    for paths in by_kind.values():
        for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[versions - 1 :]:
            shutil.rmtree(path, ignore_errors=True)


def _files(module: str) -> Iterable[Path]:
    path = ROOT.joinpath(*module.split("."))
    if not path.is_dir():
        return [path.with_suffix(".py")]
    return [p for p in path.iterdir() if p.is_file() and (p.name == "__init__.py" or p.suffix != ".py")]


def _sources(folder: Path) -> Iterable[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def _contents(files: Iterable[Path]) -> list[tuple[str, str]]:
    return sorted((str(path.relative_to(ROOT)), sha256(path.read_bytes())) for path in files)
