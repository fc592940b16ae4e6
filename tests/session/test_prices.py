"""The price of a run's answers, from the option and from the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_lab.config import DEFAULT_MODEL, Settings
from cutegen_lab.core.cost import Price
from cutegen_lab.core.errors import InputError
from cutegen_lab.session.factories import make_price


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "prices.json"
    entry = {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}
    path.write_text(json.dumps({DEFAULT_MODEL: entry, "small": {**entry, "output_cost_per_token": 3e-06}}))
    return Settings.from_environment({"CUTEGEN_PRICES": str(path)})


def test_the_file_of_the_environment_has_the_price_of_a_model(settings: Settings) -> None:
    assert make_price("", "openai", "", settings) == Price(1, 2)
    assert make_price("", "openai", "small", settings) == Price(1, 3)
    assert make_price("4/5", "openai", "small", settings) == Price(4, 5)
    with pytest.raises(InputError, match=r"has no model 'smal'\. Did you mean 'small'"):
        make_price("", "openai", "smal", settings)


def test_without_a_model_at_an_endpoint_the_file_is_not_read(settings: Settings) -> None:
    for provider in ("templates", "manual", "replay:FILE"):
        assert make_price("", provider, "", settings) is None
    assert make_price("", "openai", "", Settings.from_environment({})) is None
