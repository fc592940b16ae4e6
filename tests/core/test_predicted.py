"""A predicted time's terms in one line."""

from __future__ import annotations

import pytest

from cutegen_lab.core.predicted import as_counters, terms_text, terms_to_show
from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.trial import Profile

PARTS = {
    "memory": 6.08, "L1": 1.55, "integer": 0.9, "FMA": 0.7, "shared": 0.6, "tensor": 0.5,
    "waits": 1.59, "dependent instructions": 0.8, "block start": 0.4,
    "barriers": 0.001, "launch": 2.0, "block starts": 0.2, "copy": 6.08,
}  # fmt: skip


def profile(parts: dict[str, float]) -> Profile:
    return Profile("emulator", "memory bandwidth, 6.08 µs", {"moved_bytes": 1e6, **as_counters(parts)})


def sol(compute_us: float) -> SpeedOfLight:
    return SpeedOfLight(6.0, 6.0, compute_us, 1, 1, "memory", "H200")


def test_every_term_that_matters_and_what_is_attainable() -> None:
    assert terms_text(profile(PARTS), sol(1.0)) == (
        "predicted: memory 6.08, L1 1.55, integer 0.9, FMA 0.7, "
        "waits 1.59 (dependent instructions 0.8, block start 0.4), launch 2 µs; attainable ≈ 8.08 µs"
    )


def test_terms_to_draw_are_the_longest_first_the_waits_with_their_parts_and_the_launch_last() -> None:
    assert terms_to_show(profile(PARTS)) == [
        ("memory", 6.08, False),
        ("waits", 1.59, False), ("dependent instructions", 0.8, True), ("block start", 0.4, True),
        ("L1", 1.55, False), ("integer", 0.9, False), ("FMA", 0.7, False), ("shared", 0.6, False),
        ("tensor", 0.5, False), ("launch", 2.0, False),
    ]  # fmt: skip
    assert terms_to_show(Profile("hardware", "memory", {"moved_bytes": 1e6})) == []


@pytest.mark.parametrize(("compute_us", "attainable"), [(1.0, "8.08"), (20.0, "22")])
def test_arithmetic_bounds_what_is_attainable_too(compute_us: float, attainable: str) -> None:
    assert terms_text(profile(PARTS), sol(compute_us)).endswith(f"attainable ≈ {attainable} µs")


def test_two_launches_are_not_needed() -> None:
    """What is attainable has one launch's overhead."""
    twice = {**PARTS, "launch": 4.0, "memory": 12.16}
    assert terms_text(profile(twice), None).endswith("launch 4 µs; attainable ≈ 8.08 µs")


def test_a_hardware_profile_has_no_terms() -> None:
    assert terms_text(Profile("hardware", "L2", {"moved_bytes": 1e6}), None) == ""
