"""The main job with every real part: templates, cage, emulator, judge, store."""

from __future__ import annotations

import json
import re
import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

from cutegen_lab.stores.sqlite import SqliteStore
from tests.cli.command import cutegen, cutegen_process, only_object

pytestmark = pytest.mark.kernel


def test_run_a_softmax(place: Path) -> None:
    done = cutegen_process(place, "run", "softmax.py", "--auto", "--max-steps", "2", "--device", "emulator", "--json")
    data = only_object(done)
    assert (done.returncode, data["verdict"], data["outcome"]) == (0, "passed", "accepted"), done.stderr
    assert "Warning" not in done.stderr
    assert data["timing"]["kind"] == "predicted"
    assert data["candidates"][0]["answer"] == "approve"
    record = data["provenance"]
    assert record["seeds"] and record["tolerances"] and record["isolation"] and record["config"]
    assert record["versions"]["torch"] and record["versions"]["nvidia-cutlass-dsl"] and record["versions"]["python"]
    kernel = Path(data["kernel"])
    judged = cutegen(place, "judge", "softmax.py", str(kernel), "--json")
    again = only_object(judged)
    assert judged.returncode == 0
    assert again["provenance"]["config"] == record["config"]
    assert again["provenance"]["artifact_sha256"] == record["artifact_sha256"]
    store = SqliteStore(place / "lab" / "lab.db")
    artifact = store.get_artifact(record["artifact_sha256"])
    store.close()
    assert artifact.builds["main"].cubin.startswith(b"\x7fELF")


def test_an_artifact_is_judged_without_compiling(place: Path) -> None:
    assert cutegen(place, "run", "softmax.py", "--auto", "--max-steps", "1").returncode == 0
    store = SqliteStore(place / "lab" / "lab.db")
    (sha,) = sqlite3.connect(store.path).execute("SELECT sha256 FROM artifacts").fetchone()
    (place / "k.json").write_text(json.dumps(store.get_artifact(sha).to_dict()))
    store.close()
    done = cutegen(place, "judge", "softmax.py", "k.json", "--json")
    assert (done.returncode, only_object(done)["verdict"]) == (0, "passed"), done.stderr
    swapped = json.loads((place / "k.json").read_text())
    for build in swapped["builds"].values():
        assert "\tmax." in build["ptx"]
        build["ptx"] = build["ptx"].replace("\tmax.", "\tmin.")
    (place / "swapped.json").write_text(json.dumps(swapped))
    done = cutegen(place, "judge", "softmax.py", "swapped.json", "--json")
    assert done.returncode != 0 and "is not what its PTX assembles to" in only_object(done)["reason"], done.stdout
    (place / "other.py").write_text((place / "softmax.py").read_text().replace("1024", "512"))
    done = cutegen(place, "judge", "other.py", "k.json", "--json")
    assert done.returncode == 2
    assert "has no build of workload" in only_object(done)["error"]


def test_demo(place: Path) -> None:
    done = cutegen_process(place, "demo", "--out", "out", "--device", "emulator", "--json")
    data = only_object(done)
    assert (done.returncode, data["verdict"]) == (0, "passed"), done.stderr
    assert [r["verdict"] for r in data["runs"]] == ["passed", "passed"]
    assert all(r["timing"]["kind"] == "predicted" for r in data["runs"])
    for made in (r["candidates"] for r in data["runs"]):
        assert len(made) == 2 and {c["answer"] for c in made} == {"approve"}, made
        times = [c["time_us"] for c in made]
        assert all(after <= 0.9 * before for before, after in pairwise(times)), times
    assert sorted(p.name for p in (place / "out").iterdir()) == ["report.html", "rmsnorm.py", "softmax.py"]
    text = (place / "out" / "softmax.py").read_text()
    assert "# for this config only: " in text and len(text.splitlines()) <= 230
    page = (place / "out" / "report.html").read_text()
    assert "softmax" in page and "rmsnorm" in page and "<script" not in page
    assert "TUNABLE" not in page, "its texts are those for one config"
    shown = [int(line) for line in re.findall(r"\bLine (\d+)", page)]
    assert shown and max(shown) <= len(text.splitlines()), "lines are those of the texts that are written"
