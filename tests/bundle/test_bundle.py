"""Several files become one text that means the same. No kernel here: bundling executes nothing and knows no DSL."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from tests.bundle.folders import bundled, ran, write


def test_relative_and_absolute_imports_are_followed(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "pkg/kernels/main.py": """
                import pkg.shapes as shapes
                from pkg import tables
                from . import near
                from .near import double as twice
                from ..shapes import area
                import math as m

                def launch(x):
                    return area(x) + shapes.area(x) + near.double(x) + twice(x) + tables.ROWS[0] + m.floor(1.5)
                """,
            "pkg/__init__.py": "",
            "pkg/kernels/__init__.py": "",
            "pkg/kernels/near.py": "def double(x):\n    return 2 * x\n",
            "pkg/shapes.py": "import math\n\ndef area(x):\n    return math.floor(x * x)\n\ndef unused(): pass\n",
            "pkg/tables.py": "ROWS = [100]\n",
        },
    )
    assert ran(made)["launch"](3) == 9 + 9 + 6 + 6 + 100 + 1
    assert "unused" not in made.text and "shapes.area" not in made.text and "from ." not in made.text
    assert made.text.count("import math") == 1  # one name for one module
    assert set(made.files) == {"pkg/shapes.py", "pkg/tables.py", "pkg/kernels/near.py", "pkg/kernels/main.py"}


def test_files_beside_each_other_need_no_package(tmp_path: Path) -> None:
    made = bundled(tmp_path, {"main.py": "import other\n\ndef launch():\n    return other.N\n", "other.py": "N = 7\n"})
    assert ran(made)["launch"]() == 7


def test_a_package_elsewhere_is_found_by_one_of_its_files(tmp_path: Path) -> None:
    files = {
        "here/main.py": "from lib.deep import f\n\ndef launch():\n    return f()\n",
        "there/lib/__init__.py": "",
        "there/lib/deep.py": "def f():\n    return 5\n",
        "there/lib/any.py": "",
    }
    with pytest.raises(InputError, match=r"main.py:4: launch uses lib.deep.f.*Give a file of lib too"):
        bundled(tmp_path, files)
    assert ran(bundled(tmp_path, files, "here/main.py", "there/lib/any.py"))["launch"]() == 5


def test_clashing_names_are_told_apart(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                import a, b
                from math import sqrt as scale

                def scaled(x):
                    return scale(x)

                def launch(x):
                    f = a.f(x)  # a local name that a.f would hide
                    max = b.f(x)
                    return f, max, a.max(1, 2), scaled(x), b.scale(x)
                """,
            "a.py": "def f(x):\n    return ('a', x)\n\ndef max(x, y):\n    return ('max', x, y)\n",
            "b.py": "def f(x):\n    return ('b', max(x, 0))\n\ndef scale(x):\n    return -x\n",
        },
    )
    names = ran(made)
    assert names["launch"](4) == (("a", 4), ("b", 4), ("max", 1, 2), 2.0, -4)
    assert {"a.py:f", "b.py:f", "a.py:max"} <= set(made.renamed)
    assert "# a local name that a.f would hide" in made.text


def test_strings_and_annotations_follow_a_new_name(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                import a
                from dataclasses import dataclass

                class Params:
                    pass

                @dataclass
                class Both:
                    mine: Params
                    theirs: "a.Params"
                    where: a.Params = None

                def launch(x: "a.Params" = None) -> 'Params':
                    return Both(Params(), a.Params()), f"{a.Params.N:>3}", f"{Params.__name__}"
                """,
            "a.py": "class Params:\n    N = 3\n",
        },
    )
    both, text, own = ran(made)["launch"]()
    other = made.renamed.get("a.py:Params", "Params")
    mine = made.renamed.get("main.py:Params", "Params")
    assert other != mine and type(both.theirs).__name__ == other and text == "  3" and own == mine
    assert type(both).__annotations__["theirs"] == other


def test_cycles_and_order(tmp_path: Path) -> None:
    """What is needed while the module is executed comes first, however the files import each other."""
    made = bundled(
        tmp_path,
        {
            "main.py": """
                from a import Child

                def launch(n):
                    return Child().count(n), Child.TABLE
                """,
            "a.py": """
                import b

                def later():
                    return Child

                class Child(b.Base):
                    TABLE = b.table(2)
                """,
            "b.py": """
                import a

                LIMIT = 10

                class Base:
                    def count(self, n):
                        from a import later
                        return 0 if n == 0 else 1 + later()().count(n - 1)

                def table(n):
                    return [step(i) for i in range(n)]

                def step(i):
                    return i + LIMIT
                """,
        },
    )
    assert ran(made)["launch"](3) == (3, [10, 11])


def test_a_definition_takes_what_changes_it_along(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                from ops import TABLE, Tile

                def launch():
                    return TABLE, Tile.rows
                """,
            "ops.py": """
                TABLE = {}
                OTHER = {}

                class Tile:
                    pass

                Tile.rows = 8
                TABLE["add"] = 1
                TABLE.update(mul=2)
                OTHER["x"] = print("never")
                """,
        },
    )
    assert ran(made)["launch"]() == ({"add": 1, "mul": 2}, 8)
    assert "never" not in made.text


