"""Options of the magics: their help with an example, and errors that name the option that was meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import cell_magic, line_magic
from IPython.core.magic_arguments import argument, kwds, magic_arguments, parse_argstring

from cutegen_lab.core.errors import InputError
from cutegen_lab.notebook.failures import guarded
from cutegen_lab.views.hints import misspelt_argument

NAME = argument("--name", default="problem", help="the run's name")
INPUTS = argument(
    "--inputs", default="", help='the inputs: "x: bf16[4096,8192], w: bf16[8192]"; workloads are separated by ";"'
)
ARCH = argument("--arch", default="sm_90a", help="what to compile for: sm_80, sm_89 or sm_90a (the default)")
WORKDIR = argument("--workdir", default="", help="where runs and evaluations are kept (.cutegen)")
DEBUG = argument("--debug", action="store_true", help="show tracebacks")

OF_A_RUN = (
    argument("--gpu", default="", help="GPU of the speed-of-light bound (the first of the architecture)"),
    argument("--device", default="auto", help="where kernels are judged: auto, cuda, cuda:N or emulator"),
    argument("--max-steps", type=int, default=8, help="maximum number of candidates (8)"),
    argument(
        "--budget",
        default="",
        help='further bounds: "600s", "200000tok", "2.50usd" (at --price), "5%%%%" (from the floor), "3nogain" '
        "(candidates in a row that save less than 1%%%% of its time), or several with commas",
    ),
    argument("--auto", action="store_true", help="approve whatever passes and is faster, without asking"),
    argument("--out", default="run", help="name of the variable for the run (run)"),
    argument("--wait", action="store_true", help="return only when the run waits for review or is done, for scripts"),
    WORKDIR,
    DEBUG,
)
"""Options common to all cell magics that start a run."""


def below_magic(cell: str) -> str:
    """Text of a cell with an empty line in place of its magic, so that line numbers are those that the notebook
    shows."""
    return f"\n{cell}"


_Method = Callable[..., Any]


def magic_with_options(
    name: str, options: Sequence[argument], example: str, of_a_line: bool = False
) -> Callable[[_Method], Any]:
    """Decorator that makes ``%%name`` of a method ``(self, arguments, cell)``, or ``%name`` of ``(self, arguments)``.
    Its errors fail the cell with one line."""
    known = [spelling for option in options for spelling in option.args]
    spelled = f"%{name}" if of_a_line else f"%%{name}"

    def decorated(method: _Method) -> Any:
        @wraps(method)
        def called(self: Any, line: str, *cell: str) -> Any:
            if {"--help", "-h"} & set(line.split()):
                print(called.__doc__)
                return None
            try:
                arguments = parse_argstring(called, line)
            except UsageError as error:
                hint = f"{misspelt_argument(str(error), known)} `{spelled}?` explains the options."
                raise InputError(str(error), hint.strip()) from None
            return guarded(arguments.debug, lambda: method(self, arguments, *cell))

        for option in reversed(options):
            option(called)
        kwds(epilog=f"example:\n{example}")(called)
        magic_arguments(name=spelled[1:])(called)
        return (line_magic if of_a_line else cell_magic)(name)(called)

    return decorated
