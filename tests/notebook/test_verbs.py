"""What a verb takes, and how it refuses the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.notebook.verbs import verb


class Bench:
    @verb
    def measure(
        self,
        budget: int,
        seconds: float | None = None,
        names: Sequence[str] = (),
        path: str | Path = "",
        fast: bool = True,
    ) -> NotImportedHere:  # type: ignore[name-defined]  # noqa: F821 - as those imported for type checkers alone
        """Measures."""
        return budget, seconds


def test_what_fits_is_passed_on() -> None:
    bench = Bench()
    assert bench.measure(3) == (3, None)
    assert bench.measure(np.int64(3), seconds=2, names=["a"], path=Path("b"), fast=False) == (3, 2)
    assert Bench.measure.__doc__ == "Measures."


@pytest.mark.parametrize(
    ("given", "named", "says"),
    [
        ((), {}, "measure: missing a required argument: 'budget'"),
        ((1, 2, (), "", True, 5), {}, "measure: too many positional arguments"),
        ((1,), {"second": 2}, "Did you mean 'seconds'?"),
        ((1,), {"bogus": 2}, r"'bogus'\. Write measure\(budget, seconds=None, names=\(\), path='', fast=True\)"),
        (("40",), {}, "budget is '40', not a whole number"),
        ((4.0,), {}, r"budget is 4\.0, not a whole number"),
        ((True,), {}, "budget is True, not a whole number"),
        ((1, "x" * 90), {}, "seconds is 'x{38}…, not a number or None"),
        ((1, 2.0, "abc"), {}, "names is 'abc', not a list, each of it text"),
        ((1, 2.0, [1]), {}, r"names is \[1\], not a list"),
        ((1, 2.0, [], None), {}, "path is None, not text or a path"),
        ((1,), {"fast": 1}, "fast is 1, not True or False"),
    ],
)
def test_what_does_not_fit_is_an_input_error(given: tuple[object, ...], named: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Bench().measure(*given, **named)  # type: ignore[arg-type]
