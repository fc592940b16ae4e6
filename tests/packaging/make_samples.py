"""Writes the runs the TypeScript tests and pages show: ``python tests/packaging/make_samples.py``.

Each is made the way a live run is, from events through the loop's fold and :func:`build_view`, so that the front end is
tested on what Python really says.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from cutegen_lab.core.artifact import TracedLayout
from cutegen_lab.core.candidate import Candidate, Proposal, TokenUsage
from cutegen_lab.core.cost import Price
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.ideas import Change, Idea
from cutegen_lab.core.predicted import as_counters
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.core.roofline import GPUS, speed_of_light
from cutegen_lab.core.run import (
    Answer,
    Answered,
    Budget,
    Checked,
    Compiled,
    CompileFailed,
    Event,
    Generated,
    GenerateFailed,
    IdeasGiven,
    Profiled,
    RunSettings,
    RunStarted,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
    StoredEvent,
    Timed,
)
from cutegen_lab.core.scopes import scope_of
from cutegen_lab.core.stopwatch import COPY, INCUMBENT
from cutegen_lab.core.trial import (
    CheckResult,
    Comparison,
    LineCounters,
    OutputError,
    Profile,
    Provenance,
    Resources,
    SharedAccess,
    Timing,
    WorkloadCheck,
)
from cutegen_lab.core.verbs import NoteVerb
from cutegen_lab.core.verdict import Diagnostic, Verdict
from cutegen_lab.layouts.conflicts import conflicting
from cutegen_lab.layouts.traced import made_layouts
from cutegen_lab.loop import fold
from cutegen_lab.loop.notes import broken_by, note_event
from cutegen_lab.notebook.plots import Subject
from cutegen_lab.notebook.plots.plot_queries import plot_list, plot_view
from cutegen_lab.profiles.rows import rows
from cutegen_lab.views.compare import comparison
from cutegen_lab.views.layouts import layout_picture, layouts_view
from cutegen_lab.views.run_view import build_view
from tests.profiles.recorded import recorded, timelines_of

SAMPLES = Path(__file__).parents[2] / "labextension/tests/samples"
ANSWERS = SAMPLES.parent / "answers"
START = 1_790_000_000.0
HOSTILE = "</script><img src=x onerror=\"globalThis.pwned=1\"><b>bold</b> & 'quoted' ${1+1}"

KERNEL = '''"""Row softmax: one block a row group, {threads} threads a row, {vec} elements a load."""

import cutlass
import cutlass.cute as cute

TUNABLE = {{"threads_per_row": (32, 64, 128, 256), "vec": (4, 8), "rows_per_block": (1, 2, 4)}}


@cute.kernel
def row_softmax(gX: cute.Tensor, gY: cute.Tensor, threads_per_row: cutlass.Constexpr, vec: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    lane = tidx % threads_per_row
    rX = cute.make_rmem_tensor((vec,), cutlass.Float32)
    running_max = -cutlass.Float32.inf
    running_sum = cutlass.Float32(0.0)
    for column in cutlass.range(lane * vec, gX.shape[1], threads_per_row * vec, unroll={unroll}):
        rX.store(cute.local_tile(gX[row, None], (vec,), (column // vec,)).load().to(cutlass.Float32))
        block_max = cute.arch.fmax(running_max, rX.load().reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, 0))
        running_sum = running_sum * cute.exp2((running_max - block_max) * LOG2_E)
        running_max = block_max
    {tail}


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream, *, threads_per_row=256, vec=8, rows_per_block=1):
    grid = (cute.ceil_div(x.shape[0], rows_per_block), 1, 1)
    row_softmax(x, y, threads_per_row, vec).launch(
        grid=grid, block=(threads_per_row * rows_per_block, 1, 1), stream=stream
    )
'''


def workload(rows: int, columns: int, why: str) -> Workload:
    x, y = (TensorSpec(name, DType.BF16, (rows, columns)) for name in ("x", "y"))
    return Workload(name=f"{rows}x{columns}", inputs=(x,), outputs=(y,), why=why)


PROBLEM = Problem(
    name="softmax",
    source="import torch\n\n\ndef reference(x):\n    return torch.softmax(x, dim=-1)\n",
    kind="reference",
    workloads=(workload(4096, 8192, "as given"),),
    check_workloads=(workload(3, 8192, "few rows"), workload(1, 131, "one row, prime columns")),
    inputs_text="x: bf16[4096, 8192]",
)
SOL = speed_of_light(PROBLEM, GPUS["H200"])
RESOURCES = Resources(registers=40, spill_bytes=0, static_smem_bytes=128, dynamic_smem_bytes=0, kernels=1)


class Script:
    """Events as a store would keep them: numbered, each a little later than the one before."""

    def __init__(self, problem: Problem = PROBLEM, settings: RunSettings | None = None) -> None:
        self.stored: list[StoredEvent] = []
        self.at = START
        versions = {"cutegen-lab": "0.1.0", "nvidia-cutlass-dsl": "4.8.1", "torch": "2.13.0", "python": "3.11.2"}
        self.say(RunStarted("r-7f3a91", problem, settings or RunSettings(device="emulator"), SOL, versions), 0.0)

    def say(self, event: Event, seconds: float) -> None:
        self.at += seconds
        self.stored.append(StoredEvent(len(self.stored) + 1, self.at, event))

    def generate(self, id_: str, parent: str | None, proposal: Proposal) -> None:
        self.say(StepStarted(Step.GENERATE), 0.05)
        self.say(Generated(Candidate(id_, parent, "templates", proposal)), 0.2)
        self.say(StepStarted(Step.COMPILE, id_), 0.01)

    def compile(self, id_: str) -> None:
        self.say(Compiled(id_, "ab" * 32, RESOURCES, provenance(), seconds=0.4), 0.42)
        self.say(StepStarted(Step.CHECK, id_), 0.01)

    def check(self, id_: str, norm: float, verdict: Verdict = Verdict.PASSED, reason: str = "") -> None:
        error = OutputError("y", norm, norm * 3, 1.66e-3, 4.1e-3, 5e-3, 1.6e-2, (0, 130), 0.0123, 0.0125)
        checks = tuple(
            WorkloadCheck(w.name, draw, 7, verdict, reason, (error,), seconds=0.3)
            for w in PROBLEM.check_workloads
            for draw in ("normal", "large")
        )
        self.say(Checked(id_, "emulator", CheckResult(verdict, reason, checks)), 1.37)

    def time(self, id_: str, time_us: float) -> None:
        self.say(StepStarted(Step.TIME, id_), 0.01)
        timing = Timing("predicted", time_us, "roofline with occupancy, from emulator counters", "emulator")
        self.say(Timed(id_, timing), 2.2)
        self.say(StepStarted(Step.PROFILE, id_), 0.01)
        parts = {
            "memory": 28.9, "L2": 19.3, "issue": 9.1, "special-function": 7.4, "copy": 28.9,
            "waits": time_us - 2, "loads in flight": 0.6 * time_us, "dependent instructions": 0.2 * time_us,
            "launch": 2.0,
        }  # fmt: skip
        counted = {"warp_instructions": 1.3e5 * time_us, "resident_warps_per_sm": 32.0, "moved_bytes": 134_217_728.0}
        counters = {"dram_bytes": 134_217_728.0, **counted, **as_counters(parts)}
        findings = ("each thread has 16 bytes in flight; 32 would cover the latency of DRAM",)

        def work(instructions: float) -> dict[str, float]:
            return {"warp_instructions": instructions, "lane_instructions": 32 * instructions}

        lines = (
            LineCounters(
                13,
                {"global_load_sectors": 2.1e6, "global_load_bytes": 6.7e7, "moved_bytes": 6.7e7, **work(1.3e6),
                 "predicted_waits_us": 0.6 * time_us},
            ),
            LineCounters(
                21,
                {"shared_wavefronts": 5.2e4, "shared_conflicts": 3.1e3, **work(6.5e6),
                 "predicted_waits_us": 0.2 * time_us},
            ),
            LineCounters(
                27, {"global_store_sectors": 2.1e6, "global_store_bytes": 6.7e7, "moved_bytes": 6.7e7, **work(1.3e6)}
            ),
        )  # fmt: skip
        self.say(Profiled(id_, Profile("emulator", "memory latency", counters, findings, lines)), 0.6)

    def measure(self, id_: str, time_us: float, incumbent_us: float | None = None) -> None:
        """A time that was measured beside PyTorch, a copy and the current kernel."""
        self.say(StepStarted(Step.TIME, id_), 0.01)
        others = {"eager PyTorch": 92.4, "torch.compile": 47.2, COPY: 33.1}
        if incumbent_us is not None:
            others[INCUMBENT] = incumbent_us
        compared = []
        for name, other in others.items():
            ratio, half = time_us / other, 0.011
            answer = "faster" if ratio + half < 1 else "slower" if ratio - half > 1 else "ambiguous"
            compared.append(Comparison(name, answer, ratio, ratio - half, ratio + half, 40))
        timing = Timing(
            "measured", time_us, "CUDA events, cold L2, 40 rounds", "cuda:0 NVIDIA H200", samples=40, iqr_us=0.6,
            baselines=others, baseline="torch.compile", half_width_us=0.3, warm_us=0.8 * time_us,
            comparisons=tuple(compared), conditions={"driver": "580.159.04", "SM clock": "1980 MHz"},
        )  # fmt: skip
        self.say(Timed(id_, timing), 6.1)
        self.say(StepStarted(Step.PROFILE, id_), 0.01)
        counters = {"dram_bytes": 138_412_032.0, "stall_cycles_long_scoreboard": 7.1e6, "stall_cycles_wait": 1.2e6}
        self.say(Profiled(id_, Profile("ncu", "memory latency", counters)), 3.0)

    def note(self, verb: NoteVerb, place: str, words: str) -> None:
        self.say(note_event(fold(stored.event for stored in self.stored), verb, place, words), 4.0)

    def answer(self, kind: str, id_: str, text: str = "", scope: str = "") -> None:
        self.say(Answered(Answer(kind, id_, text, scope=scope_of(scope))), 6.0)  # type: ignore[arg-type]


def provenance() -> Provenance:
    return Provenance(
        problem_key=PROBLEM.key,
        source_sha256="cd" * 32,
        config={"vec": 8},
        arch="sm_90a",
        device="emulator",
        seeds=(7, 11),
        tolerances={"budget": 3.0, "floor_eps": 0.5},
        versions={"nvidia-cutlass-dsl": "4.8.1"},
        isolation=("own process", "no network", "read-only files"),
        artifact_sha256="ab" * 32,
    )


def proposal(title: str, reason: str, effect: str, threads: int, vec: int, unroll: int, tail: str = "") -> Proposal:
    text = KERNEL.format(threads=threads, vec=vec, unroll=unroll, tail=tail or "write_row(gY, row, running_max)")
    config = {"threads_per_row": threads, "vec": vec, "rows_per_block": 1}
    return Proposal(text, title, reason, effect, config)


def upto_review() -> Script:
    run = Script()
    run.generate(
        "c1", None, proposal("row softmax, 64 threads a row", "A sound default for 8,192 columns.", "", 64, 4, 1)
    )
    run.compile("c1")
    run.check("c1", 1.71e-3)
    run.time("c1", 71.8)
    run.note("comment", "c1:19-20", "is this rescaling needed in every iteration?")
    run.note("pin", "c1:rows_per_block", "other kernels of ours share the grid")
    run.answer("approve", "c1")
    run.generate("c2", "c1", proposal("vector loads 4 → 8", "Half as many load instructions.", "−25% time", 64, 8, 1))
    diagnostic = Diagnostic(
        "error",
        "UNSUP_TYPE",
        "cannot store Float32 into a BFloat16 tensor without a conversion",
        24,
        "   23 |     block_max = cute.arch.fmax(running_max, ...)\n>  24 |     gY[row, column] = rX[0]",
        "",
        "convert first: rX.load().to(cutlass.BFloat16)",
    )
    why = "line 24: cannot store Float32 into a BFloat16 tensor"
    run.say(CompileFailed("c2", Verdict.COMPILE_ERROR, why, provenance(), (diagnostic,)), 0.31)
    run.generate("c3", "c2", proposal("threads a row 64 → 256", "More bytes in flight a row.", "−40% time", 256, 8, 1))
    run.compile("c3")
    run.check("c3", 2.4e-2, Verdict.WRONG_RESULT, "y[0, 130]: got 0.0123, expected 0.0125 on 1x131 (normal, seed 7)")
    tail = "if lane * vec < gX.shape[1]:\n        write_row(gY, row, running_max, running_sum)"
    run.generate(
        "c4", "c3", proposal("256 threads a row, masked tail", "The tail is masked.", "−40% time", 256, 8, 2, tail)
    )
    run.compile("c4")
    run.check("c4", 1.69e-3)
    run.time("c4", 44.9)
    run.answer("reject", "c4", "registers went up; try more rows a block instead")
    change = proposal("one warp group a row, unroll 2", "Keeps registers low.", "−35% time", 128, 8, 2, tail)
    run.generate("c5", "c1", change)
    run.compile("c5")
    run.check("c5", 1.69e-3)
    run.time("c5", 38.1)
    return run


def pinned() -> Script:
    run = Script()
    run.generate("c1", None, proposal("row softmax", "A sound default.", "", 64, 4, 1))
    run.compile("c1")
    run.check("c1", 1.71e-3)
    run.time("c1", 71.8)
    run.note("pin", "c1:18-20", "our own running sum: leave it")
    run.note("pin", "c1:vec", "")
    run.note("comment", "c1:21", "could this wait until the loop is over?")
    run.answer("approve", "c1")
    changed = proposal("sum without rescaling", "Fewer operations.", "−10% time", 64, 4, 1)
    changed = replace(changed, source=changed.source.replace(" * cute.exp2((running_max - block_max) * LOG2_E)", ""))
    run.generate("c2", "c1", changed)
    found = broken_by(fold(stored.event for stored in run.stored), changed)
    why = f"it breaks {found[0].message}"
    run.say(CompileFailed("c2", Verdict.PIN_BROKEN, why, provenance(), tuple(found)), 0.01)
    run.say(StepStarted(Step.REVIEW, "c2"), 0.01)
    return run


def measured() -> Script:
    """A run on a GPU: the second kernel is faster than the first, and whether it is faster than torch.compile is not
    proven."""
    run = Script(settings=RunSettings(device="cuda"))
    run.generate("c1", None, proposal("row softmax", "A sound default.", "", 64, 4, 1))
    run.compile("c1")
    run.check("c1", 1.71e-3)
    run.measure("c1", 58.3)
    run.answer("approve", "c1")
    run.generate("c2", "c1", proposal("vector loads 4 → 8", "Half as many load instructions.", "−18% time", 64, 8, 1))
    run.compile("c2")
    run.check("c2", 1.71e-3)
    run.measure("c2", 46.9, 58.1)
    run.say(StepStarted(Step.REVIEW, "c2"), 0.01)
    return run


def model() -> Script:
    """A model's second answer is being written."""
    settings = RunSettings(
        "openai", "gpt-5", device="emulator", budget=Budget(max_tokens=60_000, max_usd=0.5), price=Price(1.25, 10)
    )
    run = Script(settings=settings)
    run.say(StepStarted(Step.GENERATE), 0.05)
    run.say(GenerateFailed("openai: the answer has no module, twice", usage=TokenUsage(9_400, 2_100)), 41.0)
    run.say(Answered(Answer("retry")), 9.0)
    first = proposal("row softmax", "One block a row.", "", 64, 4, 1)
    ideas = (
        Idea("keep the row in registers", Change("time", -0.2)),
        Idea("two rows a block", Change("time", -0.05), "large"),
    )
    run.say(IdeasGiven(ideas, "gpt-5"), 0.0)
    run.generate("c1", None, replace(first, usage=TokenUsage(4_700, 3_900), model="gpt-5"))
    run.compile("c1")
    run.check("c1", 1.71e-3)
    run.time("c1", 71.8)
    run.answer("approve", "c1")
    run.say(StepStarted(Step.GENERATE), 0.05)
    return run


