"""Arguments of ``cutegen``."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any, NoReturn

from cutegen_lab import __version__
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import (
    LANGUAGES,
    PROFILING_HELP,
    PROFILINGS,
    PROVIDERS,
    STRATEGIES,
    STRATEGY_HELP,
    Budget,
    RunSettings,
)
from cutegen_lab.exports import FORMATS
from cutegen_lab.layouts import options as layouts
from cutegen_lab.views.hints import misspelt_argument

_DEFAULTS, _BUDGET = RunSettings(), Budget()
_SOL = (
    "Compulsory traffic: inputs that are read (the part that slices leave, the rows that indices surely choose), "
    "and outputs, each once. Bound: the longer of traffic at DRAM bandwidth and matrix FLOPs at peak rate. Floor: a "
    "launch, and the longer of a copy of the traffic and the matrix FLOPs. Unfused: sums over the operators that "
    "eager PyTorch executes. Rows of precisions round the operands of products; tensors in memory keep their dtype, "
    "and f32 is computed as three products of f16 where that is faster."
)
_SUITE = (
    "Budgets are those of each problem, except --suite-tokens and --suite-cost. The same command, given again, "
    "continues: what has ended with the same options is not run again. compare: problems that only one of two suites "
    "solved, and ratios of times. policies: what other budgets would have saved on a suite's runs, and the speed kept."
)
_RUN = "a run of the store: its id, the beginning of it, its title or its problem's name"


class Parser(argparse.ArgumentParser):
    """Argument parser that raises :class:`InputError` where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        hint = f"{misspelt_argument(message, self._option_string_actions)} See `{self.prog} --help`."
        raise InputError(message, hint.strip())

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Raises InputError for unknown options: a subcommand reports its own, and suggests from its own options."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


