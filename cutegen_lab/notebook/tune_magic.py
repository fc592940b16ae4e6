"""``%%cutegen_tune``: searches for a kernel's fastest config in the background, with a live display."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, magics_class
from IPython.core.magic_arguments import argument

from cutegen_lab.core.syntax import parse_problem
from cutegen_lab.notebook.shared_options import ARCH, DEBUG, INPUTS, NAME, WORKDIR, below_magic, magic_with_options

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from cutegen_lab.session import Session

_OPTIONS = (
    NAME, INPUTS, ARCH,
    argument("--kernel", default="", help="a .py file with a TUNABLE (default: the problem's template)"),
    argument("--refactor", action="store_true", help="first make a template of the kernel, which has no TUNABLE"),
    argument("--budget", type=int, default=40, help="configs to evaluate, including those already recorded (40)"),
    argument("--max-seconds", type=float, default=math.inf, help="seconds after which no further config is timed"),
    argument("--gpu", default="", help="GPU whose times are predicted (the first of the architecture)"),
    argument("--device", default="auto", help="where configs are timed: auto, cuda, cuda:N or emulator (predicted)"),
    argument("--seed", type=int, default=0, help="seed of the search (0)"),
    argument("--replay", action="store_true", help="replay the search on recorded evaluations; runs nothing"),
    argument("--out", default="search", help="name of the variable for the search (search)"),
    argument("--wait", action="store_true", help="return only when the search has ended, for scripts"),
    WORKDIR, DEBUG,
)  # fmt: skip
_EXAMPLE = """\
  %%cutegen_tune --budget 20
  def reference(x):  # x: bf16[4096,8192]
      return torch.softmax(x, dim=-1)"""


@magics_class
class TuneMagic(Magics):
    """``session``: opens the notebook's session for a work directory."""

    def __init__(self, shell: InteractiveShell, session: Callable[[str], Session]) -> None:
        super().__init__(shell)
        self._session = session

    @magic_with_options("cutegen_tune", _OPTIONS, _EXAMPLE)
    def cutegen_tune(self, arguments: Any, cell: str) -> None:
        """Searches for the fastest config for the PyTorch reference in this cell, in the format of %%cutegen.

        The magic returns immediately and shows the search live. The variable has ``plot()``, ``cancel()``,
        ``resume()``, ``wait()``, ``found``, ``best`` and ``export()``. If the cell is run again, in this kernel or
        another, the search continues from the recorded evaluations.
        """
        self._start(arguments, cell)

    def _start(self, arguments: Any, cell: str) -> None:
        from IPython.display import display

        from cutegen_lab.core.errors import InputError
        from cutegen_lab.notebook.search import NotebookSearch
        from cutegen_lab.session.kernels import read_kernel, read_text_file
        from cutegen_lab.session.searching import Searching
        from cutegen_lab.session.tune import TuneSettings, from_template, from_text
        from cutegen_lab.session.tuned import PlainKernel, Tunable
        from cutegen_lab.tuning.protocols import Limits

        if arguments.budget < 1:
            raise InputError(f"--budget {arguments.budget} allows no config", "Use 1 or more.")
        if not arguments.max_seconds > 0:  # also true for nan
            raise InputError(f"--max-seconds {arguments.max_seconds:g} allows no time", "Use more than 0.")
        text = below_magic(cell)
        parse_problem(text)  # reports a syntax error before anything is imported or started
        session = self._session(arguments.workdir)
        if not arguments.replay:
            session.wake(arguments.arch, arguments.device, predicts=True)
        from cutegen_lab.problems import read_text

        problem = read_text(text, name=arguments.name, inputs_text=arguments.inputs.strip("\"'"))
        if arguments.refactor and not arguments.kernel:
            raise InputError("--refactor needs a kernel to make a template of", "Add --kernel FILE.")
        source, carried = read_kernel(read_text_file(Path(arguments.kernel))) if arguments.kernel else ("", {})
        tunable: Tunable | PlainKernel
        if arguments.refactor:
            tunable = PlainKernel(arguments.kernel, source)
        elif arguments.kernel:
            tunable = from_text(source, carried, arguments.kernel, arguments.seed)
        else:
            tunable = from_template(problem, arguments.arch, arguments.seed)
        settings = TuneSettings(
            Limits(arguments.budget, arguments.max_seconds), arguments.arch, arguments.gpu, arguments.device,
            arguments.seed,
        )  # fmt: skip
        search = NotebookSearch(Searching(session.services, problem, tunable, settings))
        if arguments.replay:
            display(search.plot_replay())
            return
        search.resume()
        self.shell.user_ns[arguments.out] = search
        with search.going_on():
            shown = search.show()
            if arguments.wait:
                search.wait()
                shown.wait()