def hostile() -> Script:
    run = Script(Problem(**{**vars(PROBLEM), "name": HOSTILE, "source": HOSTILE}))
    run.generate(
        "c1", None, Proposal(HOSTILE + "\n" + HOSTILE, HOSTILE, HOSTILE, HOSTILE, {"vec": HOSTILE}, model=HOSTILE)
    )
    run.say(IdeasGiven((Idea(HOSTILE),), HOSTILE), 0.0)
    bad = Diagnostic("error", HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE, HOSTILE)
    run.say(CompileFailed("c1", Verdict.COMPILE_ERROR, HOSTILE, provenance(), (bad,)), 0.3)
    run.note("comment", "c1:1", HOSTILE)
    return run


def write(name: str, run: Script, log: tuple[str, ...] = (), attached: bool = True, streamed: int = 0) -> None:
    view = build_view(fold(stored.event for stored in run.stored), run.stored, log, attached, streamed=streamed)
    (SAMPLES / f"{name}.json").write_text(view.model_dump_json(indent=1) + "\n", encoding="utf-8")


def plots_samples() -> dict[str, str]:
    """The answers to the widget's queries for plots, of a run that was recorded on the emulator, by file: the list, and
    each plot by its name."""
    run = recorded("matmul")
    timelines = partial(timelines_of, run, "c1")
    of = Subject(rows(run.state, run.builds), "c1", GPUS[run.state.sol.gpu], timelines, run.state.problem.name)
    listed = plot_list(of)
    drawn = {p.name: plot_view(of, p.name).model_dump(mode="json") for p in listed.plots if not p.missing}
    return {
        "plots.json": listed.model_dump_json(indent=1) + "\n",
        "plot.json": json.dumps(drawn, ensure_ascii=False) + "\n",
    }


