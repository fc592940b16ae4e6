"""The templates provider: what it proposes, in what order, and what it says it cannot do."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from cutegen_lab.core.candidate import Candidate, Proposal
from cutegen_lab.core.errors import ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Attempt, GenerateRequest
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.trial import Profile, Provenance, Trial
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.problems import read_text
from cutegen_lab.providers.templates import TemplatesProvider

SOFTMAX = "def reference(x):\n    return torch.softmax(x, dim=-1)\n"


def first(source: str = SOFTMAX, inputs: str = "x: bf16[4096,8192]") -> GenerateRequest:
    return GenerateRequest("generate", read_text(source, inputs_text=inputs), GPUS["H200"], "sm_90a")


def proposed(provider: TemplatesProvider, request: GenerateRequest) -> Proposal:
    return provider.propose(request, lambda line: None, threading.Event())


def attempt(number: int, proposal: Proposal, limiter: str = "") -> Attempt:
    provenance = Provenance("", "", {}, "sm_90a", "emulator", (), {}, {}, ())
    profile = Profile("emulator", limiter, {}) if limiter else None
    trial = Trial(f"c{number}", Verdict.PASSED, "", "emulator", provenance, profile=profile)
    return Attempt(Candidate(f"c{number}", None, "templates", proposal), trial)


def test_the_first_proposal_is_a_default_with_its_reason() -> None:
    proposal = proposed(TemplatesProvider(), first())
    assert proposal.config == {"vec": 8, "threads_per_row": 256, "rows_per_block": 1, "cluster_n": 1, "loads": 64}
    assert "row reduction" in proposal.title and proposal.reason
    assert "threads_per_row: cutlass.Constexpr = 256" in proposal.source


def test_a_refinement_changes_one_parameter_and_says_why_and_what_to_expect() -> None:
    provider, request = TemplatesProvider(), first()
    start = attempt(1, proposed(provider, request))
    refined = proposed(provider, replace(request, kind="refine", parent=start, history=(start,)))
    changed = {k for k in refined.config if refined.config[k] != start.candidate.config[k]}
    assert len(changed) == 1 and changed.pop() in refined.title
    assert refined.reason and "less time" in refined.predicted_effect
    before, after = start.candidate.source.splitlines(), refined.source.splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1, "the diff shows the change and nothing else"


@pytest.mark.parametrize(("threads", "neighbours"), [(32, {64}), (96, {64, 128}), (2048, {1024})])
def test_a_first_config_outside_the_domain_moves_to_the_nearest_in_it(threads: int, neighbours: set[int]) -> None:
    provider = TemplatesProvider({"vec": 1, "threads": threads, "loads": 1})
    request = first("def reference(x):\n    return torch.relu(x)\n", "x: f32[256,1024]")
    start = attempt(1, proposed(provider, request))
    history = [start]
    with pytest.raises(ProviderExhausted):
        for number in range(2, 40):
            asked = replace(request, kind="refine", parent=start, history=tuple(history))
            history.append(attempt(number, proposed(provider, asked)))
    assert {each.candidate.config["threads"] for each in history} - {threads} == neighbours


def test_no_config_is_proposed_twice_and_the_end_is_said() -> None:
    provider, request = TemplatesProvider(), first(inputs="x: f32[4,64]")
    start = attempt(1, proposed(provider, request))
    history = [start]
    with pytest.raises(ProviderExhausted, match="every neighbouring config"):
        for number in range(2, 40):
            asked = replace(request, kind="refine", parent=start, history=tuple(history))
            history.append(attempt(number, proposed(provider, asked)))
    configs = [str(sorted(a.candidate.config.items())) for a in history]
    assert len(set(configs)) == len(configs) > 2


def test_what_the_profile_complains_about_comes_first() -> None:
    provider, request = TemplatesProvider(), first()
    start = attempt(1, proposed(provider, request), "issue slots")
    refined = proposed(provider, replace(request, kind="refine", parent=start, history=(start,)))
    assert refined.title.startswith(("vec", "rows_per_block"))


def test_what_is_expected_to_be_slower_comes_last() -> None:
    """On an H200 this product took 786 µs, and with half the tile in n or in m 1,229 and 1,018."""
    source = "def reference(a, b, c):\n    return F.gelu(F.linear(a, b, c))\n"
    provider = TemplatesProvider()
    request = first(source, "a: bf16[4096,5120], b: bf16[13824,5120], c: bf16[13824]")
    start = attempt(1, proposed(provider, request))
    history, changed = [start], list[str]()
    with pytest.raises(ProviderExhausted):
        for number in range(2, 40):
            asked = replace(request, kind="refine", parent=start, history=tuple(history))
            history.append(attempt(number, proposed(provider, asked)))
            changed.append(history[-1].candidate.proposal.title.split()[0])
    assert {*changed[-4:]} == {"schedule", "tile_m", "tile_n", "cluster_m"}


@pytest.mark.parametrize(
    ("source", "inputs", "names"),
    [
        ("def reference(x, y):\n    return F.conv1d(x, y)\n", "x: f32[8,4,64], y: f32[8,4,3]", "aten.conv1d"),
        ("def reference(x):\n    return torch.sort(x).values\n", "x: f32[8,64]", "aten.sort"),
    ],
)
def test_what_it_does_not_know_is_named_with_who_could(source: str, inputs: str, names: str) -> None:
    with pytest.raises(ProviderError, match=f"{names}.*another provider"):
        proposed(TemplatesProvider(), first(source, inputs))


def test_a_row_whose_positions_fp32_cannot_count_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(ProviderError, match=r"a row of 20,000,000 values \(at most 16,777,216\)"):
        proposed(TemplatesProvider(), first(inputs="x: bf16[1,20000000]"))


def test_a_row_too_long_for_a_cluster_is_walked_in_steps() -> None:
    assert proposed(TemplatesProvider(), first(inputs="x: bf16[4,1048576]")).config["loads"] == 4


def test_a_bound_on_the_loads_in_flight_is_proposed_where_it_binds() -> None:
    provider, request = TemplatesProvider(), first()
    history = [attempt(1, proposed(provider, request))]
    while True:
        refined = proposed(provider, replace(request, kind="refine", parent=history[0], history=tuple(history)))
        history.append(attempt(len(history) + 1, refined))
        if refined.title.startswith("loads"):
            break
    assert refined.config["loads"] == 2  # of the four vectors that are a thread's share


def test_a_row_too_long_for_one_block_is_shared_by_a_cluster() -> None:
    assert proposed(TemplatesProvider(), first(inputs="x: bf16[4,262144]")).config["cluster_n"] == 8


def test_importing_the_provider_and_its_families_loads_no_torch() -> None:
    script = (
        "import sys, cutegen_lab.providers.templates, cutegen_lab.templates.registry\n"
        "print([m for m in ('torch', 'cutlass') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert told.stdout.strip() == "[]"
