"""``cutegen profile``: the table of a run as text, CSV and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_lab.devices.cuda import gpu_count
from tests.cli.command import cutegen, only_object
from tests.profiles.recorded import kept, recorded


def test_the_table_of_a_run(tmp_path: Path) -> None:
    run = kept("softmax", tmp_path / "lab")
    done = cutegen(tmp_path, "profile", run, "--csv", "profile.csv")
    assert done.returncode == 0, done.stderr
    head, first = done.stdout.splitlines()[:2]
    time_us = recorded("softmax").state.trials["c1"].timing.time_us  # type: ignore[union-attr]
    columns = "candidate  time  9 of 10 measured  moved  registers  occupancy  limited by"
    assert head.split() == columns.split() and first.split()[:4] == ["c1", f"{time_us:.3g}", "µs", "predicted"]
    written = (tmp_path / "profile.csv").read_text().splitlines()
    assert written[0].startswith("run,candidate,workload,kernel,source,subject,metric,unit,value")
    again = only_object(cutegen(tmp_path, "profile", run, "--csv", "profile.csv", "--json"))
    assert len(again["rows"]) == len(written) - 1, "the same, in the same file"
    assert again["candidate"] == "c1" and again["rows"][0]["metric"] == "speed_of_light"


def test_what_there_is_not_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    run = kept("softmax", tmp_path / "lab")
    done = cutegen(tmp_path, "profile", run, "--candidate", "c9", "--csv", "profile.csv")
    assert done.returncode == 2 and "no candidate 'c9'" in done.stderr and "Candidates: c1." in done.stderr
    (tmp_path / "mine.csv").write_text("mine\n")
    refused = cutegen(tmp_path, "profile", run, "--csv", "mine.csv")
    assert refused.returncode == 2 and "cutegen did not write it" in refused.stderr
    assert (tmp_path / "mine.csv").read_text() == "mine\n" and not (tmp_path / "profile.csv").exists()


def test_what_warps_do_is_written_as_a_trace(tmp_path: Path) -> None:
    run = kept("matmul", tmp_path / "lab")
    done = cutegen(tmp_path, "profile", run, "--candidate", "c1", "--trace", "warps.json")
    assert done.returncode == 0, done.stderr
    assert "warps.json: 1 block, the emulator's order of execution, not time" in done.stdout
    events = json.loads((tmp_path / "warps.json").read_text())["traceEvents"]
    assert {"run", "wait", "copy in", "product"} <= {event.get("cat") for event in events}
    assert cutegen(tmp_path, "profile", run, "--candidate", "c1", "--trace", "warps.json").returncode == 0, "again"
    (tmp_path / "mine.json").write_text("{}")
    refused = cutegen(tmp_path, "profile", run, "--trace", "mine.json")
    assert refused.returncode == 2 and "cutegen did not write it" in refused.stderr


@pytest.mark.skipif(gpu_count() > 0, reason="this machine has a GPU: the refusal cannot be shown")
def test_a_measured_trace_needs_a_gpu(tmp_path: Path) -> None:
    run = kept("softmax", tmp_path / "lab")
    refused = cutegen(tmp_path, "profile", run, "--trace", "warps.json", "--trace-on", "cuda")
    assert refused.returncode == 2 and "no CUDA device is visible" in refused.stderr
    assert not (tmp_path / "warps.json").exists()