def test_star_imports_are_refused_where_they_matter(tmp_path: Path) -> None:
    files = {"main.py": "from a import *\n\ndef launch():\n    return f()\n", "a.py": "def f():\n    return 1\n"}
    with pytest.raises(InputError, match=r"main.py:1: `from a import \*` hides where 'f' comes from"):
        bundled(tmp_path, files)


def test_comments_come_along_and_lines_are_traced(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": "# Copyright somebody\nimport a\n\n\ndef launch():\n    return a.f(1)  # at the end\n",
            "a.py": """
                import functools

                # Why it is so:
                # because.
                @functools.cache
                def f(x):
                    # inside
                    return x
                """,
        },
    )
    for comment in ("#   Copyright somebody", "# Why it is so:\n# because.", "# inside", "# at the end"):
        assert comment in made.text
    assert "# from a.py:4\n# Why it is so:" in made.text and "# from main.py:5\ndef launch():" in made.text
    lines = made.text.split("\n")
    for text, origin in (("    return x", "a.py:9"), ("@functools.cache", "a.py:6"), ("    # inside", "a.py:8")):
        assert made.origin(lines.index(text) + 1) == origin
    assert made.origin(1) == ""


def test_host_code_that_uses_what_no_candidate_may_have_is_named(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                import os
                from host import Kernel, level

                def launch(x):
                    return Kernel().run(x), level(), os.getenv("WAYS", "4"), os.environ.get("X")
                """,
            "host.py": """
                import logging
                import torch

                log = logging.getLogger(__name__)

                class Kernel:
                    def run(self, x: torch.Tensor, dtype: "torch.dtype" = None):
                        return x

                    def check(self):
                        return torch.cuda.is_available()

                    def never_called(self):
                        return torch.zeros(1)

                def level():
                    return 0 if True else Kernel().check(log)
                """,
        },
    )
    told = {(one.file, one.line): one.message for one in made.notices}
    assert "check uses torch.cuda.is_available" in told["host.py", 12]
    assert "level uses log (host.py:5 uses logging.getLogger)" in told["host.py", 18]
    assert "as if it were not set" in told["main.py", 6]
    assert "never_called" not in made.text and "import torch" not in made.text
    names = ran(made)
    with pytest.raises(NotImplementedError, match=r"host.py:18 uses log"):
        names["level"]()
    assert names["Kernel"]().run(3) == 3
    with pytest.raises(NotImplementedError, match=r"host.py:12 uses torch.cuda.is_available"):
        names["Kernel"]().check()


def test_an_entry_that_cannot_come_along_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"main.py:4: launch uses torch.zeros, which candidates may not use.*PyTorch"):
        bundled(tmp_path, {"main.py": "import torch\n\ndef launch():\n    return torch.zeros(1)\n"})
    with pytest.raises(InputError, match=r"main.py defines no launch, but other"):
        bundled(tmp_path, {"main.py": "def other(): pass\n"})


def test_alternatives_of_an_import(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                import sys
                try:
                    from triton import cdiv
                except ImportError:
                    cdiv = None
                try:
                    from fast import f
                except ImportError:
                    from slow import f
                if sys.version_info >= (3, 12):
                    from typing import override
                else:
                    from typing_extensions import override

                class A:
                    @override
                    def g(self):
                        return f(), cdiv

                def launch():
                    return A().g()
                """,
            "slow.py": "def f():\n    return 'slow'\n",
        },
    )
    assert ran(made)["launch"]() == ("slow", None)


