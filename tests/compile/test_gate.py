"""The gate lets candidates through and names what it stops."""

from __future__ import annotations

import pytest

from cutegen_lab.compile.gate import MAX_SOURCE_BYTES, MOST_ERRORS, check
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
        ("g = getattr\ng(cute, 'a' + 'b')", "G07"),
        ("import functools\nfunctools.partial(getattr, cute)('os')", "G07"),
        ("x = [*map(hasattr, (cute,), ('os',))]", "G07"),
        ("x = getattr(cute, '_os')", "G07"),
        ("x = cutlass.base_dsl._sys", "G06"),
        ("from cutlass.base_dsl.pyir_runtime import _os", "G08"),
        ("from cutlass.base_dsl.pyir_call_boundary import _builtins", "G08"),
        ("a = cute\na.compile = None", "G09"),
        ("if (a := cutlass.cute):\n    a.compile = None", "G09"),
        ("x = vars(cute)['compile']", "G09"),
        ("x = type(cute).__dict__", "G06"),
        ("x = cute._builtins.exec", "G06"),
        ("threads = 128 if hash('a') % 2 else 256", "G05"),
        ("threads = 128 if id(cute) % 32 else 256", "G05"),
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
        ("x = '\ud800'", "G02"),
        ("cutlass" + ".a" * 900 + " = 1", "G02"),
        ("x = " + "-" * 900 + "1", "G02"),
        ("x = " + " + ".join("a" * 900), "G02"),
        ("cutlass" + ".a" * 400 + " = 1", "G09"),
        # what shadows nothing where it is used
        ("def f(eval): pass\neval('1')", "G05"),
        ("def f(x=eval('1')):\n    eval = 1", "G05"),
        ("def f():\n    global eval\n    eval = 1\n    return eval", "G05"),
        ("class A:\n    eval = eval", "G05"),
        ("def f():\n    class A:\n        eval = 1\n    return eval('1')", "G05"),
        ("x = [eval('1') for y in (0, (eval := 1))[:1]]", "G05"),
        ("x = [eval('1') for y in (0,) if not y or (eval := y)]", "G05"),
        ("x = [y for eval in eval('1')]", "G05"),
        ("f = lambda x=eval('1'), eval=3: x", "G05"),
        ("import inspect\nx = inspect.currentframe()", "G06"),
        ("import inspect as i\nx = i.stack()", "G06"),
        ("import inspect\nf = inspect", "G05"),
        ("import types\nx = types.FunctionType", "G06"),
        ("from types import CodeType", "G08"),
        # looked up or set by name, of what is imported
        ("name = 'Tensor'\nsetattr(cute, name, None)", "G09"),
        ("setattr(cute.Tensor, 'to', None)", "G09"),
        ("object.__setattr__(cutlass, 'range', None)", "G09"),
        ("object.__setattr__(launch, name, None)", "G07"),
        ("object.__setattr__(launch, '__code__', None)", "G07"),
        ("setattr(launch, '__code__', None)", "G07"),
        ("getattr(launch, '__globals__')", "G07"),
        ("getattr(cute, *['compile'])", "G07"),
        ("f = setattr", "G05"),
        ("f = object.__setattr__", "G06"),
        ("vars()", "G05"),
        ("vars(cutlass)", "G09"),
        ("x = launch.__dict__", "G06"),
        ("x = launch.__wrapped__", "G06"),
        ("from inspect import currentframe", "G08"),
        ("from contextlib import *", "G08"),
        # what Python's own modules import themselves
        ("import enum\nx = enum.bltns.open('/etc/passwd')", "G06"),
        ("from enum import bltns", "G08"),
        ("import dataclasses\nx = dataclasses._create_fn('f', (), ['return 1'])", "G06"),
        ("import dataclasses as d\nx = d.types.FunctionType", "G06"),
        ("import dataclasses\ndataclasses._thread.start_new_thread(print, ())", "G06"),
        ("import typing\nt = typing\nx = t.types.CodeType", "G06"),
        ("from typing import contextlib", "G08"),
        # text that something evaluates
        ("import typing\nx = typing.List['1'].__args__[0]._evaluate({}, {}, frozenset())", "G06"),
        ("import typing\nx = typing._eval_type(typing.List['1'], {}, {})", "G06"),
        ("import functools\n@functools.singledispatch\ndef f(x): pass", "G06"),
        ("def f(x: \"__import__('os').system('true')\"): pass", "G05"),
        ("def f(x) -> \"list[eval('1')]\": pass", "G05"),
        ("class A:\n    x: 'launch.__globals__' = 1", "G05"),
        ("x = (i for i in ()).gi_code.co_consts", "G06"),
        ("async def f(): yield\nx = f().ag_frame", "G06"),
        ("class A:\n    def f(self): super(A, cute).__setattr__('compile', 1)", "G06"),
        ("class A:\n    f = super().__setattr__", "G06"),
    ],
)
def test_what_is_stopped_is_named(code: str, rule: str) -> None:
    found = check(with_prologue(code))
    assert rule in {d.code.split("-")[0] for d in found}, found
    assert all(d.severity == "error" and d.message and d.suggestion for d in found)


