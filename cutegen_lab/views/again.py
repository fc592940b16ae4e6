"""The command that repeats a run."""

from __future__ import annotations

import shlex

from cutegen_lab.core.cost import Price
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import Budget, RunSettings, RunState


def problem_file(name: str) -> str:
    """The name of a file for the problem ``name``."""
    return f"{''.join(c if c.isalnum() or c in '-_' else '_' for c in name)}.py"


def command(state: RunState) -> str:
    """``cutegen run`` with the settings of a run that are not its defaults."""
    of, usual, first = state.settings, RunSettings(), Budget()
    budget, price = of.budget, of.price
    given = {
        "provider": (of.provider, usual.provider), "model": (of.model, usual.model),
        "language": (of.language, usual.language), "strategy": (of.strategy, usual.strategy),
        "arch": (of.arch, ""), "gpu": (state.sol.gpu, ""),
        "device": (of.device, usual.device), "inputs": (state.problem.inputs_text, ""),
        "max-steps": (budget.max_steps, first.max_steps), "max-seconds": (budget.max_seconds, first.max_seconds),
        "max-tokens": (budget.max_tokens, first.max_tokens), "max-cost": (budget.max_usd, first.max_usd),
        "patience": (budget.patience, first.patience),
        "within": (f"{100 * budget.within:g}" if budget.within is not None else None, first.within),
        "price": (_price(price) if price else "", ""),
        "drafts": (of.drafts, usual.drafts),
        "profiling": (of.guidance.profiling, usual.guidance.profiling),
        "no-bounds": (not of.guidance.bounds, False), "no-memory": (not of.guidance.memory, False),
        "auto": (of.auto, usual.auto),
    }  # fmt: skip
    chosen = {name: value for name, (value, default) in given.items() if value != default}
    options = [name if value is True else f"{name}={one_line(str(value))}" for name, value in chosen.items()]
    return shlex.join(["cutegen", "run", problem_file(state.problem.name), *(f"--{each}" for each in options)])


def _price(price: Price) -> str:
    """As ``--price`` takes it."""
    parts = [price.prompt_usd, price.completion_usd, *([] if price.cached_usd is None else [price.cached_usd])]
    return "/".join(f"{each:g}" for each in parts)