TRACED = (
    *(TracedLayout(line, '!cute.memref<bf16, smem, align<1024>, S<1,4,3>, "(8,16):(16,1)">') for line in (2, 3)),
    TracedLayout(
        3,
        '!cute_nvgpu.atom.tma_load<bf16, copy_bits = 2048, mode = tiled, num_cta = 1, g_stride = <"()"> '
        'tma_gbasis = <"(16,8):(1@1,1@0)">>',
    ),
    TracedLayout(4, 'layout_copy_tv = <"((4,4),(2,1)):((8,1),(4,0))">, tiler_mn = <"[4:1;8:1]">'),
    TracedLayout(5, '!cute.layout<"(4,8):(8,1)">'),
)
HOSTILE_LINE = "<img src=x onerror=globalThis.pwned=1>"


CONFLICT = SharedAccess(5, "load", 4, tuple(range(32)), tuple(range(0, 2048, 64)), 16, 1, 7680.0)


def layouts_samples() -> dict[str, str]:
    """Layouts of a candidate, of which one comes from a line that looks like HTML, and the picture of each, by file."""
    made = (*made_layouts(TRACED), *conflicting([CONFLICT]))
    source = f"# tiles\nsA = smem\nload(tma)\nmma = tiled  # {HOSTILE_LINE}\nlayout = make()"
    listed = layouts_view("c5", made, source, None)
    pictures = [layout_picture("c5", number, one).model_dump(mode="json") for number, one in enumerate(made)]
    return {
        "layouts.json": listed.model_dump_json(indent=1) + "\n",
        "layout_pictures.json": json.dumps(pictures, ensure_ascii=False) + "\n",
    }


