"""Stage one of the two-stage tuner: makes a kernel tunable, with the cage as compiler and the emulator's judge as
test."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Cancel, Say
from cutegen_lab.loop.services import Services
from cutegen_lab.session.tune import TuneSettings, from_text
from cutegen_lab.session.tuned import PlainKernel, Tunable
from cutegen_lab.tuning.refactor import Refactored, refactor

if TYPE_CHECKING:
    from cutegen_lab.providers.conversation import ConversationProvider

_DERIVED = 3  # number of small workloads on which every value is tried; a search's result is judged on all


def as_template(
    services: Services, problem: Problem, source: str, settings: TuneSettings, say: Say, cancel: Cancel | None = None,
    provider: ConversationProvider | None = None,
) -> Refactored:  # fmt: skip
    """``source`` with literals that control performance turned into parameters, checked on the settings' device.
    ``provider``, if given, proposes further parameters. Raises InputError if the kernel has a TUNABLE, does not compile
    or is not right as it is; SetupError, CageError, ProviderError, Cancelled."""
    from cutegen_lab.judge.probe import Probe

    stop, place = cancel or threading.Event(), services.device(settings.device)
    judged = services.workloads(problem, place)
    derived = [w for w in judged if w.derived][:_DERIVED]
    probed = [*derived, *(w for w in judged if not w.derived)]
    right = Probe(problem, probed, place, stop)

    def ask(found: Sequence[str]) -> str:
        from cutegen_lab.providers.prompting import render_refactor

        assert provider is not None
        return provider.answer(render_refactor(source, found), say, stop).text

    asked, compiler = ask if provider else None, services.compiler()
    return refactor(source, problem.workloads, probed, settings.arch, compiler, right, say, stop, asked)


def made_tunable(
    services: Services, problem: Problem, kernel: PlainKernel, settings: TuneSettings, say: Say,
    cancel: Cancel | None = None, provider: ConversationProvider | None = None,
) -> tuple[Refactored, Tunable]:  # fmt: skip
    """The result of stage one (:func:`as_template`), and the tunable kernel for stage two. Raises InputError if nothing
    became a parameter, and as :func:`as_template`."""
    found = as_template(services, problem, kernel.source, settings, say, cancel, provider)
    if not found.kept:
        whys = "; ".join(f"{d.name} = {d.value}: {_short(d.why)}" for d in found.dropped)
        raise InputError(
            f"nothing in {kernel.what} can be a parameter ({whys or 'no literal controls performance'})", ""
        )
    return found, from_text(found.source, {}, f"{kernel.what}, refactored", settings.seed)


def account(found: Refactored) -> list[str]:
    """Lines that say which literals became parameters, which did not, and why."""
    lines = []
    for kept in found.kept:
        several = f" in {kept.places} places" if kept.places > 1 else ""
        lines.append(f"{kept.name}: {kept.value} on line {kept.line}{several}, now one of {_listed(kept.domain)}")
        lines += [f"    not {value}: {_short(why)}" for value, why in kept.refused]
    lines += [f"constraint: {each}" for each in found.constraints]
    lines += [f"left as it is: {d.name} = {d.value} on line {d.line}: {_short(d.why)}" for d in found.dropped]
    if found.kept:
        tried, right = found.mixed
        lines.append("with its old values the kernel compiles to the same PTX")
        lines += [f"{right} of {tried} configs with several values changed are right"] if tried else []
    else:
        lines.append("nothing became a parameter")
    return lines


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 160 else plain[:159] + "…"
