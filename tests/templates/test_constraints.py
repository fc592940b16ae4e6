"""A module's own ``constraints`` and its family's ``why_not`` are one rule: a search on the exported text tries what a
search on the template would."""

from __future__ import annotations

import random

import pytest

from cutegen_lab.templates.recognise import template_for
from cutegen_lab.templates.template import Single
from tests.harness.checking import problem_of
from tests.harness.exported import constraints_of
from tests.templates.test_golden import CASES

CONFIGS = 200


NAMES = [name for name in CASES if name not in ("several_kernels", "attention")]


@pytest.mark.parametrize("name", NAMES)
def test_they_say_the_same_of_configs_drawn_at_random(name: str) -> None:
    case, draw = CASES[name], random.Random(name)  # noqa: S311
    problem = problem_of(case.expression, case.inputs)
    template = template_for(problem, case.arch)
    assert isinstance(template, Single)
    constraints = constraints_of(template.write(template.default_config()))
    apart = []
    for _ in range(CONFIGS):
        config = {parameter: draw.choice(values) for parameter, values in template.domains.items()}
        if bool(constraints(config, problem.workload, None)) != template.feasible(config):
            apart.append((config, template.why_not(config)))
    assert not apart, f"{len(apart)} of {CONFIGS}, such as {apart[0]}"