@pytest.mark.parametrize(
    "code",
    [
        "x = getattr(cute, 'arch')",
        "def f(getattr, id, hash): return getattr, id + hash",
        "class A: pass\na = A()\na.width = 3",
        "def f(input, help=3):\n    return input + help",
        "x = [input for input in (1, 2)]",
        "x = {open: vars for open, vars in ()}",
        "def f(x):\n    for input in x:\n        print(input)",
        "def f():\n    def g():\n        return input\n    input = 1\n    return g",
        "f = lambda compile: compile + 1",
        "def f(x):\n    try: pass\n    except ValueError as exit: print(exit)",
        "import inspect\nx = inspect.isclass(int)",
        "from inspect import isclass as is_class",
        "import types\nx = types.SimpleNamespace(a=1)",
        "from types import SimpleNamespace",
        "class A:\n    def copy(self):\n        return self.__class__()",
        "class A:\n    def f(self, values): pass\n    __new_from_mlir_values__ = f",
        "from contextlib import contextmanager",
        "from abc import ABC, abstractmethod\nfrom copy import copy\nimport collections\nx = collections.abc.Sequence",
        "class A:\n    def __setattr__(self, name, value):\n        super().__setattr__(name, value)",
        "import typing as t\ndef f(x: t.Optional[int], y: 't.List[int]') -> 'cute.Tensor': return x",
        "from typing import Literal\ndef f(kind: Literal['eval', 'open'] = 'eval', x: 'any text' = 1): return kind",
        "import math\ndef f(math): return math.value, math.sys_value",
        "import enum, dataclasses as d, operator\nclass E(enum.IntFlag):\n    A = enum.auto()\n"
        "@d.dataclass(frozen=True)\nclass P:\n    a: list = d.field(default_factory=list)\nx = operator.itemgetter(0)",
        "import functools, itertools\nf = functools.partial(max, 1)\nx = [*itertools.product(range(2), repeat=2)]",
        "def f(params, name):\n    return getattr(params, name), hasattr(params, f's_{name}')",
        "def f(params, name):\n    setattr(params, name, 1)\n    return vars(params)",
        "class A:\n    __slots__ = ('a',)\n    def f(self):\n        object.__setattr__(self, 'a', 1)",
        "class A:\n    def f(self):\n        object.__setattr__(self, '__class__', A)",
        "class A:\n    def __radd__(self, other):\n        return self.__add__(other)",
        "def f(g):\n    return getattr(g, '__vec_size__', 1), g.__our_own__",
        "def f(cls):\n    return 'Params' in cls.__dict__, type(cls).__module__, type(cls).__qualname__",
        "def f(operator): return operator.isclass, operator.input",
        "def f(a): return " + " + ".join("a" * 400),
    ],
)
def test_harmless_names_pass(code: str) -> None:
    assert check(with_prologue(code)) == []


@pytest.mark.timeout(60)
def test_long_texts_are_read_in_linear_time() -> None:
    """Quadratic, each took minutes; and of many errors a few are enough."""
    assert len(check("x = eval\n" * 25_000)) == MOST_ERRORS
    assert check(SCALE + "x = 1\n" * 25_000) == []


def test_a_module_without_launch_is_named() -> None:
    assert [d.code for d in check("import cutlass\n")] == ["G03-launch"]


def test_size_and_nesting_are_bounded() -> None:
    assert [d.code for d in check("#" * (MAX_SOURCE_BYTES + 1))] == ["G01-size"]
    assert check("x = " + "(" * 5000 + ")" * 5000)[0].code == "G02-syntax"
