"""Parses one instruction and its operands (PTX ISA 4.3.2 "Instruction Statements", 6.4 "Using Addresses, Arrays,
and Vectors")."""

from __future__ import annotations

import re
from typing import Protocol

from cutegen_lab.emulator import ptx
from cutegen_lab.emulator.faults import Unsupported

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?$")


class Names(Protocol):
    """Resolves names in the scope of the instruction."""

    def register(self, name: str) -> ptx.Reg | None:
        """The register of this name, or None."""

    def vector(self, name: str) -> ptx.Vector | None:
        """The components of a register declared as a vector, or None."""

    def label(self, name: str) -> str:
        """The unique name of a label; any other name unchanged."""


def read(text: str, line: int, names: Names) -> ptx.Instruction:
    """Parses ``text`` (without its semicolon). Raises :class:`Unsupported`."""
    shown = " ".join(text.split())
    guard, negated = None, False
    if match := re.match(r"@(!?)\s*([%\w$]+)\s+", text):
        guard, negated, text = names.register(match[2]), bool(match[1]), text[match.end() :]
        if guard is None:
            raise Unsupported(f"guard {match[2]} is not a declared predicate", line, shown)
    head, _, rest = text.partition(" ") if "\t" not in text.split(" ", 1)[0] else text.partition("\t")
    opcode, *mods = head.strip().split(".")
    operands = tuple(_operand(o, names) for o in _split(rest))
    return ptx.Instruction(opcode, tuple(mods), operands, guard, negated, shown, line)


def _operand(text: str, names: Names) -> ptx.Operand:
    if text == "_":
        return ptx.Sink()
    if text.startswith("!"):
        return ptx.Not(_operand(text[1:].strip(), names))
    if text[:1] + text[-1:] in ("{}", "()"):
        return ptx.Vector(tuple(_operand(t, names) for t in _split(text[1:-1])))
    if text.startswith("["):
        return _address(text, names)
    if "|" in text:
        first, second = (_operand(t.strip(), names) for t in text.split("|"))
        return ptx.Pair(first, second)
    if register := names.register(text) or names.vector(text):
        return register
    if text.startswith("%"):
        return ptx.Special(text)
    if match := re.match(r"0([fFdD])([0-9a-fA-F]+)$", text):
        return ptx.FloatImm(int(match[2], 16), 32 if match[1] in "fF" else 64)
    if _INTEGER.match(text):
        digits = text.rstrip("U")
        octal = re.match(r"-?0[0-7]+$", digits)
        return ptx.Imm(int(digits, 8 if octal else 0))
    if re.match(r"[\w$]+$", text):
        return ptx.Symbol(names.label(text))
    return ptx.Other(text)


def _address(text: str, names: Names) -> ptx.Operand:
    if match := re.match(r"\[\s*([%\w$]+)\s*,\s*\{([^{}]*)\}\s*\]$", text):
        coordinates = tuple(_operand(c, names) for c in _split(match[2]))
        return ptx.TensorAddress(_operand(match[1], names), coordinates)
    match = re.match(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]$", text)
    if not match:
        return ptx.Other(text)
    return ptx.Address(_operand(match[1], names), int(match[2] or "0", 0))


def _split(text: str) -> list[str]:
    """Splits at commas that are not inside brackets or braces."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return [*parts, current.strip()] if current.strip() else parts
