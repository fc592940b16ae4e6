"""Literals that become parameters, found and handed down by text alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.tuning import read_tunables
from cutegen_lab.tuning.refactor.divides import even_divisions
from cutegen_lab.tuning.refactor.knobs import Knob, domain, find
from cutegen_lab.tuning.refactor.rewrite import CannotPlumb, rewrite
from cutegen_lab.tuning.refactor.text import KernelText, whole_number
from tests.honest.corpus import honest, names
from tests.tuning.test_tuner import SMALL

FOLDER = Path(__file__).parents[2] / "honest" / "kernels"

CONSTANTS = """import cutlass
import cutlass.cute as cute

WARPS, VEC = 4, 8  # é: columns are counted in bytes
THREADS = 32 * WARPS


def workspace(workload, config):
    return [("partial", "f32", (WARPS,))]


def helper(x):
    return x + THREADS * VEC


@cute.kernel
def kernel(mX: cute.Tensor):
    tile = 64
    rows = cute.make_layout((tile, 2))
    return helper(mX), rows


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream):
    kernel(x).launch(grid=[x.shape[0] // VEC, 1, 1], block=[THREADS, 1, 1], stream=stream)
"""


def knobs(source: str) -> dict[str, Knob]:
    return {k.name: k for k in find(KernelText(source))}


def test_constants_go_where_they_are_read_and_so_does_what_is_computed_from_them() -> None:
    found = knobs(CONSTANTS)
    assert {n: (k.value, k.role) for n, k in found.items()} == {
        "tile": (64, "tile"), "vec": (8, "vec"), "warps": (4, "count"),
    }  # fmt: skip
    text = rewrite(KernelText(CONSTANTS), list(found.values()), ["workload.tensors[0].shape[0] % config['vec'] == 0"])
    assert "def helper(x, vec: cutlass.Constexpr, warps: cutlass.Constexpr):" in text
    assert "return x + (32 * warps) * vec" in text and "helper(mX, vec=vec, warps=warps)" in text
    assert '(config["warps"],)' in text and "block=[(32 * warps), 1, 1]" in text
    assert "WARPS" not in text and "THREADS" not in text and "tile = " not in text
    assert "make_layout((tile, 2))" in text and "kernel(x, tile=tile, vec=vec, warps=warps)" in text
    tunables = read_tunables(text)
    assert tunables.default == {"tile": 64, "vec": 8, "warps": 4} and tunables.domains["vec"] == (2, 4, 8, 16, 32)


def test_what_is_even_now_must_stay_so() -> None:
    text = KernelText(rewrite(KernelText(CONSTANTS), [knobs(CONSTANTS)["vec"]]))
    assert even_divisions(text, ["vec"], {"vec": 8}, [SMALL]) == ['workload.tensors[0].shape[0] % config["vec"] == 0']
    assert even_divisions(text, ["vec"], {"vec": 7}, [SMALL]) == []
    handed = (
        "def kernel(n, t):\n    return n // 8 // t\n\n\ndef launch(x, y, stream, vec=4):\n    kernel(x.shape[0], vec)\n"
    )
    found = even_divisions(KernelText(handed), ["vec"], {"vec": 4}, [SMALL])
    assert 'workload.tensors[0].shape[0] % (8 * config["vec"]) == 0' in found
    rounded_up = handed.replace("n // 8", "(n + 7)")
    assert even_divisions(KernelText(rounded_up), ["vec"], {"vec": 4}, [SMALL]) == []


SHARED = """import cutlass.cute as cute


@cute.kernel
def kernel(mX):
    for column in range(0, mX.shape[1], 256):
        mX[column] = 256.0


@cute.jit
def launch(x, y, stream):
    kernel(x).launch(grid=[1, 1, 1], block=[256, 1, 1], stream=stream)
"""


def test_literals_of_one_value_may_be_one_parameter() -> None:
    knob = knobs(SHARED)["threads"]
    assert (len(knob.sites), len(knob.strays), knob.domain) == (1, 1, (64, 128, 256, 512, 1024))
    alone, together = (rewrite(KernelText(SHARED), [k]) for k in (knob, knob.with_strays()))
    assert "mX.shape[1], 256)" in alone and "def kernel(mX):" in alone and "import cutlass\n" in alone
    assert "mX.shape[1], threads)" in together and "kernel(x, threads=threads)" in together and "256.0" in together


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("kernel(x).launch", "run(kernel)(x).launch"), "passed on as a value"),
        (("def kernel(mX)", "def kernel(*mX)"), "no place for another"),
        (("mX[column]", "threads = mX[column]"), "means something else in kernel"),
        (("def kernel(mX)", "def kernel(mX, threads=1)"), "has an argument threads that is something else"),
    ],
)
def test_what_cannot_be_handed_down_says_why(change: tuple[str, str], why: str) -> None:
    text = KernelText(SHARED.replace(*change))
    knob = next(k for k in find(KernelText(SHARED)) if k.name == "threads").with_strays()
    sites = tuple(text.span(n) for n in ast.walk(text.tree) if whole_number(n) == 256)
    moved = Knob("threads", 256, "threads", knob.domain, sites)
    with pytest.raises(CannotPlumb, match=why):
        rewrite(text, [moved])


def test_an_f_string_stays_as_it_is() -> None:
    source = CONSTANTS.replace("return helper(mX), rows", 'return helper(mX), f"{VEC}"')
    with pytest.raises(CannotPlumb, match="f-string"):
        rewrite(KernelText(source), [knobs(source)["vec"]])


def test_domains() -> None:
    assert domain("threads", 128) == (32, 64, 128, 256, 512) and domain("threads", 96) == (96, 192, 384)
    assert domain("stages", 3) == (1, 2, 3, 4, 5) and domain("tile", 64) == (16, 32, 64, 128)
    assert domain("bits", 128) == (32, 64, 128) and domain("unroll", 1) == (1, 2, 4)


@pytest.mark.parametrize("source", ["def launch(:", "x = 1\n"])
def test_what_is_no_kernel(source: str) -> None:
    with pytest.raises(InputError, match=r"not Python|no function launch"):
        KernelText(source)


def test_the_whole_corpus_stays_python_with_the_old_values_as_defaults() -> None:
    rewritten = 0
    for name in (n for n in names() if (FOLDER / f"{n}.py").exists()):
        text = KernelText(honest(name).source)
        if "TUNABLE" in text.constants:
            continue
        for knob in find(text):
            for variant in (knob, knob.with_strays()):
                try:
                    found = read_tunables(rewrite(text, [variant]))
                except CannotPlumb:
                    continue
                assert found.default == {knob.name: knob.value}
                rewritten += 1
    assert rewritten > 150
