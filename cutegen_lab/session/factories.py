"""Makes providers, compilers, judges and devices by name. Heavy modules are imported when first needed."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.config import DEFAULT_MODEL, Settings
from cutegen_lab.core.cost import Price
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.forks import Forks
from cutegen_lab.core.hints import Advice, Hint, did_you_mean
from cutegen_lab.core.price_file import price_for
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Device, Forecast, Judge, Provider
from cutegen_lab.core.run import PROVIDERS, RunSettings

if TYPE_CHECKING:
    from cutegen_lab.compile import CageCompiler
    from cutegen_lab.providers.recalled import Recall

_forking = threading.Lock()


def make_provider(
    chosen: RunSettings, settings: Settings, workdir: Path, forecast: Forecast | None = None,
    search_forecast: Callable[[], Forecast] | None = None, recall: Recall | None = None,
) -> Provider:  # fmt: skip
    """The provider that ``chosen`` names, with its strategy. ``forecast``: predicts times of kernels that the templates
    may propose. ``search_forecast`` makes the one that the strategies "two-stage" and "auto" need. ``recall``: tells
    a model what worked in other runs. Raises :class:`InputError` for an unknown name or a strategy that the provider
    does not have, and what the provider raises for bad options."""
    named = _named_provider(chosen, settings, workdir, forecast)
    strategy = getattr(named, "strategy", "") or chosen.strategy  # a recording is replayed as it was recorded
    asked = _told_facts(named, chosen, recall)
    if strategy == "cutegen" or search_forecast is None:
        return asked
    if named.name == "templates":
        raise InputError("templates choose their values by themselves", Hint(Advice.STRATEGY_PROVIDER))
    from cutegen_lab.providers.auto import AutoProvider
    from cutegen_lab.providers.templates import TemplatesProvider
    from cutegen_lab.providers.two_stage import TwoStageProvider  # needs NumPy

    predicted = search_forecast()
    model = TwoStageProvider(asked, predicted)
    return AutoProvider(TemplatesProvider(forecast=predicted), model) if strategy == "auto" else model


def _told_facts(provider: Provider, chosen: RunSettings, recall: Recall | None) -> Provider:
    """``provider`` told what worked in other runs, if it is one that reads it."""
    if recall is None or chosen.provider.partition(":")[0] not in ("openai", "manual"):
        return provider
    from cutegen_lab.providers.recalled import RecallingProvider

    return RecallingProvider(provider, recall)


def _named_provider(
    chosen: RunSettings, settings: Settings, workdir: Path, forecast: Forecast | None
) -> Provider:  # fmt: skip
    kind, _, argument = chosen.provider.partition(":")
    if chosen.language == "spec" and kind == "templates":
        raise InputError("templates read the reference, and write no specs", Hint(Advice.SPEC_PROVIDER))
    match kind:
        case "templates":
            from cutegen_lab.providers.templates import TemplatesProvider, first_config

            return TemplatesProvider(first_config(argument), forecast=forecast)
        case "openai":
            from cutegen_lab.providers.openai.caps import Caps
            from cutegen_lab.providers.openai.keys import api_key
            from cutegen_lab.providers.openai.provider import OpenAIProvider

            return OpenAIProvider(
                model=chosen.model or settings.model or None,
                api_key=api_key(settings.openai_api_key, settings.openai_base_url) or None,
                base_url=settings.openai_base_url or None,
                caps=Caps(chosen.budget.max_tokens, chosen.budget.max_usd, chosen.price),
                plain=settings.plain_requests,
            )
        case "manual":
            from cutegen_lab.providers.manual import ManualProvider

            folder = Path(argument) if argument else workdir / "manual"
            return ManualProvider(folder, chosen.model or "a person", strategy=chosen.strategy)
        case "replay":
            if not argument:
                raise InputError("replay needs a file", Hint(Advice.REPLAY_FILE))
            from cutegen_lab.providers.replay import ReplayProvider

            return ReplayProvider(Path(argument))
    hint = f"{did_you_mean(kind, PROVIDERS)} Use one of: {', '.join(PROVIDERS)}."
    raise InputError(f"unknown provider {chosen.provider!r}", hint.strip())


def make_price(text: str, provider: str, model: str, settings: Settings | None = None) -> Price | None:
    """The price of a provider's answers, from the option's ``text`` (a price, or a file of prices); empty: from the
    file CUTEGEN_PRICES, for a model at an endpoint. None without either. Raises InputError."""
    settings = settings or Settings.from_environment()
    usual = settings.prices if provider == "openai" else None
    return price_for(text, model or settings.model or DEFAULT_MODEL, usual)


def make_compiler(settings: Settings, build_seconds: float | None = None) -> CageCompiler:
    """A compiler with as many builds at a time as there are cores. ``build_seconds``: limit of a build's CPU time; that
    of its wall-clock time is three times this (default: the cage's limits)."""
    from loky import cpu_count

    from cutegen_lab.compile import CageCompiler, Limits

    limits = (
        Limits() if build_seconds is None else Limits(wall_seconds=3 * build_seconds, cpu_seconds=int(build_seconds))
    )
    return CageCompiler(settings.cache_dir, cpu_count(), limits, settings.allow_weak_cage)


def make_judge(deep: bool = False, max_autotune: bool = False) -> Judge:
    """A judge that may use the emulator, if NumPy is installed. ``deep``: also run a GPU's sanitizers.
    ``max_autotune``: also time that mode of torch.compile."""
    from cutegen_lab.judge import StandardJudge

    judge = StandardJudge(deep=deep, make_emulator=_emulator, forks=forks)
    if max_autotune:
        judge.effort = replace(judge.effort, references=(*judge.effort.references, "max-autotune"))
    return judge


def forks() -> Forks:
    """This process's worker processes, for emulation during GPU work and for predictions; they end with it."""
    with _forking:
        return _forks()


@cache
def _forks() -> Forks:
    made = Forks(("cutegen_lab.devices.emulator", "cutegen_lab.judge"))
    atexit.register(made.close)
    return made


def _emulator() -> Device | None:
    """An emulator; None without NumPy."""
    try:
        from cutegen_lab.devices.emulator import EmulatorDevice
    except ImportError:
        return None
    return EmulatorDevice()


def make_device(kind: str) -> Device:
    from cutegen_lab.devices.select import select

    return select(kind)


def on_gpu(kind: str) -> bool:
    """Whether :func:`make_device` would return a GPU for ``kind``. Imports nothing heavy."""
    from cutegen_lab.devices.cuda import gpu_count

    return kind.startswith("cuda") or (kind == "auto" and gpu_count() > 0)


def judged_workloads(problem: Problem, device: Device) -> Sequence[Workload]:
    from cutegen_lab.judge import select_workloads

    return select_workloads(problem, device)
