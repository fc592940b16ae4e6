"""Every operation on random layouts, compared with the DSL's own evaluation at every coordinate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.layouts import algebra
from cutegen_lab.layouts.int_tuple import flatten, like
from cutegen_lab.layouts.layout import Layout
from tests.layouts.cases import defined, drawn, nested, ours
from tests.layouts.dsl import dsl_answers

SEED = 20261125
COUNT = 200
BY_DEFINITION = ("composition", "logical_divide", "zipped_divide", "tiled_divide")


@pytest.mark.slow
def test_200_random_layouts_against_the_dsl(request: pytest.FixtureRequest) -> None:
    """Where we refuse and the DSL does not, its answer must break the operation's definition."""
    count = COUNT * 5 if request.config.getoption("--exhaustive") else COUNT
    cases = drawn(SEED + request.config.getoption("--seed"), count)
    refused = 0
    for case, dsl in zip(cases, dsl_answers(cases), strict=True):
        mine = answer(case)
        if "refused" in mine and "refused" not in dsl:
            refused += 1
            assert case["operation"] in BY_DEFINITION and not keeps_definition(case, dsl), (case, mine, dsl)
        elif "refused" in mine:
            refused += 1
            assert "refused" in dsl, (case, mine)
        else:
            assert comparable(mine) == comparable(dsl), case
            assert case["operation"] not in BY_DEFINITION or keeps_definition(case, mine), case
    assert refused < count / 10, "nearly all cases must have an answer"


def answer(case: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(ours(case))))
    except InputError as error:
        return {"refused": str(error)}


def keeps_definition(case: dict[str, Any], found: dict[str, Any]) -> bool:
    try:
        expected = defined(case)
    except InputError:
        return False
    return len(expected) == len(found["indices"]) and all(
        value is None or value == index for value, index in zip(expected, found["indices"], strict=True)
    )


def comparable(found: dict[str, Any]) -> dict[str, Any]:
    """Without strides of extents of 1, which mean nothing and in which the DSL does not follow one rule."""
    if "shape" not in found:
        return found
    shape, stride = nested(found["shape"]), nested(found["stride"])
    leaves = (0 if extent == 1 else step for extent, step in zip(flatten(shape), flatten(stride), strict=True))
    return {**found, "shape": shape, "stride": like(shape, leaves)}


@pytest.mark.parametrize("layout", [Layout((4, 8), (16, 1)), Layout((4, 8), (16, 2)), Layout((2, 3, 5), (15, 5, 1))])
def test_a_right_inverse(layout: Layout) -> None:
    right = algebra.right_inverse(layout)
    assert [layout(right(at)) for at in range(right.size)] == list(range(right.size))


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda: algebra.composition(Layout((4, 6), (6, 1)), 5), "do not divide the 5"),
        (lambda: algebra.composition(Layout((4, 6), (6, 1)), Layout(3, 3)), "its mode of 4 and the stride 3"),
        (lambda: algebra.complement(Layout((4, 4), (1, 2)), 32), "overlap"),
        (lambda: algebra.zipped_divide(Layout(8, 1), (2, 2)), "a tiler of 2 modes does not fit 8:1"),
        (lambda: Layout((8, 2), (1,)), "not nested alike"),
        (lambda: Layout((8, 4), (1, 8))((1, 2, 3)), "no coordinate"),
    ],
)
def test_what_has_no_result_says_why(work: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        work()