def test_methods_that_nothing_calls_stay_behind(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                from enum import Enum

                class Base:
                    def shared(self):
                        return self.hook()

                    def hook(self):
                        return "base"

                class Own(Base):
                    def hook(self):
                        return "own"

                    # with its comment
                    def gone(self):
                        return "gone"

                    def by_name(self):
                        return "by name"

                    def _part_one(self):
                        return 1

                class Empty:
                    def gone(self):
                        pass

                def launch(n="one"):
                    return Own().shared(), getattr(Own(), "by_name")(), getattr(Own(), f"_part_{n}")(), Empty
                """,
        },
    )
    assert ran(made)["launch"]()[:3] == ("own", "by name", 1)
    assert "gone" not in made.text and "with its comment" not in made.text


def test_a_module_that_is_passed_as_a_value(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """
                import a, b

                def launch(new):
                    helpers = b if new else a
                    return helpers.f(), helpers.K
                """,
            "a.py": "K = 1\n\ndef f():\n    return 'a'\n\ndef g():\n    return 'g'\n",
            "b.py": "K = 2\n\ndef f():\n    return 'b'\n",
        },
    )
    launch = ran(made)["launch"]
    assert launch(True) == ("b", 2) and launch(False) == ("a", 1)
    assert "'g'" not in made.text


def test_future_annotations_stay_strings(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": "import a\n\ndef launch(x: int):\n    return [f.__annotations__ for f in (a.f, launch)]\n",
            "a.py": "from __future__ import annotations\n\ndef f(x: Missing | None) -> list[int]:\n    return [x]\n",
        },
    )
    assert ran(made)["launch"](1) == [{"x": "Missing | None", "return": "list[int]"}, {"x": int}]


def test_the_dsl_extensions_of_packages_are_spelled_out(tmp_path: Path) -> None:
    """``const_expr(s) and d`` must not evaluate ``d`` where ``s`` is false; ``:`` is None."""
    made = bundled(
        tmp_path,
        {
            "main.py": """
                from cutlass import const_expr

                class Grid:
                    shape = (1, 2, 3)

                    def __getitem__(self, index):
                        return index

                def launch(s, d, const_expr=bool):
                    x = Grid()
                    found = [x[1, :], x[..., 2], x[:]]
                    if const_expr(s) and d():  # a comment: with a colon
                        found.append("both")
                    else:
                        found.append("else")
                    if (
                        const_expr(s)
                        or d()
                    ):
                        found.append("either")
                    elif const_expr(s) and const_expr(not s):
                        found.append("never")
                    return found
                """,
        },
    )
    text = made.text.replace("from cutlass import const_expr\n", "")
    names: dict[str, object] = {}
    exec(text, names)  # noqa: S102 - written by the test
    launch = names["launch"]
    assert callable(launch)
    index = [(1, None), (None, None, 2), slice(None)]
    assert launch(True, lambda: True) == [*index, "both", "either"]
    assert launch(True, lambda: False) == [*index, "else", "either"]
    assert launch(False, lambda: True) == [*index, "else", "either"]
    assert "if const_expr(not (s)) " not in text and "elif (d()):" in text


def test_a_change_to_the_dsl_is_left_out_and_said(tmp_path: Path) -> None:
    made = bundled(
        tmp_path,
        {
            "main.py": """\
                import cutlass.cute as cute

                def f(x):
                    return x

                cute.Tensor.to = f

                def launch():
                    return f(1)
                """,
        },
    )
    assert "Tensor.to" not in made.text
    assert [(one.line, one.message) for one in made.notices] == [
        (6, "a change to cutlass.cute is left out: a candidate does not change the DSL")
    ]


def test_what_is_read_is_not_executed(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "raise SystemExit\n\ndef f():\n    return 1\n"})
    made = bundled(tmp_path, {"main.py": "import a\n\ndef launch():\n    return a.f()\n"})
    assert ran(made)["launch"]() == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def launch(:\n", r"main.py:1: not valid Python"),
        ("from . import nothing\n\ndef launch():\n    return nothing\n", "nothing"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        bundled(tmp_path, {"main.py": text})


def test_names_of_files_and_opening_comments_are_no_code(tmp_path: Path) -> None:
    folder = "pkg\nCODE = 1\n"
    made = bundled(
        tmp_path,
        {
            f"{folder}/main.py": "# (c) \x1b[2J\u202e me\n"
            "from .a import helper\n\ndef launch():\n    return helper()\n",
            f"{folder}/__init__.py": "",
            f"{folder}/a.py": "def helper():\n    return 1\n",
        },
    )
    names = ran(made)
    assert names["launch"]() == 1 and "CODE" not in names
    head = made.text[: made.text.index("# from")]
    assert "(c)" in head and head.replace("\n", "").isprintable()


ODD_WHITE_SPACE = "\f \v \x1c \x85 \u2028 \xa0 \t"


def test_white_space_in_strings_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_bytes(
        f"PAGE = '{ODD_WHITE_SPACE}'\r\n"
        f"LINES = '''{ODD_WHITE_SPACE}\r\n \f# no comment'''\r\n"
        "\f\r\n"
        "class Pages:\r\n"
        "    LAST = '''\r\n"
        "    # no comment'''\r\n"
        "    def unused(self): pass\r\n"
        "  \f    def used(self, x: 'int' = 1):\r\n"
        f"\f        return\f f'{ODD_WHITE_SPACE}{{x}}\f'\f, PAGE, LINES, self.LAST\r\n"
        "def launch():\r\n"
        "    return Pages().used()\r\n".encode()
    )
    made = bundled(tmp_path, {}, "main.py")
    lines = f"{ODD_WHITE_SPACE}\n \f# no comment"
    assert ran(made)["launch"]() == (f"{ODD_WHITE_SPACE}1\f", ODD_WHITE_SPACE, lines, "\n    # no comment")
    assert "unused" not in made.text


def test_annotations_that_become_strings_keep_the_white_space_of_theirs(tmp_path: Path) -> None:
    future = "from __future__ import annotations\nfrom typing import Literal\nimport b\n\n"
    text = "def launch(x: Literal['a  b\\\n\tc',\n    # why\n    'd']) -> Literal['e  f']:\n    return b.g()\n"
    made = bundled(tmp_path, {"main.py": future + text, "b.py": "def g():\n    return 1\n"})
    annotations = ran(made)["launch"].__annotations__
    assert annotations == {"x": "Literal['a  b\\tc', 'd']", "return": "Literal['e  f']"}


@pytest.mark.parametrize("cookie", ["latin-1", "utf-8", "cp1251"])
def test_a_file_is_read_in_the_encoding_that_it_names(tmp_path: Path, cookie: str) -> None:
    data = f"# coding: {cookie}\nWORD = '".encode() + "\xe9".encode() + b"'\n\ndef launch():\n    return WORD\n"
    (tmp_path / "main.py").write_bytes(data)
    assert ran(bundled(tmp_path, {}, "main.py"))["launch"]() == "\xe9".encode().decode(cookie)


def test_an_encoding_that_is_none_is_an_error(tmp_path: Path) -> None:
    for name in ("klingon", "hex"):
        with pytest.raises(InputError, match=r"main\.py"):
            bundled(tmp_path, {"main.py": f"# coding: {name}\ndef launch(): pass\n"})


def test_no_link_and_no_dots_lead_out_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path, {"private/secret.py": "KEY = 'mine'\n", "private/whole/__init__.py": "KEY = 'mine'\n"})
    for number, imported in enumerate(
        ("from linked import KEY", "from folder.secret import KEY", "from package import KEY",
         "from ..private.secret import KEY", f"from {tmp_path.name}.private.secret import KEY")
    ):  # fmt: skip
        given = tmp_path / f"given{number}"
        given.mkdir()
        (given / "linked.py").symlink_to(tmp_path / "private/secret.py")
        (given / "folder").symlink_to(tmp_path / "private")
        (given / "package").symlink_to(tmp_path / "private/whole")
        with pytest.raises(InputError) as error:
            bundled(given, {"main.py": f"{imported}\n\ndef launch():\n    return KEY\n"})
        if number < 3:
            assert "is a link to" in str(error.value) and "give that file too" in str(error.value)
    with_it = bundled(tmp_path, {}, "given0/main.py", "private/secret.py")
    assert ran(with_it)["launch"]() == "mine"


def test_links_within_a_checkout_are_followed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "shared/tiles.py": "M = 128\n",
            "kernels/mine/main.py": "from tiles import M\nfrom ...shared import tiles\n\n"
            "def launch():\n    return M + tiles.M\n",
        },
    )
    (tmp_path / "kernels/mine/tiles.py").symlink_to(tmp_path / "shared/tiles.py")
    assert ran(bundled(tmp_path, {}, "kernels/mine/main.py"))["launch"]() == 256


def test_a_package_may_have_a_project_file_inside(tmp_path: Path) -> None:
    """flash-attention has one in ``flash_attn/cute``."""
    files = {
        "main.py": "from outer.inner.kernel import M\n\ndef launch():\n    return M\n",
        "checkout/outer/__init__.py": "",
        "checkout/outer/sizes.py": "M = 128\n",
        "checkout/outer/inner/__init__.py": "",
        "checkout/outer/inner/pyproject.toml": "",
        "checkout/outer/inner/kernel.py": "from ..sizes import M\n",
    }
    assert ran(bundled(tmp_path, files, "main.py", "checkout/outer/inner/kernel.py"))["launch"]() == 128
