"""Parses text to the typed form. Errors are SpecError with line and column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import SpecError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.plain_text import misfit
from cutegen_lab.cutespec.form import Apply, Dim, Expr, Input, Name, Number, Option, Place, Setting, Spec, Step, Value

GRAMMAR = Path(__file__).with_name("grammar.lark")
ARCH = "sm_90a"
MOST_CHARACTERS = 20_000
MOST_DEPTH = 64  # maximum depth of an expression
MOST_DIGITS = 15
_BINARY = {"add", "subtract", "multiply", "divide", "matmul", "power", "less", "less_equal", "greater", "greater_equal",
           "equal", "not_equal"}  # fmt: skip
STATEMENTS = ("kernel", "in", "out", "tmp", "size", "step", "tile", "cluster", "schedule", "stages", "split", "align",
              "with")  # fmt: skip
"""Words that statements begin with."""
DTYPES = ("bf16", "f16", "f32", "f64", "f8e4m3fn", "f8e5m2", "i8", "i32", "i64", "bool")
"""Element types that a spec may name."""
_FORMS = {"in": "in NAME: DTYPE[SIZES]", "out": "out NAME: DTYPE[SIZES] = EXPRESSION",
          "tmp": "tmp NAME: DTYPE = EXPRESSION"}  # fmt: skip
_WORDS = {  # names of the grammar's terminals, for messages
    "_NL": "the end of the line", "$END": "the end", "NAME": "a name", "INT": "a whole number", "NUMBER": "a number",
    "DTYPE": "a dtype (bf16, f16, f32, …)", "ARCH": "an architecture (sm_90a)", "EXTENTS": "sizes such as 128x256x64",
    "TF32": "in tf32", "STRING": 'text in "quotes"', "TRUTH": "true or false", "SIGN": "a sign",
}  # fmt: skip


def parse(text: str) -> Spec:
    """The typed form of a spec. Raises SpecError."""
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"the spec has {len(text):,} characters", f"A spec has at most {MOST_CHARACTERS:,}.", 1, 1)
    if why := misfit(text):
        raise SpecError(f"the spec {why}", "Leave it out.", 1, 1)
    try:
        tree = _parser().parse(text if text.endswith("\n") else text + "\n")
    except UnexpectedInput as error:
        raise _unexpected(error, text) from None
    return _Reader().spec(tree)


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR.read_text(), parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _unexpected(error: UnexpectedInput, text: str) -> SpecError:
    line, column = error.line, error.column
    if isinstance(error, UnexpectedEOF) or line < 1:
        lines = text.rstrip().split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    if isinstance(error, UnexpectedCharacters):
        return SpecError(f"{error.char!r} is not allowed in a statement", _expected(error.allowed or ()), line, column)
    token = error.token if isinstance(error, UnexpectedToken) else None
    allowed: Iterable[str] = getattr(error, "accepts", None) or getattr(error, "expected", None) or ()
    whole = text.split("\n")[line - 1].partition("#")[0]
    if lacking := _lacking(whole, column, allowed):
        return SpecError(*lacking, line, column)
    if token is None or token.type in ("$END", "_NL"):
        return SpecError("the line ends too early", _expected(allowed), line, column)
    first, *rest = whole[: column - 1].split() or [str(token)]
    misspelt = not rest and first not in STATEMENTS  # a name here may be a misspelled keyword
    hint = did_you_mean(first, STATEMENTS, 0.5) if misspelt else ""
    expected = _expected(allowed)
    if misspelt and "EQUAL" in allowed:  # a single name, which may begin a definition
        expected = f"A line begins with one of {', '.join(STATEMENTS)}, or with a name and '='."
    return SpecError(f"{str(token)[:40]!r} does not fit here", f"{hint} {expected}".strip(), line, column)


def _lacking(line: str, column: int, allowed: Iterable[str]) -> tuple[str, str] | None:
    """What a statement that declares a tensor lacks at ``column``, and what to do; None if neither ':' nor '=' is
    missing there."""
    kind, name, *_ = [*line[: column - 1].split(), "", ""]
    form, colon = _FORMS.get(kind, ""), "COLON" in allowed and ":" not in line[: column - 1]
    if not form or not (colon or "EQUAL" in allowed):
        return None
    lacks = ["':'"] * colon + ["'='"] * ("=" in form and ("EQUAL" in allowed or "=" not in line))
    return f"`{kind} {name.partition(':')[0][:40]}` lacks {' and '.join(lacks)}", f"Write it as `{form}`."


def _expected(terminals: Iterable[str]) -> str:
    """``Expected: …`` in words."""
    parser, words = _parser(), set[str]()
    for name in terminals:
        pattern = parser.get_terminal(name).pattern if name in {t.name for t in parser.terminals} else None
        if name in _WORDS:
            words.add(_WORDS[name])
        elif pattern is not None and pattern.type == "str":
            words.add(repr(pattern.value))
    return f"Expected {', '.join(sorted(words))}." if words else ""


def _place(item: Tree[Token] | Token) -> Place:
    if isinstance(item, Token):
        return Place(item.line or 1, item.column or 1)
    meta = item.meta
    return Place(1, 1) if meta.empty else Place(meta.line, meta.column)


class _Reader:
    """Converts one parse tree to a Spec."""

    def spec(self, tree: Tree[Token]) -> Spec:
        head, *statements = tree.children
        name, arch, tf32 = head.children  # type: ignore[union-attr]
        inputs: list[Input] = []
        sizes: list[Mapping[str, int]] = []
        sized: list[Token] = []  # names of given sizes, with their positions
        steps: list[tuple[Step, list[Value], list[Option]]] = []
        for statement in statements:
            assert isinstance(statement, Tree)
            place = _place(statement)
            match str(statement.data):
                case "input":
                    inputs.append(self._input(statement))
                case "size":
                    sizes.append(self._size(statement))
                    sized.extend(statement.children[::2])  # type: ignore[arg-type]
                case "step":
                    steps.append((Step(str(statement.children[0]), place), [], []))
                case "let" | "tmp" | "output" as kind:
                    if not steps:
                        steps.append((Step("main", place), [], []))
                    steps[-1][1].append(self._value(statement, kind))
                case _:
                    if not steps:
                        raise place.error(
                            f"{statement.data} is before the outputs it applies to", "Put it after the outputs."
                        )
                    steps[-1][2].extend(self._options(statement))
        made = tuple(Step(s.name, s.place, tuple(values), tuple(options)) for s, values, options in steps)
        place = _place(arch or name)
        spec = Spec(str(name), str(arch or ARCH), tuple(inputs), made, tuple(sizes) or ({},), tf32 is not None, place)
        used = {dim for i in inputs for dim in i.dims} | {d for v in (*spec.tmps, *spec.outputs) for d in v.dims or ()}
        for given in sized:
            if str(given) not in used:
                raise _place(given).error(f"size {given} is given, but no tensor has it")
        return spec

    def _input(self, tree: Tree[Token]) -> Input:
        name, dtype, shape, strides = tree.children
        numbers = tuple(_whole(s) for s in strides.children if s is not None) if isinstance(strides, Tree) else ()
        return Input(str(name), DType.parse(str(dtype)), self._dims(shape), numbers, _place(tree))

    def _dims(self, shape: Any) -> tuple[Dim, ...]:
        found = [dim.children[0] for dim in shape.children if dim is not None]
        return tuple(_whole(token) if token.type == "INT" else str(token) for token in found)

    def _size(self, tree: Tree[Token]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for name, value in zip(tree.children[::2], tree.children[1::2], strict=True):
            if str(name) in found:
                raise _place(name).error(f"the size of {name} is given twice in one line")
            if not 0 < _whole(value) < 1 << 31:
                raise _place(value).error(f"a size of {value}", "Sizes are 1 to 2147483647.")
            found[str(name)] = _whole(value)
        return found

    def _value(self, tree: Tree[Token], kind: str) -> Value:
        place = _place(tree)
        if kind == "let":
            name, expr = tree.children
            return Value("let", str(name), self._expr(expr), place)
        name, dtype, shape, expr = tree.children
        dims = None if shape is None else self._dims(shape)
        return Value(
            "tmp" if kind == "tmp" else "out", str(name), self._expr(expr), place, DType.parse(str(dtype)), dims
        )

    def _options(self, tree: Tree[Token]) -> list[Option]:
        name, place = str(tree.data), _place(tree)
        if name == "with":
            return [self._setting(s) for s in tree.children]
        (token,) = tree.children
        assert isinstance(token, Token)
        if token.type == "EXTENTS":
            return [Option(name, tuple(_digits(part.strip(), place) for part in token.split("x")), place)]
        return [Option(name, (_word(token),), place)]

    def _setting(self, tree: Any) -> Option:
        name, value = tree.children
        return Option(str(name), (_word(value),), _place(tree))

    def _expr(self, item: Any, depth: int = 0) -> Expr:
        place = _place(item)
        if depth > MOST_DEPTH:
            raise place.error(
                f"an expression nested more than {MOST_DEPTH} deep", "Name a part of it on a line of its own."
            )
        data, children = str(item.data), item.children
        if data == "name":
            return Name(str(children[0]), place)
        if data == "number":
            return Number(_number(children[0]), place)
        if data == "call":
            return self._call(children, place, depth)
        if data == "transposed":
            return Apply("transpose", (self._expr(children[0], depth + 1),), {}, place)
        assert data in _BINARY or data == "negative", data
        return Apply(data, tuple(self._expr(c, depth + 1) for c in children), {}, place)

    def _call(self, children: list[Any], place: Place, depth: int) -> Apply:
        function, *given = (c for c in children if c is not None)
        arguments: list[Expr] = []
        keywords: dict[str, Setting] = {}
        for item in given:
            if item.data != "keyword":
                if keywords:
                    raise _place(item).error("an argument without a name after one with a name")
                arguments.append(self._expr(item, depth + 1))
                continue
            key, value = item.children
            if str(key) in keywords:
                raise _place(key).error(f"{key} is given twice")
            keywords[str(key)] = _setting(value)
        return Apply(str(function), tuple(arguments), keywords, place)


def _setting(value: Any) -> Setting:
    if isinstance(value, Token):
        return str(value)[1:-1] if value.type == "STRING" else str(value) == "true"
    if value.data == "list":
        return tuple(int(_signed(s.children)) for s in value.children if s is not None)
    return _signed(value.children)


def _signed(children: list[Any]) -> int | float:
    sign, number = children
    return -_number(number) if sign == "-" else _number(number)


def _number(token: Token) -> int | float:
    if token.type == "INT":
        return _whole(token)
    if math.isinf(value := float(token)):
        raise _place(token).error(f"{token[:40]} cannot be represented in fp64")
    return value


def _word(token: Any) -> int | str:
    return _whole(token) if token.type == "INT" else str(token)


def _whole(token: Any) -> int:
    return _digits(str(token), _place(token))


def _digits(text: str, place: Place) -> int:
    if len(text) > MOST_DIGITS:
        raise place.error(f"a number of {len(text)} digits", f"Numbers have at most {MOST_DIGITS}.")
    return int(text)
