"""Domains from text that is never run, and what constraints leave of them."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.tuning import Space, read_tunables
from cutegen_lab.tuning.space import LISTED

LAUNCH = "@cute.jit\ndef launch(x, y, stream, vec: Constexpr = 4, *, mode: Constexpr = 'a', n=None):\n    pass\n"


def test_domains_and_defaults_come_from_the_text() -> None:
    found = read_tunables(f'TUNABLE = {{"vec": (2, 4, 4, 8), "mode": ["a", "b"]}}\n{LAUNCH}raise SystemExit\n')
    assert found.domains == {"vec": (2, 4, 8), "mode": ("a", "b")}
    assert found.default == {"vec": 4, "mode": "a"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (LAUNCH, "no TUNABLE, so there is nothing to search; launch\\(\\) has vec, mode.*Add a TUNABLE"),
        ("x = 1\n", "launch\\(\\) has no tunable keyword either"),
        (f"TUNABLE = dict(vec=(2, 4))\n{LAUNCH}", "line 1: TUNABLE is computed.*literal"),
        (f"TUNABLE = {{'vec': ()}}\n{LAUNCH}", "a tuple of numbers or strings"),
        (f"TUNABLE = {{'vec': 4}}\n{LAUNCH}", "a tuple of numbers or strings. Write it as TUNABLE = "),
        (f"TUNABLE = {{}}\n{LAUNCH}", "a tuple of numbers or strings"),
        (
            f"TUNABLE = {{'warps': (4, 8)}}\n{LAUNCH}",
            "names warps, but launch\\(\\) has no such keyword.*Add warps: cutlass.Constexpr = 4",
        ),
        ("def launch(:\n", "not Python"),
    ],
)
def test_text_without_a_space_says_what_to_do(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tunables(source)


def test_what_is_infeasible_is_left_out_and_the_default_comes_first() -> None:
    domains = {"vec": (1, 2, 4), "loads": (1, 2, 4)}
    space = Space.build(domains, {"vec": 2, "loads": 2}, lambda c: int(c["vec"]) * int(c["loads"]) <= 4)
    assert space.default == {"vec": 2, "loads": 2} and space.total == 9
    assert {(c["vec"], c["loads"]) for c in space.configs} == {(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)}
    assert len(space.configs) == 6


def test_a_space_without_feasible_configs_is_an_error() -> None:
    with pytest.raises(InputError, match=r"none of the 3 configs of vec is feasible.*Widen the domains"):
        Space.build({"vec": (1, 2, 4)}, {"vec": 2}, lambda config: False)


def test_a_default_outside_its_domain_is_searched_too() -> None:
    space = Space.build({"threads": (64, 128)}, {"threads": 32})
    assert [c["threads"] for c in space.configs] == [32, 64, 128]
    assert space.encode({"threads": 32}) == (-1.0,) and space.total == 3


def test_a_huge_product_is_sampled_the_same_way_each_time() -> None:
    domains = {name: tuple(range(1, 11)) for name in "abcdef"}
    default = dict.fromkeys("abcdef", 1)
    one, other = (Space.build(domains, default, seed=3) for _ in range(2))
    assert one == other and one.sampled and one.total == 10**6 and len(one.configs) <= LISTED + 1


def test_points_are_logarithms_and_choices() -> None:
    space = Space.build({"vec": (1, 2, 4, 16), "raster": ("m", "n", "k"), "only": (3,)}, {"vec": 1, "raster": "m"})
    assert space.encode({"vec": 4, "raster": "n", "only": 3}) == (0.5, 1.0, 0.0)