def write_comparison() -> None:
    """What Python says of two candidates, which the widget must say too."""
    run = upto_review()
    view = build_view(fold(stored.event for stored in run.stored), run.stored)
    found = comparison(view, "c1", "c5")
    (SAMPLES / "../compared.json").write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")


def main() -> None:
    log = ("c5: compile cached launch plan for 4096x8192", "c5: check 1x131 passed", "c5: predicted 38.1 µs")
    SAMPLES.mkdir(parents=True, exist_ok=True)
    ANSWERS.mkdir(parents=True, exist_ok=True)
    for name, text in {**plots_samples(), **layouts_samples()}.items():
        (ANSWERS / name).write_text(text, encoding="utf-8")
    write("review", upto_review(), log)
    write("measured", measured())
    write_comparison()
    write("interrupted", upto_review(), attached=False)
    done = upto_review()
    done.answer("approve", "c5")
    done.say(Stopped("no further change is predicted to help"), 0.2)
    write("done", done)
    unproven = Script()
    unproven.generate("c1", None, proposal("row softmax", "A sound default.", "", 64, 4, 1))
    unproven.compile("c1")
    unproven.say(StepFailed(Step.CHECK, "the emulator's worker died; Retry starts it again"), 0.4)
    write("unproven", unproven)
    running = upto_review()
    running.answer("approve", "c5", scope="3 steps")
    running.generate("c6", "c5", proposal("unroll 2 → 4", "Four loads in flight.", "−8% time", 256, 8, 4))
    running.compile("c6")
    write("running", running, ("c6: checking 3x8192",))
    started = Script()
    started.say(StepStarted(Step.GENERATE), 0.1)
    write("started", started, ("reading the reference",))
    write("model", model(), ("gpt-5: about 1,300 tokens…",), streamed=1_342)
    write("pinned", pinned())
    write("hostile", hostile(), (HOSTILE,))


if __name__ == "__main__":
    main()
