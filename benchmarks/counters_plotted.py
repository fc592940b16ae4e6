"""One kernel's counters by ncu, drawn beside the emulator's.

    python -m benchmarks.counters_plotted count CASE.json OUT.json    (a GPU with ncu, and torch)
    python -m benchmarks.counters_plotted plot OUT.json OUT.html      (plotly; no GPU)

CASE.json is one that ``benchmarks.counters_cases`` wrote. Where ncu is absent, or may not count, ``count`` says what to
do and ends with status 1.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from benchmarks.counters_on_gpu import Case
from cutegen_lab.core.roofline import target_gpu
from cutegen_lab.core.trial import Profile
from cutegen_lab.devices.cuda import ncu
from cutegen_lab.devices.emulator import EmulatorDevice


def count(case: Case, out: Path) -> None:
    """Counts ``case`` on the first GPU and on the emulator. Raises SystemExit where one of them cannot."""
    import torch

    from cutegen_lab.bench.record import about

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
    out.write_text(json.dumps(about(torch.cuda.get_device_name()) | {"case": case.name, "profiles": profiles}) + "\n")
    for name in sorted({*emulated.counters} & {*hardware.counters}):
        print(f"{name:28}{emulated.counters[name]:16,.0f}{hardware.counters[name]:16,.0f}")


def plot(path: Path, out: Path) -> None:
    """Draws what :func:`count` wrote."""
    from cutegen_lab.notebook.figures import profile_figure

    data = json.loads(path.read_text())
    profiles = [Profile(each["source"], each["limiter"], each["counters"]) for each in data["profiles"]]
    title = f"{data['case']} on {data['device']}"
    out.write_text(profile_figure(profiles, "", title).to_html())


if __name__ == "__main__":
    verb, read, written = sys.argv[1:]
    if verb == "count":
        count(Case.read(Path(read)), Path(written))
    else:
        plot(Path(read), Path(written))
