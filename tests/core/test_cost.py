"""Prices as they are typed, and what tokens cost."""

from __future__ import annotations

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price, dollars, in_words, price_of
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.run import Budget, RunSettings


def test_a_price_is_dollars_for_a_million_tokens_sent_and_received() -> None:
    assert price_of(" $1.25/$10 ") == price_of("1.25/10") == Price(1.25, 10.0)
    assert Price(1.25, 10.0).usd(TokenUsage(200_000, 50_000)) == pytest.approx(0.75)
    assert price_of("") is None
    for text in ("1.25", "a/b", "-1/2", "nan/1", "1/2/3/4", "1/2/"):
        with pytest.raises(InputError, match="cannot read the price"):
            price_of(text)


def test_tokens_from_the_cache_may_cost_less() -> None:
    assert price_of("1.25/10/0.125") == Price(1.25, 10.0, 0.125)
    usage = TokenUsage(200_000, 50_000, cached=100_000)
    assert Price(1.25, 10.0, 0.125).usd(usage) == pytest.approx(0.6375)
    assert Price(1.25, 10.0, 0.0).usd(usage) == pytest.approx(0.625)
    assert Price(1.25, 10.0).usd(usage) == pytest.approx(0.75)


def test_every_part_of_the_usage_is_added_and_written() -> None:
    usage = TokenUsage(1000, 300, 200, 50, 1300) + TokenUsage(500, 100, 1, 2, 3)
    assert usage == TokenUsage(1500, 400, 201, 52, 1303) and usage.total == 1900
    assert in_words(TokenUsage(1000, 300)) == "1,000 prompt + 300 completion"
    assert in_words(usage) == "1,500 prompt (201 cached) + 400 completion (52 reasoning), 1,303 of them estimated"


def test_small_sums_are_shown() -> None:
    assert [dollars(usd) for usd in (0.0, 0.00421, 0.126, 12.4)] == ["$0.00", "$0.0042", "$0.13", "$12.40"]


def test_a_cap_in_dollars_needs_a_price() -> None:
    with pytest.raises(InputError, match=r"a cap of \$2\.00 needs a price\. Give the price"):
        RunSettings(budget=Budget(max_usd=2.0))
    assert RunSettings(budget=Budget(max_usd=2.0), price=Price(1, 2)).price
