"""The gate lets candidates through and names what it stops."""

from __future__ import annotations

import pytest

from cutegen_lab.compile.gate import MAX_SOURCE_BYTES, check
from tests.compile.sources import CLUSTER, COLUMN_SUM, SCALE, TMA, with_prologue


@pytest.mark.parametrize("source", [SCALE, COLUMN_SUM, CLUSTER, TMA, with_prologue("import math, functools")])
def test_sound_candidates_pass(source: str) -> None:
    assert check(source) == []


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import os", "G04"),
        ("import torch", "G04"),
        ("import cutlassx", "G04"),
        ("from cuda.bindings import nvrtc", "G04"),
        ("from . import other", "G04"),
        ("eval('1')", "G05"),
        ("f = open", "G05"),
        ("x = __builtins__", "G05"),
        ("().__class__.__bases__[0].__subclasses__()", "G06"),
        ("import functools\nfunctools.os.system('true')", "G06"),
        ("getattr(cute, 'a' + 'b')", "G07"),
        ("getattr(cute, '__dict__')", "G07"),
        ("import dataclasses\ngetattr(dataclasses, 'sys')", "G07"),
        ("from dataclasses import sys as innocent", "G08"),
        ("from cutlass.base_dsl.compiler import *", "G08"),
        ("import operator\noperator.attrgetter('sys')", "G06"),
        ("import typing\ntyping.get_type_hints(launch)", "G06"),
        ("match launch:\n    case object(__globals__=names): pass", "G06"),
        ("cute.compile = None", "G09"),
        ("from cutlass import Float32 as F\nF.width = 8", "G09"),
        ("del cutlass.cute.arch.sync_threads", "G09"),
        ("def broken(:\n  pass", "G02"),
        ("x = '\0'", "G02"),
    ],
)
def test_what_is_stopped_is_named(code: str, rule: str) -> None:
    found = check(with_prologue(code))
    assert rule in {d.code.split("-")[0] for d in found}, found
    assert all(d.severity == "error" and d.message and d.suggestion for d in found)


def test_a_module_without_launch_is_named() -> None:
    assert [d.code for d in check("import cutlass\n")] == ["G03-launch"]


def test_size_and_nesting_are_bounded() -> None:
    assert [d.code for d in check("#" * (MAX_SOURCE_BYTES + 1))] == ["G01-size"]
    assert check("x = " + "(" * 5000 + ")" * 5000)[0].code == "G02-syntax"
