"""``cutegen demo``: two references, from naive kernels to faster ones. Exit status 0: both have an accepted kernel."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cutegen_lab.cli.facts import proven, run_facts
from cutegen_lab.cli.output import Output
from cutegen_lab.cli.progress import Progress
from cutegen_lab.cli.run import told
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.session import RunHandle, Session
from cutegen_lab.session.kernels import located
from cutegen_lab.session.outputs import may_write, write_out

PROBLEMS = ("softmax", "rmsnorm")
FIRST = "vec=1,threads_per_row=32,rows_per_block=1,loads=1"
"""Config of a naive first kernel: one warp per row, one element per load. It leaves room for refinements."""
_FOLDER = Path(__file__).parents[1] / "demo"


def execute(arguments: argparse.Namespace, output: Output) -> int:
    started = time.monotonic()
    out = Path(arguments.out)
    for name in (*(f"{problem}.py" for problem in PROBLEMS), "report.html"):
        may_write(out / name)
    with Session.open(arguments.workdir) as session:
        runs = [_make(session, name, arguments, output) for name in PROBLEMS]
        output.line()
        kernels = [_show(run, out, output, arguments.general) for run in runs]
        report = out / "report.html"
        from cutegen_lab.views.html import report as page

        write_out(report, page([run.on_page() for run in runs], title="cutegen demo", general=arguments.general))
        states = [run.state for run in runs]
    good = all(proven(state) for state in states)
    seconds = time.monotonic() - started
    kept = [str(k) for k in kernels if k]
    output.line(f"kernels: {', '.join(map(located, filter(None, kernels))) or 'none'}")
    output.line(f"report:  {report}")
    output.line("next:    `make lab` opens the quickstart notebook (or: jupyter lab notebooks/01_quickstart.ipynb)")
    output.line(f"done in {seconds:.0f} s")
    failed = [s.run_id for s in states if not proven(s)]
    output.result(
        {
            "verdict": "passed" if good else "nothing_accepted",
            "reason": "" if good else f"no accepted, correct kernel in {', '.join(failed)}",
            "runs": [run_facts(s) for s in states],
            "kernels": kept,
            "report": str(report),
            "seconds": seconds,
        }
    )
    return 0 if good else 1


def _make(session: Session, name: str, arguments: argparse.Namespace, output: Output) -> RunHandle:
    from cutegen_lab.problems import read_file

    problem = read_file(_FOLDER / f"{name}.py")
    output.line(f"{name}: {problem.workload.describe()}")
    settings = RunSettings(
        provider=f"templates:{FIRST}", arch=arguments.arch, gpu=arguments.gpu, device=arguments.device, auto=True,
        budget=Budget(max_steps=arguments.max_steps),
    )  # fmt: skip
    with Progress(name) as progress:
        return session.run(problem, settings, subscriber=progress)


def _show(run: RunHandle, out: Path, output: Output, general: bool) -> Path | None:
    from cutegen_lab.views.text import evidence_table, summary

    state, kernel = run.state, None
    if not general:
        run.specialise(say=told)
    if state.incumbent_id:
        kernel = run.export(out / f"{state.problem.name}.py", general=general, say=told)
    view = run.view()
    output.line(summary(view))
    output.line()
    output.line(evidence_table(view, general=general))
    output.line()
    return kernel
