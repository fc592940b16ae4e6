"""Prices of models from a file as LiteLLM publishes it (``model_prices_and_context_window.json``): JSON with dollars
for one token by model name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cutegen_lab.core.cost import Price, price_of
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import did_you_mean

_WRITE_PRICE = "Give the price itself: dollars for a million tokens sent and received, as 1.25/10."
_OPENAI_PREFIX = "openai/"  # LiteLLM's name of a model may have it; its file leaves it out
_DIGITS = 6  # after the point, of dollars for a million tokens


def price_for(text: str, model: str, usual: Path | None = None) -> Price | None:
    """The price of ``model`` that ``text`` gives: the price itself (:func:`price_of`), or a file of prices. Empty: from
    the file ``usual``; None without one. Raises InputError."""
    path = Path(text.strip()).expanduser() if text.strip() else usual
    if path is None:
        return None
    return price_in(path, model) if path == usual or path.suffix == ".json" or path.is_file() else price_of(text)


def price_in(path: Path, model: str) -> Price:
    """The price of ``model`` in the file ``path``. Raises InputError if there is none."""
    prices = _read(path)
    entry = prices.get(model, prices.get(model.removeprefix(_OPENAI_PREFIX)))
    if not isinstance(entry, dict):
        raise InputError(f"{path} has no model {model!r}", f"{did_you_mean(model, prices)} {_WRITE_PRICE}".strip())
    sent, received = _dollars(entry, "input_cost_per_token"), _dollars(entry, "output_cost_per_token")
    if sent is None or received is None:
        raise InputError(f"{path} has no price per token for {model!r}", _WRITE_PRICE)
    # Tokens of the reasoning are part of those received; where they cost more, the cap in dollars still holds.
    reasoning = _dollars(entry, "output_cost_per_reasoning_token") or 0.0
    return Price(sent, max(received, reasoning), _dollars(entry, "cache_read_input_token_cost"))


def _read(path: Path) -> dict[str, Any]:
    try:
        prices = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the prices {path}: {error.strerror}", "Check the path.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", "Name a file as LiteLLM writes it.") from None
    if not isinstance(prices, dict):
        raise InputError(f"{path} is not a file of prices by model name", "Name a file as LiteLLM writes it.")
    return prices


def _dollars(entry: dict[str, Any], name: str) -> float | None:
    """Dollars for a million tokens; None if ``entry`` has no such price."""
    cost = entry.get(name)
    if not isinstance(cost, int | float) or not 0 <= cost < 1:
        return None
    return round(cost * 1e6, _DIGITS)
