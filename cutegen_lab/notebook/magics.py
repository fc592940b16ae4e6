"""``%%cutegen``, ``%%cutespec`` and ``%cutegen`` (``%%cutegen_tune`` is in tune_magic.py, ``%cute_layout`` in
layout_magic.py)."""

from __future__ import annotations

import atexit
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument

from cutegen_lab.config import Settings
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.gains import TIE
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.run import LANGUAGES, PROFILING_HELP, PROFILINGS, PROVIDERS, STRATEGIES, STRATEGY_HELP
from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.core.verbs import VERBS, Takes, Verb, VerbSpec
from cutegen_lab.exports import FORMATS
from cutegen_lab.notebook.completion import LINE_VERBS, Known, install, words_that_fit
from cutegen_lab.notebook.failures import guarded
from cutegen_lab.notebook.first_use import import_ahead
from cutegen_lab.notebook.shared_options import ARCH, INPUTS, NAME, OF_A_RUN, below_magic, magic_with_options

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from cutegen_lab.core.problem import Problem
    from cutegen_lab.core.protocols import Provider
    from cutegen_lab.core.run import Budget, RunSettings
    from cutegen_lab.notebook.run import NotebookRun
    from cutegen_lab.notebook.widget import RefineWidget
    from cutegen_lab.session import Session

_Name = TypeVar("_Name", bound=str)
_ARGUMENTS: Mapping[Takes, str] = {
    "nothing": "", "scope": "[SCOPE]", "reason": "REASON", "source": "FILE", "candidate": "CANDIDATE",
    "place": "PLACE TEXT", "note": "NOTE",
}  # fmt: skip


def _lines(verbs: Mapping[Verb, VerbSpec]) -> str:
    return "\n".join(f"  {f'{verb} {_ARGUMENTS[spec.takes]}':20} {spec.help}" for verb, spec in verbs.items())


HELP = f"""%cutegen VERB [--run RUN] [...]          (without --run: the newest run of this notebook)
  runs                 every run in the work directory
  show [RUN]           its widget; without RUN the newest run's, also after a kernel restart
  resume [RUN]         {VERBS["resume"].help}
{_lines({verb: spec for verb, spec in VERBS.items() if verb != "resume"})}
  export [FORMAT] PATH the accepted kernel (.py, .whl, .o, …; --general: with all its parameters, not
                       specialised for its config; --no-verify: not judged again), or the run: a page (.html),
                       for JupyterLab (.cutegen-run.json), to send (.cutegen).
                       Formats: {", ".join(FORMATS)}
  import FILE          a run that somebody sent (.cutegen), to look at; nothing of it is run
%%cutegen?             the options of the cell magic; %%cutespec? of the one for specs, %%cutegen_tune? of searches
%cute_layout?          pictures of CuTe layouts, and their options"""

_BOUND = re.compile(r"([0-9]{1,15}(?:\.[0-9]*)?)\s*(s|tok|usd|%|nogain)")  # one limit of a budget

_PROBLEM = (
    NAME, INPUTS, ARCH,
    argument("--provider", default="templates", help=f"{', '.join(PROVIDERS[:-1])} or {PROVIDERS[-1]}"),
    argument("--model", default="", help="the model, for --provider openai"),
    argument("--price", default="",
             help="dollars per million tokens sent and received, as 1.25/10, or LiteLLM's file of prices"),
    argument("--language", default="dsl", help="what a model writes: dsl (CuTe modules, the default) or spec"),
    argument("--strategy", default="cutegen", help=STRATEGY_HELP),
    argument("--drafts", type=int, default=1, help="first kernels to ask a model for (default 1)"),
    argument("--profiling", default="settled", help=PROFILING_HELP),
    argument("--no-bounds", action="store_true", help="do not tell a model how fast a kernel could be"),
    argument("--no-memory", action="store_true", help="do not tell a model what worked in other runs here"),
    argument("--review", action="store_true", help="ask before each refinement (the default)"),
    argument("--replay", default="", help="play a recorded conversation: same as --provider replay:FILE"),
)  # fmt: skip
_SPEC = (
    argument("--run", default="", help="make the spec the next candidate of this run (of %%%%cutegen), not a new run"),
    argument("--check", action="store_true", help="only print the template and config of the spec"),
)
_PROBLEM_EXAMPLE = """\
  %%cutegen --name softmax --max-steps 4
  def reference(x):  # x: bf16[4096,8192]
      return torch.softmax(x, dim=-1)"""
