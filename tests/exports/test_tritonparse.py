"""The trace: what tritonparse reads of it leads from each line of PTX to the line of Python that it belongs to."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.exports import Subject
from cutegen_lab.exports.tritonparse import trace
from cutegen_lab.session.handle import RunHandle

pytestmark = pytest.mark.kernel  # the run behind the fixtures
LOC = re.compile(r"\s*\.loc\s+\d+\s+\d+\s+\d+[^/]*//\s*(.+?):(\d+):(\d+)$")  # what tritonparse 0.6 looks for
ADDED = re.compile(r" // (-- Begin function \S+|-- End function|\S+:\d+:\d+)$")


def test_lines_of_ptx_lead_to_the_lines_that_were_compiled(run: RunHandle, tmp_path: Path) -> None:
    (path,) = run.export_as(tmp_path / "run.ndjson", "tritonparse", general=False)
    compilation, launch = map(json.loads, path.read_text().splitlines())
    payload = compilation["payload"]
    chosen = run.state.incumbent_id or ""
    assert payload["python_source"]["code"] == run.state.candidates[chosen].source
    build = run._compiled(chosen)[1].builds["main"]
    ((name, ptx),) = payload["file_content"].items()
    assert name == f"{launch['name']}.ptx" and launch["compilation_metadata"] == payload["metadata"]
    assert "\n".join(ADDED.sub("", line) for line in ptx.split("\n")) == build.ptx, "only comments were added"
    lines, place, places = ptx.split("\n"), 0, dict[int, int]()
    begin, end = (next(i for i, each in enumerate(lines) if f"-- {word} function" in each) for word in ("Begin", "End"))
    for number, line in enumerate(lines[begin:end], begin + 1):
        found = LOC.match(line)
        place = int(found[2]) if found else place
        places[number] = place
    assert build.lines and all(places[each.ptx_line] == each.line for each in build.lines)
    assert payload["metadata"]["num_warps"] * 32 == build.plan.launches[0].block[0]
    assert launch["extracted_args"]["x"]["dtype"] == "torch.bfloat16" and launch["grid"] == [8, 1, 1]


def test_tritonparse_itself_finds_every_line(subject: Subject, tmp_path: Path) -> None:
    """The package's own reader; PTX lines between two places belong to the first."""
    reader = pytest.importorskip("tritonparse.parse.trace_processor")
    (tmp_path / "run.ndjson").write_bytes(trace(subject)[".ndjson"])
    reader.parse_single_file(str(tmp_path / "run.ndjson"), str(tmp_path / "out"))
    (written,) = (tmp_path / "out").iterdir()
    events = {event["event_type"]: event for event in map(json.loads, written.read_text().splitlines())}
    assert {"compilation", "launch", "launch_diff"} <= set(events), "what its pages are made from"
    found = events["compilation"]["payload"]["source_mappings"]
    build = subject.artifact.builds["main"]
    assert build.lines
    for each in build.lines:
        assert found["ptx"][str(each.ptx_line)]["line"] == each.line
        assert str(each.ptx_line) in found["python"][str(each.line)]["ptx_lines"]
    assert events["launch_diff"]["total_launches"] == 1


def test_each_launch_has_its_own_function(subject: Subject) -> None:
    build = subject.artifact.builds["main"]
    (kernel,) = build.kernels
    launch = build.plan.launches[0]
    second = (
        build.ptx[build.ptx.index(".visible .entry") :].partition("\n}")[0].replace(kernel.name, f"{kernel.name}_2")
    )
    both = replace(
        build, ptx=f"{build.ptx}\n{second}\n}}\n", kernels=(kernel, replace(kernel, name=f"{kernel.name}_2")),
        plan=replace(build.plan, launches=(launch, replace(launch, kernel=f"{kernel.name}_2"))),
    )  # fmt: skip
    artifact = replace(subject.artifact, builds={**subject.artifact.builds, "main": both})
    events = list(map(json.loads, trace(replace(subject, artifact=artifact))[".ndjson"].splitlines()))
    assert len(events) == 4
    for event, name in zip(events[::2], (kernel.name, f"{kernel.name}_2"), strict=True):
        ((_, ptx),) = event["payload"]["file_content"].items()
        assert re.findall(r"\.entry (\S+)\( // -- Begin function (\S+)", ptx) == [(name, name)]
        assert ptx.count("-- End function") == 1
