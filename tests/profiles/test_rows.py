"""The table of a run has every number that the run recorded, once, with who says it and its unit."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from cutegen_lab.core.counters import COUNTERS
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import SetupError
from cutegen_lab.core.predicted import terms_us
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import Comparison, LaunchCounters, Measurement, Profile, Timing
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.perfmodel import occupancy
from cutegen_lab.profiles.kernel_names import short_names
from cutegen_lab.profiles.residency import by_registers, by_smem, taken, taken_of
from cutegen_lab.profiles.row import COLUMNS, Row, to_csv, to_frame, to_json
from cutegen_lab.profiles.rows import rows
from tests.emulator.ptx_kernel import build, kernel
from tests.profiles.recorded import recorded

SOFTMAX = recorded("softmax")
ROWS = rows(SOFTMAX.state, SOFTMAX.builds)
TRIAL = SOFTMAX.state.trials["c1"]


def values(found: tuple[Row, ...], **wanted: str) -> list[float]:
    return [row.value for row in found if all(getattr(row, name) == value for name, value in wanted.items())]


def test_counters_and_terms_are_those_of_the_recorded_profile() -> None:
    profile = TRIAL.profile
    assert profile is not None
    counted = {
        f"{r.metric}:{r.subject}" if r.subject else r.metric: r.value
        for r in ROWS
        if r.source == "emulator" and r.metric not in ("term", "time")
    }
    assert counted == {k: v for k, v in profile.counters.items() if not k.startswith("predicted_")}
    assert {r.subject: r.value for r in ROWS if r.metric == "term"} == terms_us(profile)
    assert {r.kernel for r in ROWS if r.metric == "global_load_sectors"} == {"row_kernel"}


def test_every_counter_has_its_unit() -> None:
    named = [row for row in ROWS if row.source == "emulator" and row.metric in COUNTERS]
    assert {row.metric: row.unit for row in named} == {row.metric: COUNTERS[row.metric][0] for row in named}
    without = {row.metric for row in ROWS if not row.unit and row.source in ("emulator", "ncu")}
    assert without == {"busiest_block", "turns"} & without, "ratios alone"


def test_a_prediction_is_not_called_a_measurement() -> None:
    assert values(ROWS, metric="time", source="emulator", subject="candidate") == [TRIAL.timing.time_us]  # type: ignore[union-attr]
    assert not values(ROWS, source="timer")


def test_checks_have_a_row_for_each_workload_and_draw() -> None:
    check = TRIAL.check
    assert check is not None
    shares = [max(max(e.norm / e.limit_norm if e.limit_norm else 0.0, e.worst / e.limit_worst if e.limit_worst else 0.0)
                  for e in c.errors) for c in check.checks if c.errors]  # fmt: skip
    assert values(ROWS, metric="error_over_budget") == shares and max(shares) <= 1
    assert len(values(ROWS, metric="passed")) == len(check.checks)
    assert {(r.workload, r.subject) for r in ROWS if r.metric == "passed"} == {
        (c.workload, c.distribution) for c in check.checks
    }


def measured(state: RunState) -> RunState:
    """The run with the time that a GPU's timer might have given."""
    timing = Timing(
        "measured", 40.0, "graph; cold", "cuda:0 NVIDIA H200", 3, 0.5, {"eager PyTorch": 80.0}, "eager PyTorch", 0.25,
        35.0, (Measurement("eager PyTorch", "graph", "cold L2: …", 3, 80.0, 1.0, math.inf),),
        (Comparison("eager PyTorch", "faster", 0.5, 0.49, 0.51, 3),),
        rounds_us={"candidate": (39.0, 41.0, 40.0), "eager PyTorch": (80.0, 80.0, 81.0)},
    )  # fmt: skip
    return replace(state, trials={"c1": replace(state.trials["c1"], timing=timing)})


def test_a_measured_time_has_its_interval_its_rounds_and_those_beside_it() -> None:
    found = rows(measured(SOFTMAX.state))
    (mine,) = (r for r in found if (r.metric, r.subject) == ("time", "candidate"))
    assert (mine.source, mine.value, mine.low, mine.high) == ("timer", 40.0, 39.75, 40.25)
    assert values(found, metric="time_round", subject="eager PyTorch") == [80.0, 80.0, 81.0]
    assert values(found, metric="time_warm_l2") == [35.0]
    (ratio,) = (r for r in found if r.metric == "time_ratio")
    assert (ratio.subject, ratio.value, ratio.low, ratio.high) == ("eager PyTorch", 0.5, 0.49, 0.51)
    (theirs,) = (r for r in found if (r.metric, r.subject) == ("time", "eager PyTorch"))
    assert (theirs.value, theirs.low, theirs.high) == (80.0, None, None), "three samples have no interval"