def build_parser() -> Parser:
    common = _common()
    parser = Parser("cutegen", description="From a PyTorch reference to a correct, fast CuTe kernel.")
    parser.add_argument("--version", action="version", version=f"cutegen {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, module: str, summary: str, *parents: Parser) -> Parser:
        added: Parser = commands.add_parser(name, help=summary, description=summary, parents=[common, *parents])
        added.set_defaults(module=module)
        return added

    command("doctor", "doctor", "what this machine has, what it lacks, and what to do about it")
    demo = command(
        "demo", "demo", "two references from naive kernels to faster ones, with their evidence; a minute or two"
    )
    demo.add_argument("--out", default="demo-out", metavar="DIR", help="kernels and report.html go here")
    _general(demo)
    demo.add_argument("--max-steps", type=_positive, default=2, metavar="N", help="candidates per problem (default 2)")
    _where(demo)
    _add_run(command("run", "run", "a kernel for PROBLEM.py; exit 0 only with an accepted, correct one"))
    _add_suite(command("suite", "suite", "runs for a set of problems, as one table; exit 0: each has a correct kernel"))
    judge = command("judge", "judge", "is KERNEL right? exit 0: passed, 3: any other verdict, 2: bad input")
    judge.add_argument("problem", metavar="PROBLEM.py")
    judge.add_argument("kernel", metavar="KERNEL.py|ARTIFACT.json")
    judge.add_argument("--config", metavar="JSON", help="the kernel's parameters (default: those in the file)")
    judge.add_argument("--attack", action="store_true", help="are the catalogue's attacks on KERNEL all caught?")
    _timing(judge)
    judge.add_argument("--deep", action="store_true", help="on a GPU, also run compute-sanitizer (half a minute)")
    _inputs(judge)
    _where(judge)
    sol = command("sol", "sol", "bounds and reachable times of PROBLEM.py, and the shapes a kernel is checked at")
    sol.epilog = _SOL
    sol.add_argument("problem", metavar="PROBLEM.py")
    _inputs(sol)
    _target(sol, "; all: a table of them")
    _add_tune(command("tune", "tune", "the fastest config of PROBLEM's template, or of KERNEL; exit 0: it passed"))
    _add_bench(command("bench", "bench", "the templates compared with PyTorch, quack and a copy; exit 0: all timed"))
    _add_bundle(command("bundle", "bundle", "a kernel and the modules that it imports, as one file to judge"))
    _add_spec(command("spec", "spec", "kernels in the compact language"))
    layout = command("layout", "layout", "a CuTe layout, MMA fragment or TMA box, drawn")
    for name, settings in layouts.OPTIONS.items():
        layout.add_argument(name, **settings)
    profile = command("profile", "profile", "every number of RUN: times, counters, errors, resources")
    profile.add_argument("run_id", metavar="RUN", help=_RUN)
    profile.add_argument("--candidate", metavar="ID", help="a candidate other than the accepted one")
    profile.add_argument("--count", metavar="DEVICE", help="first collect counters on this device: emulator or cuda")
    profile.add_argument("--csv", metavar="FILE", help="write the table here")
    profile.add_argument("--trace", metavar="FILE.json",
                         help="write a timeline of the warps of one block, for Perfetto")  # fmt: skip
    profile.add_argument("--trace-on", metavar="DEVICE", default="emulator",
                         help="in the emulator's order of execution (emulator), or measured (cuda)")  # fmt: skip
    _add_export(command("export", "export", "a kernel, or the whole of RUN, as files in one of several formats"))
    _add_runs(command("runs", "runs", "what is in the store"))
    memory = command("memory", "memory", "what worked here: changes of kernels and what they did, by class and GPU")
    memory.add_argument("--work-class", default="", metavar="CLASS", help="only of this class of work: 'row reduction'")
    memory.add_argument("--gpu", default="", help="only times on this GPU")
    return parser


def _common(default: str | None = None) -> Parser:
    common = Parser(add_help=False, argument_default=default)
    common.add_argument("--json", action="store_true", help="print one JSON object and nothing else on stdout")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    common.add_argument("--allow-weak-cage", action="store_true",
                        help="run candidates even without isolation: they can do what you can")  # fmt: skip
    common.add_argument("--workdir", metavar="DIR", help="where the store lives (default: CUTEGEN_HOME or .cutegen)")
    return common


def _add_run(run: Parser) -> None:
    run.add_argument("problem", metavar="PROBLEM.py", help="a file with reference() and inputs, or a KernelBench file")
    run.add_argument("--auto", action="store_true", help="accept what passed and is faster, without asking")
    _proposals(run)
    run.add_argument("--out", metavar="FILE", help="write the accepted kernel here")
    _general(run)
    run.add_argument("--name", help="the run's name (default: the file's)")
    _timing(run)
    _inputs(run)
    _where(run)


def _add_suite(suite: Parser) -> None:
    suite.epilog = _SUITE
    suite.usage = "cutegen suite [options] PATH [PATH ...]\n       cutegen suite compare A.json B.json\n"
    suite.usage += "       cutegen suite policies SUITE.json"
    suite.add_argument("paths", metavar="PATH", nargs="+", type=Path,
                       help="a problem's file, a folder with such files or with FlashInfer-Bench's or SOL-ExecBench's "
                            "definitions below it, sglang (three of its kernels), kernelbench (a clone)")  # fmt: skip
    suite.add_argument("--level", type=_levels, default=(), metavar="1,2",
                       help="only files in KernelBench's folders level1, level2")  # fmt: skip
    suite.add_argument("--jobs", type=_positive, metavar="N",
                       help="problems at a time (default: one for each usable core; on a GPU 1)")  # fmt: skip
    _proposals(suite)
    suite.add_argument("--suite-tokens", type=_positive, metavar="N", help="tokens a model may use for all problems")
    suite.add_argument("--suite-cost", type=_dollars, metavar="USD",
                       help="dollars a model may use for all problems, at --price")  # fmt: skip
    suite.add_argument("--out", metavar="FOLDER", type=Path,
                       help="suite.json and suite.html go here (default: suites/NAME in --workdir)")  # fmt: skip
    _timing(suite)
    _where(suite)


def _proposals(run: Parser) -> None:
    """Who proposes kernels for a problem, and how many."""
    run.add_argument("--provider", default=_DEFAULTS.provider,
                     help=f"{', '.join(PROVIDERS)} (default templates)")  # fmt: skip
    run.add_argument("--model", default="", help="the model's name, for --provider openai; with manual, who answers")
    run.add_argument("--language", choices=LANGUAGES, default=_DEFAULTS.language,
                     help="what a model writes: CuTe modules or specs (%(default)s)")  # fmt: skip
    run.add_argument("--strategy", choices=STRATEGIES, default=_DEFAULTS.strategy, help=STRATEGY_HELP)
    run.add_argument("--drafts", type=_positive, default=_DEFAULTS.drafts, metavar="N",
                     help="first kernels to ask a model for, before the fastest is refined (%(default)s)")  # fmt: skip
    run.add_argument("--profiling", choices=PROFILINGS, default=_DEFAULTS.guidance.profiling, help=PROFILING_HELP)
    run.add_argument("--no-bounds", action="store_true", help="do not tell a model how fast a kernel could be")
    run.add_argument("--no-memory", action="store_true", help="do not tell a model what worked in other runs here")
    run.add_argument("--max-steps", type=_positive, default=_BUDGET.max_steps, metavar="N",
                     help=f"candidates (default {_BUDGET.max_steps})")  # fmt: skip
    run.add_argument(
        "--max-seconds", type=_seconds, metavar="S", help="seconds of work after which no candidate is requested"
    )
    run.add_argument("--max-tokens", type=_positive, metavar="N", help="tokens a model may use")
    run.add_argument("--max-cost", type=_dollars, metavar="USD", help="dollars a model may use, at --price")
    run.add_argument("--price", default="", metavar="IN/OUT|FILE",
                     help="dollars per million tokens sent and received, as 1.25/10 (1.25/10/0.125 if tokens from the "
                          "server's cache cost less), or LiteLLM's file of prices (default: CUTEGEN_PRICES); no price "
                          "is built in")  # fmt: skip
    run.add_argument("--patience", type=_positive, metavar="N",
                     help="end after so many candidates in a row that save less than 1%% of its time")  # fmt: skip
    run.add_argument("--within", type=_percent, metavar="PERCENT",
                     help="end once the accepted kernel is this near to the floor")  # fmt: skip


def _add_tune(tune: Parser) -> None:
    tune.add_argument("problem", metavar="PROBLEM.py")
    tune.add_argument(
        "kernel", metavar="KERNEL.py", nargs="?", help="a kernel with a TUNABLE (default: the problem's template)"
    )
    tune.add_argument("--refactor", action="store_true",
                      help="first make a template of KERNEL, which has no TUNABLE, checked step by step")  # fmt: skip
    tune.add_argument("--provider", default="", help="with --refactor, who proposes more parameters: openai, manual")
    tune.add_argument("--model", default="", help="the model's name, for --provider openai")
    tune.add_argument("--budget", type=_positive, default=40, metavar="N", help="configs to evaluate (default 40)")
    tune.add_argument(
        "--max-seconds", type=_seconds, metavar="S", help="seconds after which no further config is timed"
    )
    tune.add_argument("--out", metavar="KERNEL.py", help="write the kernel with the best config here")
    _general(tune)
    tune.add_argument("--simulate", action="store_true", help="replay the search on recorded evaluations; runs nothing")
    _timing(tune)
    tune.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the search (default 0)")
    _inputs(tune)
    _where(tune)


def _add_bench(bench: Parser) -> None:
    bench.add_argument("gpu", metavar="GPU", type=_gpu, help=f"what to compile for: {', '.join(GPUS).lower()}")
    bench.add_argument("--only", metavar="PART", nargs="+", default=[""], help="cases whose name contains one of these")
    bench.add_argument("--list", action="store_true", help="list the cases, and time nothing")
    bench.add_argument("--prepare", metavar="FOLDER", help="compile only; needs no GPU")
    bench.add_argument("--prepared", metavar="FOLDER", help="time what --prepare compiled in FOLDER; needs no DSL")
    bench.add_argument("--show", metavar="FILE.json", help="print the table of an earlier measurement")
    bench.add_argument("--configs", type=_positive, default=1, metavar="N",
                       help="time the default config and up to N - 1 others (default 1)")  # fmt: skip
    bench.add_argument("--out", metavar="FILE.json", help="write every row here as soon as it is measured")
    bench.add_argument("--resume", action="store_true", help="continue --out FILE.json: skip the cases that it has")
    bench.add_argument("--index", type=int, default=0, metavar="N", help="the GPU among those visible (default 0)")


def _add_bundle(bundle: Parser) -> None:
    where = "the first defines launch(); imports from the packages and folders of all are followed"
    bundle.add_argument("files", metavar="FILE", nargs="+", help=where)
    bundle.add_argument(
        "-o", "--out", metavar="KERNEL.py", help="write here (default: the first FILE's name with _bundle.py)"
    )
    bundle.add_argument("--entry", default="launch", metavar="NAME",
                        help="the function that becomes launch() (default launch)")  # fmt: skip


def _gpu(text: str) -> str:
    found = {name.lower(): name for name in GPUS}.get(text.lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(GPUS)}")
    return found


def _add_spec(spec: Parser) -> None:
    verbs = spec.add_subparsers(metavar="check|compile", required=True)
    for verb, summary in (
        ("check", "check FILE, print its template and config; exit 2 with line and column if it is invalid"),
        ("compile", "write FILE's kernel, and the PyTorch function that it is a kernel for"),
    ):
        added = verbs.add_parser(verb, help=summary, description=summary, parents=[_common(argparse.SUPPRESS)])
        added.set_defaults(module="spec", verb=verb)
        added.add_argument("file", metavar="FILE", help="a spec; - is standard input")
        if verb == "compile":
            added.add_argument("--out", metavar="KERNEL.py", help="write here (default: the kernel's name)")
            _general(added)


def _add_runs(runs: Parser) -> None:
    runs.set_defaults(verb="list")
    in_trash = "list the runs in the trash instead"
    runs.add_argument("--trash", action="store_true", help=in_trash)
    verbs = runs.add_subparsers(metavar="list|show|export|import|resume|rename|trash|restore")
    common = _common(argparse.SUPPRESS)  # SUPPRESS keeps the value of an option that is before the verb
    for verb, summary in (
        ("list", "every run, the latest first"),
        ("show", "one run: its candidates, and changes and evidence of one of them"),
        ("export", "a kernel, or the whole of RUN, as files in one of several formats (as `cutegen export`)"),
        ("import", "look at a run that somebody sent (.cutegen); nothing of it is run"),
        ("resume", "continue a run where it stopped"),
        ("rename", "give a run a title, by which it is listed and found"),
        ("trash", "put runs in the trash: they are no longer listed, and nothing is deleted"),
        ("restore", "take runs out of the trash"),
    ):
        added = verbs.add_parser(verb, help=summary, description=summary, parents=[common])
        added.set_defaults(module="runs", verb=verb)
        if verb == "export":
            added.set_defaults(module="export")
            _add_export(added)
        elif verb == "import":
            added.add_argument("file", metavar="FILE", type=Path)
        elif verb == "list":
            added.add_argument("--trash", action="store_true", default=argparse.SUPPRESS, help=in_trash)
        elif verb == "trash":
            added.add_argument("run_ids", metavar="RUN", nargs="+", help=_RUN)
        elif verb == "restore":
            added.add_argument(
                "run_ids", metavar="ID", nargs="+", help="the id of a run that `runs list --trash` lists"
            )
        else:
            added.add_argument("run_id", metavar="RUN", help=_RUN)
        if verb == "rename":
            added.add_argument("title", metavar="TITLE", help="the title; '' for the name of its problem")
        if verb == "show":
            added.add_argument("--candidate", metavar="ID", help="a candidate other than the accepted one")
        if verb == "resume":
            added.add_argument("--out", metavar="KERNEL.py", help="write the accepted kernel here too")
            _general(added)
        if verb == "show":
            added.add_argument(
                "--general", action="store_true",
                help="changes and line numbers of the text with all parameters, not specialised for its config",
            )  # fmt: skip
            added.add_argument(
                "--compare", nargs=2, metavar=("ID", "ID"),
                help="what changes from one candidate to another: numbers, parameters, text, lines of PTX",
            )  # fmt: skip
            added.add_argument("--ptx", action="store_true", help="with --compare: what changes in the PTX")


def _add_export(export: Parser) -> None:
    export.add_argument("run_id", metavar="RUN", nargs="?", help=_RUN)
    export.add_argument("--format", default="", metavar="FORMAT",
                        help=f"{', '.join(FORMATS)} (default: by the name of --out)")  # fmt: skip
    export.add_argument("--out", metavar="FILE", help="write here (default: RUN with the format's suffix)")
    export.add_argument("--candidate", metavar="ID", help="a candidate other than the accepted one (best)")
    export.add_argument(
        "--no-verify", action="store_true", help="do not judge a kernel's text again before it is written"
    )
    export.add_argument("--list", action="store_true", help="list the formats, and what their users need")
    _general(export)


def _general(parser: Parser) -> None:
    parser.add_argument(
        "--general", action="store_true",
        help="write the kernel with all its parameters, as `cutegen tune` needs it, not specialised for its config",
    )  # fmt: skip


def _timing(parser: Parser) -> None:
    parser.add_argument(
        "--max-autotune", action="store_true", help="on a GPU, also time torch.compile's max-autotune (minutes)"
    )


def _inputs(parser: Parser) -> None:
    parser.add_argument(
        "--inputs", default="", metavar="SPEC", help="the inputs, if the file defines none: 'x: bf16[4096,8192]'"
    )


def _where(parser: Parser) -> None:
    parser.add_argument("--device", default=_DEFAULTS.device, help="auto, cuda, cuda:N or emulator (%(default)s)")
    _target(parser)


def _target(parser: Parser, also: str = "") -> None:
    archs = ", ".join(dict.fromkeys(gpu.arch for gpu in GPUS.values()))
    parser.add_argument("--arch", default=_DEFAULTS.arch, help=f"what to compile for: {archs} (%(default)s)")
    parser.add_argument(
        "--gpu",
        default=_DEFAULTS.gpu,
        help=f"GPU of the speed-of-light bound: {', '.join(GPUS)}{also} (default: the first of its architecture)",
    )


def _positive(text: str) -> int:
    with contextlib.suppress(ValueError):
        if (value := int(text)) > 0:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")


def _levels(text: str) -> tuple[int, ...]:
    if all(part.strip().isdecimal() for part in text.split(",")):
        return tuple(sorted({int(part) for part in text.split(",")}))
    raise argparse.ArgumentTypeError(f"{text!r} is not a list of levels, such as 1,2")


def _seconds(text: str) -> float:
    return _above_zero(text, "seconds")


def _dollars(text: str) -> float:
    return _above_zero(text, "dollars")


def _percent(text: str) -> float:
    return _above_zero(text.removesuffix("%"), "percent") / 100


def _above_zero(text: str, unit: str) -> float:
    with contextlib.suppress(ValueError):
        if (value := float(text)) > 0:  # also false for nan
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of {unit}")
