"""The search against landscapes whose answer is known."""

from __future__ import annotations

import random
from statistics import median

import numpy as np
import pytest

from cutegen_lab.core.candidate import Config
from cutegen_lab.tuning import Patience, Search, Space, key, replay
from cutegen_lab.tuning.surrogate import Gaussian

DOMAINS = {"vec": (1, 2, 4, 8), "threads": (32, 64, 128, 256, 512), "loads": (1, 2, 4, 8), "raster": ("m", "n")}
SPACE = Space.build(DOMAINS, {"vec": 1, "threads": 32, "loads": 1, "raster": "m"})
NEVER = Patience(gain=0.0, least=1000)


def time_us(config: Config) -> float:
    vec, threads, loads = (float(np.log2(config[n])) for n in ("vec", "threads", "loads"))
    slow = 0.2 * (vec - 2) ** 2 + 0.1 * (threads - 7) ** 2 + 0.1 * (loads + vec - 3) ** 2
    return 100 * float(np.exp(slow + (0.2 if config["raster"] == "m" else 0.0)))


TIMES = {key(c): time_us(c) for c in SPACE.configs}
BEST = min(TIMES.values())


def needed(search: Search, times: dict[str, float | None]) -> int:
    steps = replay(search, times, 24)
    return next((s.evaluations for s in steps if s.time_us is not None and s.time_us <= 1.03 * BEST), 99)


def test_a_gaussian_process_passes_through_what_it_was_told() -> None:
    points = np.random.default_rng(0).random((12, 3))
    values = np.sin(3 * points[:, 0]) + points[:, 1]
    model = Gaussian.fit(points, values, 1.0)
    mean, deviation = model.predict(points)
    assert np.allclose(mean, values, atol=0.05)
    between, doubt = model.predict(np.full((1, 3), 0.5))
    assert abs(between[0] - (np.sin(1.5) + 0.5)) < 0.3 and doubt[0] > deviation.max()


def test_the_default_is_first_and_nothing_is_proposed_twice() -> None:
    search = Search(SPACE, patience=NEVER)
    asked = [step.config for step in replay(search, dict(TIMES), 40, batch=4)]
    assert asked[0] == SPACE.default
    assert len(asked) == len({key(c) for c in asked}) == 40


def test_one_seed_is_one_search() -> None:
    one, other = ([s.config for s in replay(Search(SPACE, seed=5), dict(TIMES), 20, batch=3)] for _ in range(2))
    assert one == other
    assert one != [s.config for s in replay(Search(SPACE, seed=6), dict(TIMES), 20, batch=3)]


def test_it_learns_faster_than_chance() -> None:
    ours = median(needed(Search(SPACE, seed=seed, patience=NEVER), dict(TIMES)) for seed in range(3))
    chance = []
    for seed in range(50):
        order = list(TIMES.values())
        random.Random(seed).shuffle(order)  # noqa: S311
        chance.append(next(n for n, t in enumerate(order, 1) if t <= 1.03 * BEST))
    assert ours <= 20 < median(chance)


def test_predictions_lead_the_way_and_their_error_is_learned() -> None:
    search = Search(SPACE, patience=NEVER)
    noise = random.Random(1)  # noqa: S311
    search.predict({name: 2 * t * noise.uniform(0.9, 1.1) for name, t in TIMES.items()})
    assert needed(search, dict(TIMES)) <= 6


def test_few_predictions_say_something_of_the_others() -> None:
    few = random.Random(2).sample(sorted(TIMES), 40)  # noqa: S311
    search = Search(SPACE, patience=NEVER)
    search.predict({name: TIMES[name] for name in few} | {"of another space": 1.0})
    assert needed(search, dict(TIMES)) <= 15


def test_failures_are_learned_from() -> None:
    """Every config with 512 threads fails, and they are predicted to be the fastest: after a few it asks for others."""
    search = Search(SPACE, patience=NEVER)
    search.predict({key(c): 1.0 if c["threads"] == 512 else t for c in SPACE.configs for t in [TIMES[key(c)]]})
    times = {key(c): None if c["threads"] == 512 else TIMES[key(c)] for c in SPACE.configs}
    steps = replay(search, times, 24)
    assert any(s.time_us is not None and s.time_us <= 1.03 * BEST for s in steps)
    assert sum(s.time_us is None for s in steps) < 20


def test_what_is_ruled_out_is_never_asked_for_and_does_not_count() -> None:
    search = Search(SPACE)
    for config in SPACE.configs[:-1]:
        search.rule_out(config)
    assert search.ask(10) == [SPACE.configs[-1]]
    assert search.ask(1) == [] and search.best is None


def test_where_others_were_ruled_out_it_does_not_go_on() -> None:
    """A kernel's own constraints rule out most of the space, which only the cage can tell."""
    search, out = Search(SPACE, patience=NEVER), 0
    for _ in range(40):
        config = search.ask(1)[0]
        if int(config["threads"]) * int(config["loads"]) > 128:  # 65% of all
            search.rule_out(config)
            out += 1
        else:
            search.tell(config, time_us(config))
    assert out <= 23


def test_pending_configs_are_not_asked_for_again_and_spread_the_next() -> None:
    search = Search(SPACE)
    search.predict(dict(TIMES))
    search.tell(search.ask(1)[0], TIMES[key(SPACE.default)])
    asked = search.ask(12)
    assert len({key(c) for c in asked}) == 12


def test_it_stops_where_nothing_is_to_be_gained() -> None:
    search = Search(SPACE, patience=Patience(gain=0.005, least=8))
    search.predict(dict(TIMES))
    steps = replay(search, dict(TIMES), len(TIMES))
    assert 8 <= len(steps) < 60 and search.best is not None and search.best[1] <= 1.03 * BEST


@pytest.mark.parametrize("count", [1, 2])
def test_spaces_of_one_and_two_points(count: int) -> None:
    space = Space.build({"a": tuple(range(1, count + 1))}, {"a": 1})
    assert len(replay(Search(space), {key(c): 1.0 for c in space.configs}, 10)) == count


def test_only_failures() -> None:
    space = Space.build({"a": (1, 2, 4, 8)}, {"a": 1})
    search = Search(space)
    assert len(replay(search, dict.fromkeys(map(key, space.configs)), 10)) == 4 and search.best is None
