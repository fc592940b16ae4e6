"""The configs of a template that a search may try."""

from __future__ import annotations

from cutegen_lab.session.tune import from_template
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import problem_of


def test_stages_that_do_not_fit_are_not_searched_beside_those_that_run() -> None:
    problem = problem_of("x @ w.T", "x: bf16[256,4096], w: bf16[256,4096]", checks=())
    template = template_for(problem, "sm_90a")
    configs = from_template(problem, "sm_90a").space.configs
    large = [c["stages"] for c in configs if (c["tile_m"], c["tile_n"], c["tile_k"]) == (128, 256, 64)]
    assert large and max(int(stages) for stages in large) == 4  # of 48 KiB each
    assert all(template.settled(config) == config for config in configs)
    assert len(configs) == len({tuple(sorted(config.items())) for config in configs})
