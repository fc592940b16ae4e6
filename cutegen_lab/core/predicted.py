"""Terms of a predicted time: their names, their counters in a profile, and one line of text about them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from cutegen_lab.core.roofline import SpeedOfLight
from cutegen_lab.core.trial import Profile

LAUNCH, STARTS, MEMORY, L2, COPY = "launch", "block starts", "memory", "L2", "copy"
SPILLS = "spills"  # part of L2's term
WAITS = "waits"  # sum of a block's waits, which are the terms in _WAITED
LOADS, ARRIVAL, STAGES = "loads in flight", "loads arriving", "bulk copies"
DEPENDENT, IN_ORDER, WORK = "dependent instructions", "instructions in order", "busiest unit"
BARRIERS, CLUSTER, BLOCK = "barriers", "cluster waits", "block start"
_WAITED = (LOADS, ARRIVAL, STAGES, DEPENDENT, IN_ORDER, WORK, BARRIERS, CLUSTER, BLOCK)
LAUNCH_US = 2.0  # launch, ramp-up and drain of one kernel
AT_THE_FLOOR = "at the floor"  # in a profile's limiter: no change is predicted to make the kernel faster
_NORM = 3  # exponent of the norm that joins the terms
_SHOWN = 0.05  # fraction of the longest term below which a term is left out
_UNITS = 3  # maximum number of functional units that are mentioned


def as_counters(parts: Mapping[str, float]) -> dict[str, float]:
    """Counters of a profile for ``parts`` (microseconds by term): ``predicted_<term>_us``."""
    return {f"predicted_{name.replace(' ', '_')}_us": value for name, value in parts.items()}


def terms_us(profile: Profile) -> dict[str, float]:
    """Microseconds by term of a profile's prediction; empty for a profile without one."""
    kept = {name: value for name, value in profile.counters.items() if name.startswith("predicted_")}
    found = {name[len("predicted_") : -len("_us")].replace("_", " "): value for name, value in kept.items()}
    return found if LAUNCH in found else {}


def _units(found: Mapping[str, float]) -> list[str]:
    """Terms of the units that work at the same time, longest first."""
    apart = (LAUNCH, COPY, SPILLS, WAITS, *_WAITED)
    return sorted((name for name in found if name not in apart), key=lambda name: -found[name])


def terms_to_show(profile: Profile) -> list[tuple[str, float, bool]]:
    """Terms of a predicted time as (name, microseconds, whether the term is a part of the waits): the longest first,
    parts after the waits, the launch last. Terms below 5% of the longest are left out."""
    return named_terms(terms_us(profile))


def named_terms(found: Mapping[str, float]) -> list[tuple[str, float, bool]]:
    """As :func:`terms_to_show`, from microseconds by term."""
    if not found:
        return []
    least = _SHOWN * max(found.values())
    units = [[(name, found[name], False)] for name in _units(found) if found[name] >= least]
    parts = [(name, found[name], True) for name in _WAITED if found.get(name, 0.0) >= least]
    waits = [(WAITS, found.get(WAITS, 0.0), False), *parts]
    shown = sorted([*units, waits], key=lambda terms: -terms[0][1])
    return [*chain.from_iterable(shown), (LAUNCH, found[LAUNCH], False)]


def terms_text(profile: Profile, sol: SpeedOfLight | None) -> str:
    """One line with what each term takes and what time is attainable; empty for a profile without a prediction."""
    found = terms_us(profile)
    if not found:
        return ""
    least = _SHOWN * max(found.values())
    units = [name for name in _units(found) if name != MEMORY][:_UNITS]
    waited = [f"{name} {found[name]:.3g}" for name in _WAITED if found.get(name, 0.0) >= least]
    said = [f"{name} {found[name]:.3g}" for name in (MEMORY, *units) if found.get(name, 0.0) >= least]
    said.append(f"{WAITS} {found.get(WAITS, 0.0):.3g}" + (f" ({', '.join(waited)})" if waited else ""))
    said.append(f"{LAUNCH} {found[LAUNCH]:.3g} µs")
    least_us = attainable_us(profile, sol)
    attainable = f"; attainable ≈ {least_us:.3g} µs" if least_us else ""
    return f"predicted: {', '.join(said)}{attainable}"


def savings_text(profile: Profile) -> str:
    """What shortening each of the longest terms by 0.1 µs saves of the predicted time, since the terms overlap (as the
    third root of the sum of their cubes, beside the launch); empty for a profile without a prediction."""
    found = terms_us(profile)
    units = [name for name in _units(found) if name not in (MEMORY, L2, STARTS)][:1]
    terms = {name: found[name] for name in (MEMORY, *units, WAITS) if found.get(name, 0.0) > 0}
    whole = sum(value**_NORM for value in terms.values()) ** (1 / _NORM)
    saved = {name: 0.1 * (value / whole) ** (_NORM - 1) for name, value in terms.items()}
    if not saved:
        return ""
    listed = ", ".join(f"{name} {us:.2f}" for name, us in sorted(saved.items(), key=lambda each: -each[1]))
    return f"the terms overlap: 0.1 µs less of one saves about {listed} µs"


def attainable_us(profile: Profile, sol: SpeedOfLight | None) -> float | None:
    """Attainable time in microseconds (:func:`with_launch`) with a predicted copy of the compulsory bytes; None for a
    profile without a prediction."""
    copy_us = terms_us(profile).get(COPY, 0.0)
    return with_launch(copy_us, sol.compute_us if sol else 0.0) if copy_us else None


def with_launch(copy_us: float, compute_us: float) -> float:
    """A launch, and the longer of a copy of the bytes and the matrix operations at peak rate, in microseconds."""
    return LAUNCH_US + max(copy_us, compute_us)
