"""Processes forked from one that has imported what they need."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from cutegen_lab.core.errors import Cancelled, InputError
from cutegen_lab.core.forks import ForkEnded, Forks


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with closing(Forks(("fractions",))) as made:
        yield made


def never() -> bool:
    return False


def test_a_function_is_called_elsewhere_again_and_again_by_one_process_each(forks: Forks) -> None:
    with closing(forks.fork(partial(power, 3))) as one, closing(forks.fork(power)) as other:
        first, again, elsewhere = one(2, cancelled=never), one(3, cancelled=never), other(2, 5, cancelled=never)
    assert [first[0], again[0], elsewhere[0]] == [9, 27, 32]
    assert first[1] == again[1] and len({first[1], elsewhere[1], os.getpid()}) == 3


def test_what_it_raises_is_raised_here(forks: Forks) -> None:
    with closing(forks.fork(refuse)) as one:
        with pytest.raises(InputError, match="no more of these"):
            one("these", cancelled=never)
        with pytest.raises(InputError, match="no more of those"):
            one("those", cancelled=never)


def test_one_that_ends_is_told_and_the_next_is_another(forks: Forks) -> None:
    with closing(forks.fork(os._exit)) as one, pytest.raises(ForkEnded):
        one(1, cancelled=never)
    with closing(forks.fork(power)) as other:
        assert other(2, 2, cancelled=never)[0] == 4


def test_cancelled_or_closed_it_ends_whatever_it_is_at(forks: Forks, tmp_path: Path) -> None:
    with closing(forks.fork(write_for_ever)) as one, pytest.raises(Cancelled):
        one(str(tmp_path / "alive"), cancelled=partial(has_written, tmp_path / "alive"))
    time.sleep(0.3)
    before = (tmp_path / "alive").read_bytes()
    time.sleep(0.3)
    assert before and (tmp_path / "alive").read_bytes() == before


def test_all_end_with_those_who_forked_them(tmp_path: Path) -> None:
    made = Forks(())
    one = made.fork(write_for_ever)
    one.send((str(tmp_path / "alive"),))
    while not has_written(tmp_path / "alive"):
        time.sleep(0.02)
    made.close()
    time.sleep(0.3)
    before = (tmp_path / "alive").read_bytes()
    time.sleep(0.3)
    assert before and (tmp_path / "alive").read_bytes() == before
    with pytest.raises(ForkEnded):
        made.fork(power)


def power(base: int, exponent: int) -> tuple[int, int]:
    return base**exponent, os.getpid()


def refuse(what: str) -> None:
    raise InputError(f"no more of {what}", "Ask for others.")


def has_written(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def write_for_ever(path: str) -> None:
    while True:
        with Path(path).open("ab") as file:
            file.write(b".")
        time.sleep(0.01)
