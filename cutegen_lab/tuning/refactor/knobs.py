"""Finds literals that control how a kernel runs, and values to try in their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cutegen_lab.tuning.refactor.text import KernelText, Span, assigned, whole_number

MOST = 8  # maximum number of knobs of a kernel: with more the space is too large to search
_ORDER = ("threads", "tile", "vec", "stages", "unroll", "bits", "count")
_BY_NAME = (  # role by name; the first match counts
    ("threads", r"thread|block_?(size|dim|x)?$|^(bdim|nt|t)$"),
    ("stages", r"stage|depth|buffers"),
    ("vec", r"vec|width|per_thread|items|elems"),
    ("unroll", r"unroll"),
    ("tile", r"tile|^b?[mnk]$|^b[mnk]$|block_[mnk]|rows|cols|columns|chunk"),
)
_KEYWORDS = {"unroll": "unroll", "num_stages": "stages", "stages": "stages", "num_bits_per_copy": "bits"}
_TILING = {"local_tile", "zipped_divide", "tiled_divide", "flat_divide", "logical_divide"}
_LAYOUTS = {"make_layout", "make_ordered_layout"}
_TILE_FROM = 8  # smallest extent of a layout that counts as a tile's
_NOT_STRAY = {"allocate_tensor", "allocate", "align", "assumed_align"}


@dataclass(frozen=True)
class Knob:
    """A literal that controls how a kernel runs, and could become a parameter."""

    name: str
    """Name of the parameter."""
    value: int
    """Its current value."""
    role: str
    """What it controls."""
    domain: tuple[int, ...]
    """Values to try."""
    sites: tuple[Span, ...] = ()
    """Literals that become the parameter."""
    constant: str = ""
    """Module-level name that holds the literal instead; empty if none."""
    strays: tuple[Span, ...] = ()
    """Other literals of the same value, which may or may not belong to it."""
    given: bool = False
    """Whether launch() already has the keyword."""
    line: int = 0
    """Line of the first literal, from 1."""

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(v for v in self.domain if v != self.value)

    def with_strays(self) -> Knob:
        return replace(self, sites=(*self.sites, *self.strays), strays=())


def find(text: KernelText) -> list[Knob]:
    """Knobs, those first that usually matter most."""
    found = [*_keywords_of_launch(text), *_constants(text), *_locals(text)]
    taken = {site for knob in found for site in knob.sites}
    found += _anonymous(text, taken, {k.name for k in found})
    found = [replace(k, strays=tuple(_strays(text, k.value, taken | set(k.sites)))) for k in found if len(k.domain) > 1]
    return sorted(found, key=lambda k: (_ORDER.index(k.role), k.line))


def domain(role: str, value: int) -> tuple[int, ...]:
    """Values to try for a parameter: ``value`` times powers of two (stages: up to ± 2; bits: 32, 64, 128), within the
    limits of its role."""
    match role:
        case "threads":
            step = 32 if value % 32 == 0 else 1
            near = [value * f // 4 for f in (1, 2, 4, 8, 16)]
            return _legal(value, [v for v in near if v % step == 0 and step <= v <= 1024])
        case "stages":
            return _legal(value, range(max(1, value - 2), min(8, value + 2) + 1))
        case "bits":
            return _legal(value, [32, 64, 128])
        case "tile":
            step = 8 if value % 8 == 0 else 1
            return _legal(value, [v for v in (value // 4, value // 2, value, value * 2) if v and v % step == 0])
        case _:
            return _legal(value, [v for v in (value // 4, value // 2, value, value * 2, value * 4) if 1 <= v <= 1024])


def role_of(name: str) -> str:
    return next((role for role, said in _BY_NAME if re.search(said, name.lower())), "count")


def _legal(value: int, values: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({value, *values}))


def _knob(text: KernelText, name: str, value: int, span: Span, **more: object) -> Knob:
    role = str(more.pop("role", "")) or role_of(name)
    return Knob(name, value, role, domain(role, value), line=text.line(span), **more)  # type: ignore[arg-type]


def _keywords_of_launch(text: KernelText) -> Iterator[Knob]:
    """Constexpr keywords that launch() already has, which only lack domains."""
    arguments = text.functions["launch"].args
    named = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    pairs = [*zip(named, arguments.defaults, strict=True),
             *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]  # fmt: skip
    for argument, default in pairs:
        value = whole_number(default)
        if value is not None and value > 0:
            yield _knob(text, argument.arg, value, text.span(argument), given=True)


def _constants(text: KernelText) -> Iterator[Knob]:
    for name, node in text.constants.items():
        value = whole_number(node)
        if value is not None and 2 <= value <= 4096 and _steers(text, name, set()):
            new = name.lower() if name.lower() not in text.names else name
            yield _knob(text, new, value, text.span(node), constant=name)


def _steers(text: KernelText, name: str, seen: set[str]) -> bool:
    """Whether a function reads ``name``, or reads a constant computed from it."""
    if name in seen:
        return False
    if any(text.owner(text.span(read)) for read in text.reads(name)):
        return True
    later = [n for n, v in text.constants.items() if any(isinstance(x, ast.Name) and x.id == name for x in ast.walk(v))]
    return any(_steers(text, n, seen | {name}) for n in later)


def _locals(text: KernelText) -> Iterator[Knob]:
    """``threads = 256`` at the top of a function that assigns it once; functions with the same name and value share the
    knob."""
    by: dict[tuple[str, int], list[Span]] = {}
    for function in text.functions.values():
        stores = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        for statement in function.body:
            for name, node in assigned(statement):
                value = whole_number(node)
                if value is not None and 2 <= value <= 4096 and stores.count(name) == 1:
                    by.setdefault((name, value), []).append(text.span(node))
    names = [name for name, _ in by]
    for (name, value), sites in by.items():
        own = name if names.count(name) == 1 else f"{name}_{value}"
        yield _knob(text, own, value, sites[0], sites=tuple(sites), role=role_of(name))


def _anonymous(text: KernelText, taken: set[Span], names: set[str]) -> Iterator[Knob]:
    """Literals whose position shows their role; those of one role and value are one knob."""
    by: dict[tuple[str, int], list[Span]] = {}
    for function in text.functions.values():
        for node in ast.walk(function):
            for role, literal in _placed(node) if isinstance(node, ast.Call) else ():
                value, span = whole_number(literal), text.span(literal)
                fixed = id(literal) in text.formatted or span in taken or text.owner(span) is None
                if value is not None and value > 1 and not fixed:
                    by.setdefault((role, value), []).append(span)
    for (role, value), sites in by.items():
        single = sum(r == role for r, _ in by) == 1 and role not in names
        name = role if single else f"{role}_{value}"
        if name not in text.names:
            yield _knob(text, name, value, sites[0], sites=tuple(dict.fromkeys(sites)), role=role)


def _placed(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    for keyword in call.keywords:
        if keyword.arg in _KEYWORDS:
            yield _KEYWORDS[keyword.arg], keyword.value
        elif keyword.arg == "block" and isinstance(keyword.value, ast.List | ast.Tuple):
            yield from (("threads", size) for size in keyword.value.elts)
    if last == "range_constexpr" and len(call.args) == 1 and _is_power_of_two(whole_number(call.args[0])):
        yield "count", call.args[0]
    if last in _TILING | _LAYOUTS:
        least = 2 if last in _TILING else _TILE_FROM
        shapes = (a for a in call.args if isinstance(a, ast.Tuple))
        sizes = (size for given in shapes for size in _elements(given))
        yield from (("tile", size) for size in sizes if (whole_number(size) or 0) >= least)


def _is_power_of_two(value: int | None) -> bool:
    return value is not None and value > 0 and value & (value - 1) == 0


def _elements(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Tuple):
        for one in node.elts:
            yield from _elements(one)
    elif isinstance(node, ast.Constant):
        yield node


def _strays(text: KernelText, value: int, taken: set[Span]) -> Iterator[Span]:
    """Unnamed literals of this value; tests of the answers decide whether they belong to the knob."""
    for function in text.functions.values():
        fixed = text.formatted | {id(n) for call in ast.walk(function) for n in _fixed(call)}
        for node in ast.walk(function):
            if whole_number(node) == value and id(node) not in fixed:
                span = text.span(node)
                if span not in taken and text.owner(span):
                    yield span


def _fixed(node: ast.AST) -> list[ast.expr]:
    """Alignments, modes and indices into shapes, which are not sizes."""
    if isinstance(node, ast.Subscript):
        shape = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "stride")
        return [node.slice] if shape else []
    if not isinstance(node, ast.Call):
        return []
    last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    fixed = [*node.args, *(k.value for k in node.keywords)] if last in _NOT_STRAY else []
    modes = [k.value for k in node.keywords if k.arg in ("mode", "byte_alignment")]
    return [*fixed, *(one for mode in modes for one in ast.walk(mode) if isinstance(one, ast.expr))]


__all__ = ["MOST", "Knob", "domain", "find", "role_of"]
