"""One kernel's counters by ncu, drawn beside the emulator's.

    python -m benchmarks.perfmodel.counters_plotted count CASE.json OUT.json   (a GPU with ncu, and torch)
    python -m benchmarks.perfmodel.counters_plotted plot OUT.json OUT.html     (plotly; no GPU)

CASE.json is one that ``counters_cases`` wrote. Where ncu is absent, or may not count, ``count`` says what to do and
ends with status 1.
"""

from __future__ import annotations

import threading
from pathlib import Path

from benchmarks.harness import command_line, conditions, read_json, write_json
from benchmarks.perfmodel.counters_on_gpu import Case
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Profile
from cutegen_lab.devices.cuda import ncu
from cutegen_lab.devices.emulator import EmulatorDevice


def count(kernel: Path, out: Path) -> None:
    """Counts CASE.json on the first GPU and on the emulator. Raises SystemExit where one of them cannot."""
    case = Case.read(kernel)
    cancel, tensors = threading.Event(), case.buffers()
    hardware = ncu.profile(0, tensors.build, tensors.views, cancel)
    if isinstance(hardware, str):
        raise SystemExit(hardware)
    tensors = case.buffers()
    gpu = target_gpu(case.build.arch)
    timing, emulated = EmulatorDevice().time(tensors.build, tensors.tensors, tensors.views, gpu, cancel)
    if emulated is None:
        raise SystemExit(f"the emulator counts nothing: {timing}")
    profiles = [{"limiter": p.limiter, "counters": dict(p.counters), "source": p.source} for p in (emulated, hardware)]
    write_json(out, conditions(), case=case.name, profiles=profiles)
    for name in sorted({*emulated.counters} & {*hardware.counters}):
        print(f"{name:28}{emulated.counters[name]:16,.0f}{hardware.counters[name]:16,.0f}")


def plot(path: Path, out: Path) -> None:
    """Draws what :func:`count` wrote."""
    from cutegen_lab.notebook.profile_figure import profile_figure

    data = read_json(path)
    profiles = [Profile(each["source"], each["limiter"], each["counters"]) for each in data["profiles"]]
    title = f"{data['case']} on {data['device']}"
    out.write_text(profile_figure(profiles, "", title).to_html())


if __name__ == "__main__":
    command_line(count, plot)