def test_resources_are_those_of_the_build_or_where_there_is_none_those_recorded() -> None:
    made = SOFTMAX.builds["c1"]
    launch = made.plan.launches[0]
    shape = occupancy(launch, made.kernel(launch.kernel), GPUS["H200"])
    assert values(ROWS, metric="resident_warps") == [shape.warps]
    assert values(ROWS, metric="occupancy") == [shape.warps / 64]
    assert values(ROWS, metric="registers") == values(rows(SOFTMAX.state), metric="registers") == [48]


def test_what_if_begins_where_the_kernel_is() -> None:
    made, gpu = SOFTMAX.builds["c1"], GPUS["H200"]
    launch = made.plan.launches[0]
    one = taken(launch, made.kernel(launch.kernel))
    assert taken_of(ROWS, "c1", "row_kernel") == replace(one, kernel="row_kernel")
    now = occupancy(launch, made.kernel(launch.kernel), gpu).warps
    assert one.warps(gpu) == dict(by_registers(one, gpu))[48] == now
    falling = [warps for _, warps in by_registers(one, gpu)]
    assert falling == sorted(falling, reverse=True) and falling[-1] < now
    assert by_smem(one, gpu)[0][1] >= now > by_smem(one, gpu)[-1][1] == one.threads // 32, "one block in all of it"
    assert one.limits(gpu)["registers"] * one.threads // 32 == now, "what limits it"


def test_launches_of_a_plan_are_told_apart() -> None:
    ptx = kernel("mul.wide.u32 %rd9, %r1, 4; add.s64 %rd10, %rd1, %rd9; st.global.u32 [%rd10], %r1; ret;", 1)
    out = np.zeros(64, np.uint32)
    made = build(ptx, [out], block=(64, 1, 1), launches=2)
    specs, buffers = [TensorSpec("out", DType.I32, (64,))], [memoryview(out.view(np.uint8))]
    _, profile = EmulatorDevice().time(made, specs, buffers, GPUS["H200"], threading.Event())
    assert profile is not None
    each = profile.launches
    assert [launch.kernel for launch in each] == ["k", "k"]
    assert sum(x.counters["global_store_sectors"] for x in each) == profile.counters["global_store_sectors"] == 16
    once = replace(made, plan=replace(made.plan, launches=made.plan.launches[:1]))
    _, alone = EmulatorDevice().time(once, specs, buffers, GPUS["H200"], threading.Event())
    assert alone is not None and not alone.launches, "the call's counters are its only launch's"
    state = replace(SOFTMAX.state, trials={"c1": replace(TRIAL, profile=profile)})
    found = rows(state)
    assert values(found, metric="global_store_sectors", kernel="") == [16]
    assert values(found, metric="global_store_sectors", kernel="k") == [8, 8]


def test_a_profile_from_hardware_stands_beside_the_recorded_one() -> None:
    theirs = Profile("hardware", "L2", {"global_load_sectors": 7.0}, launches=(LaunchCounters("k", {"blocks": 1.0}),))
    found = rows(SOFTMAX.state, SOFTMAX.builds, {"c1": [theirs, TRIAL.profile]})  # type: ignore[list-item]
    assert values(found, metric="global_load_sectors", source="ncu") == [7.0]
    assert len(values(found, metric="global_load_sectors", source="emulator")) == 1, "the recorded one is there once"


def test_csv_and_json_say_what_the_rows_say() -> None:
    read = list(csv.DictReader(io.StringIO(to_csv(ROWS))))
    assert tuple(read[0]) == COLUMNS and [float(row["value"]) for row in read] == [row.value for row in ROWS]
    assert read[0]["low"] == ""
    bad = replace(ROWS[0], value=math.inf)
    assert json.loads(json.dumps(to_json([bad]), allow_nan=False))[0]["value"] is None


def test_a_table_of_pandas() -> None:
    pytest.importorskip("pandas")
    frame = to_frame(ROWS)
    assert list(frame.columns) == list(COLUMNS) and len(frame) == len(ROWS)
    assert frame[frame.metric == "registers"].value.item() == 48


def test_without_pandas_an_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SetupError, match=r"pip install pandas, or use \.rows"):
        to_frame(ROWS)


def test_kernels_have_short_names() -> None:
    long = "kernel_cutlass_gemm_kernel_cutlasscuteatomCopyAtomobject_0"
    other = "kernel_cutlass_gemm_kernel_tensorptrf32_1"
    names = short_names([long, other, long, "k"])
    assert names == {long: "gemm_kernel", other: "gemm_kernel#2", "k": "k"}