_SPEC_EXAMPLE = """\
  %%cutespec --check
  kernel linear for sm_90a
  in  x: bf16[512, 256]
  in  w: bf16[384, 256]
  out y: bf16 = x @ w.T
  tile 128x128x64"""


def register(ipython: InteractiveShell) -> None:
    """``%load_ext cutegen_lab``."""
    from cutegen_lab.notebook.layout_magic import LayoutMagic
    from cutegen_lab.notebook.tune_magic import TuneMagic

    import_ahead()
    magics = CutegenMagics(ipython)
    ipython.register_magics(magics)
    ipython.register_magics(tune := TuneMagic(ipython, magics.session))
    ipython.register_magics(layout := LayoutMagic(ipython))
    cells = {f"%%{name}": magic for part in (magics, tune) for name, magic in part.magics["cell"].items()}
    lines = {f"%{name}": magic for name, magic in layout.magics["line"].items()}
    options = {name: magic.parser._actions for name, magic in {**cells, **lines}.items()}
    known = Known(magics.known_runs, magics.known_candidates, magics.known_notes)
    install(ipython, lambda text: words_that_fit(text, options, known))


@magics_class
class CutegenMagics(Magics):
    """The magics of one notebook, with its open sessions and runs."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._sessions: dict[str, Session] = {}
        self._runs: dict[str, NotebookRun] = {}
        self._widgets: dict[str, RefineWidget] = {}
        self._newest: str | None = None
        atexit.register(self.close)

    def close(self) -> None:
        """Detaches all runs, which stay resumable, before the kernel ends: running threads would delay its exit."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    @magic_with_options("cutegen", (*_PROBLEM, *OF_A_RUN), _PROBLEM_EXAMPLE)
    def cutegen_cell(self, arguments: Any, cell: str) -> None:
        """Turns the PyTorch reference in this cell into a checked CuTe kernel, refinement by refinement.

        The cell defines ``reference(...)``; its inputs come from --inputs, from a comment on the def line
        (``def reference(x):  # x: bf16[4096,8192]``) or from ``inputs()``. The magic returns immediately and shows the
        run.
        """
        self._start(arguments, cell)

    @line_magic
    def cutegen(self, line: str) -> Any:
        """Verbs on runs; ``%cutegen help`` lists them."""
        words = _words(line)
        debug = "--debug" in words
        return guarded(debug, lambda: self._verb([w for w in words if w != "--debug"]))

    def _start(self, arguments: Any, cell: str) -> None:
        from cutegen_lab.core.run import Guidance, RunSettings

        text = below_magic(cell)
        parse_problem(text)  # reports a syntax error before anything is imported or started
        if not arguments.replay:
            self.session(arguments.workdir).wake(arguments.arch, arguments.device)
        from cutegen_lab.problems import read_text
        from cutegen_lab.session.factories import make_price

        problem = read_text(text, name=arguments.name, inputs_text=arguments.inputs.strip("\"'"))
        provider = f"replay:{arguments.replay}" if arguments.replay else arguments.provider
        settings = RunSettings(
            provider=provider,
            model=arguments.model,
            arch=arguments.arch,
            gpu=arguments.gpu,
            device=arguments.device,
            auto=arguments.auto and not arguments.review,
            language=_one_of(LANGUAGES, arguments.language, "language"),
            strategy=_one_of(STRATEGIES, arguments.strategy, "strategy"),
            drafts=max(arguments.drafts, 1),
            guidance=Guidance(
                not arguments.no_bounds,
                _one_of(PROFILINGS, arguments.profiling, "profiling"),
                not arguments.no_memory,
            ),
            price=make_price(arguments.price.strip("\"'"), provider, arguments.model),
            budget=parse_budget(arguments.budget, arguments.max_steps),
        )
        self._begin(arguments, problem, settings)

    @magic_with_options("cutespec", (*_SPEC, *OF_A_RUN), _SPEC_EXAMPLE)
    def cutespec(self, arguments: Any, cell: str) -> None:
        """Compiles the spec in this cell to a kernel and has it judged, as the first candidate of a new run.

        The spec says what is computed and how it runs. A template chooses what the spec leaves open, and refinements
        change these choices. `cutegen_lab/cutespec/grammar.lark` has the grammar and examples.
        """
        self._specify(arguments, cell)

    def _specify(self, arguments: Any, cell: str) -> None:
        from cutegen_lab.core.run import RunSettings
        from cutegen_lab.cutespec.build import compile_text
        from cutegen_lab.providers.templates import TemplatesProvider

        kernel = compile_text(below_magic(cell))
        if arguments.check:
            chosen = [f"{n}={v}{' (chosen)' if n in kernel.chosen else ''}" for n, v in kernel.config.items()]
            print(f"{kernel.problem.name}: {kernel.family}, {', '.join(chosen)}")
            return
        if arguments.run:
            self._run(arguments.run).perform("edit", kernel.source, wait=arguments.wait)
            return
        settings = RunSettings(
            arch=kernel.arch, gpu=arguments.gpu, device=arguments.device, auto=arguments.auto,
            budget=parse_budget(arguments.budget, arguments.max_steps),
        )  # fmt: skip
        forecast = self.session(arguments.workdir).forecast(arguments.device)
        provider = TemplatesProvider(kernel.config, kernel.template, forecast)
        self._begin(arguments, kernel.problem, settings, provider)

    def _begin(self, arguments: Any, problem: Problem, settings: RunSettings, provider: Provider | None = None) -> None:
        from cutegen_lab.notebook.run import NotebookRun

        run = NotebookRun(self.session(arguments.workdir).start(problem, settings, provider=provider))
        with run.going_on():
            self._remember(run)
            self.shell.user_ns[arguments.out] = run
            self._show(run)
            if arguments.wait:
                run.wait()
                self._widgets[run.run_id].refresh()  # updates what the notebook saves of this cell

    def _show(self, run: NotebookRun) -> None:
        """Displays the widget of a run. There is one widget for each run in a Jupyter kernel; a second display shows
        the same widget."""
        from cutegen_lab.notebook.widget import RefineWidget

        if run.run_id not in self._widgets:
            self._widgets[run.run_id] = RefineWidget(run)
        self._widgets[run.run_id].show()

    def _verb(self, words: list[str]) -> Any:
        verb, rest = (words[0], words[1:]) if words else ("help", [])
        named = ""
        if "--run" in rest:
            at = rest.index("--run")
            if at + 1 >= len(rest):
                raise InputError("--run needs a run", "`%cutegen runs` lists them.")
            named = rest[at + 1]
            del rest[at : at + 2]
        match verb:
            case "help" | "--help" | "-h":
                print(HELP)
            case "runs":
                print(self._listing())
            case "show" | "resume":
                run = self._run(named or (rest[0] if rest else "") or self._newest or self._newest_stored())
                self._show(run.resume() if verb == "resume" else run.attend())
            case "export":
                words = [word for word in rest if word not in ("--general", "--no-verify")]
                first, second = words if len(words) == 2 else (_one(words, "export [FORMAT] PATH"), "")
                general, verify = "--general" in rest, "--no-verify" not in rest
                print(f"wrote {self._run(named).export(first, second, general=general, verify=verify)}")
            case "import":
                run_id = self.session("").import_run(_one(rest, "import FILE")).run_id
                self._show(self._run(run_id).attend())
            case _:
                self._answer(verb, rest, named)

    def _answer(self, verb: str, words: list[str], run_id: str) -> None:
        known = next((name for name in VERBS if name == verb), None)
        if known is None:
            raise InputError(
                f"unknown verb {verb!r}", f"{did_you_mean(verb, LINE_VERBS)} `%cutegen help` lists them.".strip()
            )
        takes = VERBS[known].takes
        argument, said = " ".join(words), ""
        if takes in ("source", "candidate", "note"):
            argument = _one(words, f"{verb} {_ARGUMENTS[takes]}")
        if takes == "place":
            argument, said = "".join(words[:1]), " ".join(words[1:])
        if takes == "source":
            from cutegen_lab.session.kernels import read_text_file

            argument = read_text_file(Path(argument))
        run = self._run(run_id)
        run.handle.perform(known, argument, said)
        print(f"{run.run_id}: {VERBS[known].past}{' from' if takes == 'candidate' else ''} {' '.join(words)}".rstrip())

    def _listing(self) -> str:
        runs = self.session("").runs()
        if not runs:
            return "no runs yet"
        lines = [f"{r.run_id:24} {r.step.value:9} {r.outcome or 'open':18} {r.accepted} accepted" for r in runs]
        return "\n".join(lines)

    def _run(self, run_id: str) -> NotebookRun:
        """A run of this notebook, or one from the store. Raises InputError if there is none."""
        from cutegen_lab.notebook.run import NotebookRun

        wanted = run_id or self._newest
        if wanted is None:
            raise InputError("no run in this notebook yet", "Start one with %%cutegen, or name one: %cutegen show RUN.")
        if wanted in self._runs:
            return self._runs[wanted]
        found = self.session("").find(wanted)
        if found.run_id not in self._runs:
            self._remember(NotebookRun(found))
        return self._runs[found.run_id]

    def known_runs(self) -> list[str]:
        """Ids of the runs in the work directory, latest first; opens no store where there is none."""
        stored = (Settings.from_environment().workdir / "lab.db").is_file()
        return [run.run_id for run in self.session("").runs()] if stored else []

    def known_candidates(self, run_id: str) -> list[str]:
        """Ids of the candidates of a run of this notebook, "" for the newest."""
        run = self._runs.get(run_id or self._newest or "")
        return list(run.handle.state.candidates) if run else []

    def known_notes(self, run_id: str) -> list[str]:
        """Ids of the comments and pins of a run of this notebook, "" for the newest."""
        run = self._runs.get(run_id or self._newest or "")
        return list(run.handle.state.notes) if run else []

    def _newest_stored(self) -> str:
        """Id of the run in the work directory that changed last; "" if there is none. For use after a kernel
        restart."""
        return next((run.run_id for run in self.session("").runs()), "")

    def _remember(self, run: NotebookRun) -> None:
        self._runs[run.run_id] = run
        self._newest = run.run_id

    def session(self, workdir: str) -> Session:
        """The session for ``workdir`` ("": the notebook's default), opened once."""
        from cutegen_lab.session import Session

        if workdir not in self._sessions:
            self._sessions[workdir] = Session.open(workdir or None)
        return self._sessions[workdir]


