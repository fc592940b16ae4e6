"""Counters by ncu and by the emulator in one figure, each with its own mark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.perfmodel.counters_cases import store
from benchmarks.perfmodel.counters_plotted import count, plot
from cutegen_lab.devices.cuda import ncu
from tests.devices.test_ncu import REPORT
from tests.profiles.recorded import recorded


def test_both_are_in_the_figure(tmp_path: Path) -> None:
    emulated = recorded("softmax").state.trials["c1"].profile
    hardware = ncu.profile_of(ncu.read_report(REPORT))
    assert emulated is not None
    profiles = [{"source": p.source, "limiter": p.limiter, "counters": dict(p.counters)} for p in (emulated, hardware)]
    (tmp_path / "out.json").write_text(json.dumps({"case": "softmax", "device": "NVIDIA H200", "profiles": profiles}))
    plot(tmp_path / "out.json", tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert '"name":"emulator"' in page and '"name":"hardware"' in page and "softmax on NVIDIA H200" in page


def test_without_a_profiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = recorded("softmax")
    store(tmp_path, "softmax", "", run.state.problem.workload, {}, run.builds["c1"], counted=True, timed=False)
    monkeypatch.setattr(ncu, "find", lambda: None)
    with pytest.raises(SystemExit, match="CUDA toolkit"):
        count(tmp_path / "softmax.json", tmp_path / "out.json")
