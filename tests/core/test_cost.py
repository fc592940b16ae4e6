"""Prices as they are typed, and what tokens cost."""

from __future__ import annotations

import pytest

from cutegen_lab.core.candidate import TokenUsage
from cutegen_lab.core.cost import Price, dollars, price_of
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.run import Budget, RunSettings


def test_a_price_is_dollars_for_a_million_tokens_sent_and_received() -> None:
    assert price_of(" $1.25/$10 ") == price_of("1.25/10") == Price(1.25, 10.0)
    assert Price(1.25, 10.0).usd(TokenUsage(200_000, 50_000)) == pytest.approx(0.75)
    assert price_of("") is None
    for text in ("1.25", "a/b", "-1/2", "nan/1", "1/2/3"):
        with pytest.raises(InputError, match="cannot read the price"):
            price_of(text)


def test_small_sums_are_shown() -> None:
    assert [dollars(usd) for usd in (0.0, 0.00421, 0.126, 12.4)] == ["$0.00", "$0.0042", "$0.13", "$12.40"]


def test_a_cap_in_dollars_needs_a_price() -> None:
    with pytest.raises(InputError, match=r"a cap of \$2\.00 needs a price\. Give the price"):
        RunSettings(budget=Budget(max_usd=2.0))
    assert RunSettings(budget=Budget(max_usd=2.0), price=Price(1, 2)).price
