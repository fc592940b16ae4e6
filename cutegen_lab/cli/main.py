"""Entry point. An error is one line; with ``--debug`` also a traceback."""

from __future__ import annotations

import atexit
import gc
import importlib
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from cutegen_lab.cli.arguments import build_parser
from cutegen_lab.cli.output import Output, PlainFormatter, note
from cutegen_lab.config import ALLOW_WEAK_CAGE
from cutegen_lab.core.errors import CutegenError, InputError, SetupError, of_the_disk

INTERRUPTED = 130
_END_SECONDS = 5.0  # time that interrupted work gets to end by itself
atexit.register(gc.freeze)  # otherwise the interpreter's last garbage collections take half a second with torch loaded


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns its exit status: 0 for success, 2 for bad input, 130 after Ctrl-C; for others see the
    commands."""
    given = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in given
    if not debug and not sys.warnoptions:
        warnings.simplefilter("ignore")  # deprecation warnings of libraries are shown with --debug only
    if logging.lastResort is not None:  # the handler that logs if logging is not configured
        logging.lastResort.setFormatter(PlainFormatter())
    with Output(json="--json" in given) as output:
        try:
            arguments = build_parser().parse_args(given)
            if arguments.allow_weak_cage:  # applies to this process and its children
                os.environ[ALLOW_WEAK_CAGE] = "1"
            command = importlib.import_module(f"cutegen_lab.cli.{arguments.module}")
            return int(command.execute(arguments, output))
        except KeyboardInterrupt:
            output.error(InputError("interrupted"))
            _end_threads()
            return INTERRUPTED
        except BrokenPipeError:  # the reader closed the pipe: `cutegen runs list | head`
            output.abandon()
            return 1
        except CutegenError as error:
            _print_traceback(debug)
            output.error(error)
            return error.exit_status
        except ModuleNotFoundError as error:  # a machine with only some of the dependencies
            _print_traceback(debug)
            missing = SetupError(f"this needs {error.name}, which is not installed", "pip install cutegen-lab.")
            output.error(missing)
            return missing.exit_status
        except Exception as error:
            _print_traceback(debug)
            if known := of_the_disk(error):
                output.error(known)
                return known.exit_status
            output.error(
                CutegenError(f"internal error: {type(error).__name__}: {error}", "Add --debug for the traceback.")
            )
            return 1


def _end_threads() -> None:
    """Waits for abandoned steps, if any module that has them was imported."""
    if (interrupt := sys.modules.get("cutegen_lab.loop.interrupt")) is not None:
        interrupt.await_abandoned(_END_SECONDS)


def _print_traceback(debug: bool) -> None:
    """Prints the traceback of the current exception if ``--debug`` is given."""
    if debug:
        note(traceback.format_exc())
