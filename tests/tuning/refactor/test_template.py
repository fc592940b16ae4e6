"""Stage one with a compiler whose "PTX" is the text that launch() returns, and a judge that knows what is right."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.tuning import read_tunables
from cutegen_lab.tuning.refactor import Refactored, refactor
from cutegen_lab.tuning.refactor.template import plain_ptx
from tests.tuning.test_tuner import SMALL, build

SOURCE = """
STAGES = 3
MAGIC = 64


def kernel(x):
    return ["step", 128, "stages", STAGES, "magic", MAGIC]


def launch(x, y, stream):
    return [*kernel(x), *block(block=[128, 1, 1]), "rows", x.shape[0] // 16]
"""


class Compiler:
    """Runs launch() on a stand-in tensor. Four stages do not compile."""

    def compile(
        self, source: str, config: Config, workloads: Sequence[Workload], arch: str, say: Any, cancel: Any
    ) -> Artifact | CompileFailure:
        module: dict[str, Any] = {"cutlass": SimpleNamespace(Constexpr=int), "block": lambda block: ["block", *block]}
        body = source.replace("import cutlass\n", "")
        exec(body, module)  # noqa: S102 - the test's own text
        if (rule := module.get("constraints")) and not all(
            rule({**read_tunables(source).default, **config}, w, None) for w in workloads
        ):
            return CompileFailure(Verdict.CONTRACT, "constraints() rules it out", ruled_out=True)
        words = module["launch"](SimpleNamespace(shape=(1024,)), None, None, **config)
        if "stages" in words and words[words.index("stages") + 1] == 4:
            return CompileFailure(Verdict.COMPILE_ERROR, "too many stages")
        ptx = f"// made today\n.visible .entry kernel_{len(config)}_{abs(hash(source))}(\n" + "\n".join(map(str, words))
        return Artifact("a" * 64, config, arch, "1", {w.name: replace(build(w), ptx=ptx) for w in workloads})


def right(artifact: Artifact) -> str:
    """The step must be the block's size, and MAGIC is what it is."""
    lines = artifact.builds[SMALL.name].ptx.splitlines()
    value = {name: lines[lines.index(name) + 1] for name in ("step", "block", "magic")}
    if value["step"] != value["block"]:
        return f"wrong result: step {value['step']}, block {value['block']}"
    return "" if value["magic"] == "64" else "wrong result: no magic"


def made(source: str = SOURCE, ask: Any = None, said: list[str] | None = None) -> Refactored:
    say = (said if said is not None else []).append
    return refactor(source, [SMALL], [SMALL], "sm_90a", Compiler(), right, say, threading.Event(), ask)


def test_what_becomes_a_parameter_and_what_does_not() -> None:
    found = made()
    kept = {k.name: k for k in found.kept}
    assert kept["threads"].domain == (32, 64, 128, 256, 512) and kept["threads"].places == 2
    assert kept["stages"].domain == (1, 2, 3, 5) and kept["stages"].refused == ((4, "compile error: too many stages"),)
    assert {d.name: d.why for d in found.dropped} == {"magic": "wrong result: no magic"}
    assert found.mixed == (4, 4)
    assert read_tunables(found.source).default == {"threads": 128, "stages": 3}
    assert "block=[threads, 1, 1]" in found.source and '"step", threads' in found.source


def test_a_division_by_a_parameter_becomes_a_constraint() -> None:
    source = SOURCE.replace("// 16", "// (STAGES - 1)").replace("STAGES = 3", "STAGES = 5")
    found = made(source)
    assert found.constraints == ['workload.tensors[0].shape[0] % (config["stages"] - 1) == 0']
    stages = next(k for k in found.kept if k.name == "stages")
    assert 3 in stages.domain and 4 not in stages.domain and 7 not in stages.domain


def test_constraints_follow_literals_that_join_a_parameter() -> None:
    source = SOURCE.replace("x.shape[0] // 16", "x.shape[0] // 128 // 2")
    found = made(source)
    assert next(k for k in found.kept if k.name == "threads").places == 3
    assert found.constraints == ['workload.tensors[0].shape[0] % (config["threads"] * 2) == 0']


def test_a_literal_that_changes_nothing_stays() -> None:
    source = SOURCE.replace('"magic", MAGIC]', '"magic", 64] + [0] * (MAGIC * 0)')
    assert ("magic", "other values compile to the same PTX") in [(d.name, d.why) for d in made(source).dropped]


def test_a_parameter_must_leave_the_ptx_as_it_was() -> None:
    source = SOURCE.replace('"magic", MAGIC]', '"magic", MAGIC, len(locals())]')
    assert {d.name for d in made(source).dropped if "other PTX" in d.why} == {"stages", "magic"}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (SOURCE.replace('"step", 128', '"step", 100'), "not right as it is: wrong result: step 100"),
        (SOURCE.replace("STAGES = 3", "STAGES = 4"), "does not compile: too many stages"),
        ("TUNABLE = {'a': (1,)}\n" + SOURCE, "has a TUNABLE already"),
    ],
)
def test_what_cannot_be_refactored(source: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        made(source)


def test_ptx_without_names_comments_and_lines() -> None:
    one = ".visible .entry kernel_a_128(\n\t.loc 1 2 3\n\tadd.s32 %r1, 1; // here\n\t.section\t.debug_info\n.b8 1"
    two = ".file 1\n.visible .entry kernel_b(\n\tadd.s32 %r1, 1;\n"
    assert plain_ptx(one) == plain_ptx(two) != plain_ptx(two.replace("1;", "2;"))


def test_a_model_proposes_and_the_same_checks_decide() -> None:
    """The 16 under the division is nothing that the text alone shows."""
    told: list[str] = []
    said: list[str] = []

    def ask(found: Sequence[str]) -> str:
        told.extend(found)
        return (
            "Here they are:\n- rows_each = 16 at line 11 in 8, 16, 32\nmany = 99 at lines 1 in 3\n"
            "kernel = 128 at line 7 in 64\nbigger = 128 at line 11 in 256"
        )

    found = made(ask=ask, said=said)
    assert "stages = 3 on line 2" in told
    assert next(k for k in found.kept if k.name == "rows_each").domain == (8, 16, 32)
    assert "x.shape[0] // rows_each" in found.source
    refusals = [line for line in said if line.startswith("proposed, but")]
    assert len(refusals) == 3 and "no 99 in a function" in refusals[0] and "kernel is in use" in refusals[1]
