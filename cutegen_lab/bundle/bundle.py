"""Makes one candidate text of several files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cutegen_lab.bundle.modules import Finder, Module, Unit
from cutegen_lab.bundle.naming import names_of
from cutegen_lab.bundle.order import ordered
from cutegen_lab.bundle.reach import CONTRACT_NAMES, Definition, External, Reach
from cutegen_lab.bundle.writing import Writer, imports
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.plain_text import plain

_MOST_NAMES = 12


@dataclass(frozen=True)
class Piece:
    """One definition of the bundle: its first line in the bundle, and for each of its lines the line in its file."""

    line: int
    file: str
    source_lines: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Notice:
    """A change or omission, and what to do if it matters."""

    file: str
    line: int
    message: str
    action: str


@dataclass(frozen=True)
class Bundle:
    """``text`` is the candidate. ``renamed`` maps ``FILE:name`` to its name in the bundle."""

    text: str
    pieces: tuple[Piece, ...]
    files: tuple[str, ...]
    renamed: dict[str, str]
    notices: tuple[Notice, ...]

    def origin(self, line: int) -> str:
        """Source ``FILE:LINE`` of ``line`` of the text; empty for a line that the bundle adds."""
        for piece in self.pieces:
            if 0 <= line - piece.line < len(piece.source_lines):
                return f"{piece.file}:{piece.source_lines[line - piece.line]}"
        return ""


def bundle(files: Sequence[Path], entry: str = "launch") -> Bundle:
    """Joins ``files`` around ``entry``: a function of the first file that defines it. It becomes the candidate's
    ``launch``.

    Imports are followed into the packages and folders of ``files``. Raises InputError.
    """
    finder = Finder(files)
    root = _entry([finder.read(path) for path in files], entry)
    extra = [Definition(root.module, name) for name in CONTRACT_NAMES if name in root.module.by_name]
    reach = Reach(finder, [root, *extra])
    units = ordered(reach)
    names = names_of(reach, units, root)
    modules = list(dict.fromkeys(unit.module for unit in units))
    future = [module.future_annotations for module in modules]
    writer = Writer(reach, names, quote=any(future) and not all(future))
    as_modules, loads = _module_imports(modules, reach, units)
    head = [f"# Joined by cutegen-lab from {', '.join(module.label for module in modules)}."]
    for module in modules:
        if notice := _opening_comment(module):
            head += [f"# {module.label} begins:", *(f"#   {plain(line.lstrip('# '))}".rstrip() for line in notice)]
    if all(future):
        head.append("from __future__ import annotations")
    lines = [*head, "", *"\n".join(imports(names, as_modules, loads)).split("\n")]
    pieces = []
    for unit in units:
        text, origins = writer.text(unit)
        lines += [""] * (2 if hasattr(unit.node, "body") else 1) + [f"# from {unit.module.label}:{origins[0]}"]
        bound = tuple(sorted(names.get(Definition(unit.module, name), name) for name in unit.binds))
        pieces.append(Piece(len(lines) + 1, unit.module.label, tuple(origins), bound))
        lines += text.split("\n")
    for value, members in reach.values.items():
        pairs = [f"{name}={names[_key(found)]}" for name, found in members.items()]
        space = names[External("types.SimpleNamespace")]
        lines += [
            "",
            f"# {finder.read(value.path).label}: the parts that are used",
            f"{names[value]} = {space}({', '.join(pairs)})",
        ]
    renamed = {
        f"{key.module.label}:{key.name}": name
        for key, name in names.items()
        if isinstance(key, Definition) and key.name != name
    }
    notices = tuple(_notices(reach, units))
    return Bundle("\n".join(lines) + "\n", tuple(pieces), tuple(m.label for m in modules), renamed, notices)


def _entry(modules: list[Module], name: str) -> Definition:
    for module in modules:
        if name in module.by_name:
            return Definition(module, name)
    have = sorted({name for module in modules for name in module.by_name})
    listed = ", ".join(have[:_MOST_NAMES]) + (" ..." if len(have) > _MOST_NAMES else "")
    where = ", ".join(module.label for module in modules)
    raise InputError(
        f"{where} {'define' if len(modules) > 1 else 'defines'} no {name}" + (f", but {listed}" if have else ""),
        Hint(Advice.NAME_ENTRY),
    )


def _key(found: Definition | External) -> Definition | External:
    return External(found.dotted) if isinstance(found, External) else found


def _module_imports(modules: list[Module], reach: Reach, units: list[Unit]) -> tuple[set[str], set[str]]:
    """Dotted names that are certainly modules, and modules that a plain ``import a.b`` loads."""
    certain, loads = set(), set()
    for module in modules:
        for found in [one for several in module.imports.values() for one in several]:
            if not found.name and not found.root:
                certain.add(found.module)
    for unit in units:
        for one in reach.facts(unit).live():
            if isinstance(one.target, External) and one.target.loads:
                loads.add(one.target.loads)
    return certain, loads


def _opening_comment(module: Module) -> list[str]:
    """A file's first comment, usually its copyright notice."""
    lines = []
    for line in module.lines:
        if not line.startswith("#"):
            break
        if not line.startswith("#!"):
            lines.append(line)
    return lines


def _notices(reach: Reach, units: list[Unit]) -> list[Notice]:
    found = []
    for unit in units:
        facts = reach.facts(unit)
        label = unit.module.label
        for function, (line, why) in facts.stubs_left.items():
            message = f"{function.name} uses {why.what}, which candidates may not use: its body raises instead"
            found.append(Notice(label, line, message, why.action))
        for one in facts.live():
            if reach.environment_default(one):
                message = "an environment variable is read as if it were not set"
                found.append(Notice(label, one.reference.chain.lineno, message, "Write another value there."))
        found += [
            Notice(label, line, f"nothing defines {name!r}", "Import it from where it is defined.")
            for name, line in sorted(facts.undefined.items())
        ]
    for unit, dotted in reach.left_out():
        message = f"a change to {dotted} is left out: a candidate does not change the DSL"
        found.append(Notice(unit.module.label, unit.line, message, "Define a function of your own, and call that."))
    return list(dict.fromkeys(found))
