"""Prices from a file as LiteLLM publishes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cutegen_lab.core.cost import Price
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.price_file import price_for, price_in

ENTRIES: dict[str, Any] = {
    "sample_spec": {"max_input_tokens": "max input tokens, if the provider specifies it"},
    "gpt-5": {"input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "mode": "chat",
              "cache_read_input_token_cost": 1.25e-07, "max_output_tokens": 128000},
    "ollama/llama3": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "deepseek/deepseek-chat": {"input_cost_per_token": 2.8e-07, "output_cost_per_token": 4.2e-07},
    "qwen-plus": {"input_cost_per_token": 4e-07, "output_cost_per_token": 1.2e-06,
                  "output_cost_per_reasoning_token": 4e-06},
    "dall-e-3": {"input_cost_per_pixel": 3.8e-08},
    "odd": {"input_cost_per_token": "cheap", "output_cost_per_token": 1e-05},
    "negative": {"input_cost_per_token": -1e-06, "output_cost_per_token": 1e-05},
    "nan": {"input_cost_per_token": float("nan"), "output_cost_per_token": 1e-05},
    "list": [1, 2],
}  # fmt: skip


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(ENTRIES))
    return path


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-5", Price(1.25, 10.0, 0.125)),
        ("openai/gpt-5", Price(1.25, 10.0, 0.125)),
        ("ollama/llama3", Price(0.0, 0.0)),
        ("deepseek/deepseek-chat", Price(0.28, 0.42)),
        ("qwen-plus", Price(0.4, 4.0)),  # its reasoning costs more: the cap in dollars holds for it too
    ],
)
def test_the_price_of_a_model(prices: Path, model: str, price: Price) -> None:
    assert price_in(prices, model) == price


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("gpt5", r"prices\.json has no model 'gpt5'\. Did you mean 'gpt-5'\? Give the price itself: .* as 1\.25/10"),
        ("llama", "has no model 'llama'"),
        ("list", "has no model 'list'"),
        ("dall-e-3", "has no price per token for 'dall-e-3'"),
        ("odd", "has no price per token"),
        ("negative", "has no price per token"),
        ("nan", "has no price per token"),
    ],
)
def test_a_model_without_a_price(prices: Path, model: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        price_in(prices, model)


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "is not JSON"), ("[1]", "not a file of prices"), ("[" * 10**5, "is not JSON"), ("\udcff", "is not JSON")],
)
def test_a_file_of_something_else(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=says):
        price_in(path, "gpt-5")


def test_a_price_is_typed_or_in_a_file(prices: Path, tmp_path: Path) -> None:
    assert price_for("1/2", "any", prices) == Price(1, 2)
    assert price_for(f" {prices} ", "gpt-5") == price_for("", "gpt-5", prices) == Price(1.25, 10.0, 0.125)
    assert price_for("", "gpt-5") is None
    with pytest.raises(InputError, match=r"cannot read the prices .*missing\.json: No such file"):
        price_for(str(tmp_path / "missing.json"), "gpt-5")
    with pytest.raises(InputError, match="cannot read the price 'cheap'"):
        price_for("cheap", "gpt-5")