def parse_budget(text: str, max_steps: int) -> Budget:
    """Parses ``"600s,200000tok,2.50usd,5%,3nogain"``: limits of seconds, tokens and dollars, and the distance from the
    floor and the number of candidates in a row without a gain at which the run ends. Raises InputError for other
    text."""
    from cutegen_lab.core.run import Budget

    given: dict[str, float] = {}
    for part in filter(None, (p.strip().strip("\"'") for p in text.split(","))):
        read = _BOUND.fullmatch(part)
        if read is None or not float(read[1]):
            how = 'Write it as "600s", "200000tok", "2.50usd", "5%" (of the floor), "3nogain", or several with commas.'
            raise InputError(f"cannot read the budget {part!r}", how)
        given[read[2]] = float(read[1])
    if max_steps < 1:
        raise InputError(f"--max-steps {max_steps} allows no candidate", "Use 1 or more.")
    tokens, misses, percent = given.get("tok"), given.get("nogain"), given.get("%")
    return Budget(
        max_steps=max_steps, max_seconds=given.get("s"), max_usd=given.get("usd"),
        max_tokens=None if tokens is None else math.ceil(tokens),
        patience=None if misses is None else math.ceil(misses), gain=TIE if misses else 0.0,
        within=None if percent is None else percent / 100,
    )  # fmt: skip


def _one_of(names: Sequence[_Name], text: str, what: str) -> _Name:
    """The one of ``names`` that ``text`` is. Raises InputError for none of them."""
    for name in names:
        if text == name:
            return name
    raise InputError(f"unknown {what} {text!r}", f"{did_you_mean(text, names)} Use {' or '.join(names)}.".strip())


def _words(line: str) -> list[str]:
    """Splits a line as a shell does, so that quoted paths may contain spaces; an apostrophe within a word is not a
    quote."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _one(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise InputError(f"expected one word after {usage.split()[0]}", f"Write %cutegen {usage}.")
    return words[0]
