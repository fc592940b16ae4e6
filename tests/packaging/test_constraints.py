"""``constraints.txt`` names everything that installing the project and its tests brings."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PROJECT = "cutegen-lab"


def test_all_that_is_installed_is_pinned_at_the_version_that_is_installed() -> None:
    pinned = {
        canonicalize_name(name): Version(version)
        for name, _, version in (line.partition("==") for line in CONSTRAINTS.read_text().splitlines())
    }
    installed = {name: Version(distribution(name).version) for name in brought(f"{PROJECT}[test]")}
    assert {"loky", "cloudpickle", "torch", "pytest"} <= set(installed)
    missing = [f"{name}=={version.public}" for name, version in installed.items() if name not in pinned]
    assert not missing, f"add to constraints.txt: {missing}"
    other = [
        f"{name}: {pinned[name]} pinned, {version}"
        for name, version in installed.items()
        if pinned[name].public != version.public
    ]
    assert not other, f"not what constraints.txt names is installed (`make clean install-test`): {other}"


def brought(text: str) -> set[str]:
    """Canonical names of the packages that a requirement brings on this machine, the project itself left out."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    left = [Requirement(text)]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        try:
            needed = [Requirement(each) for each in requires(name) or []]
        except PackageNotFoundError:  # a wheel that is only one of several
            continue
        if name != PROJECT:
            found.add(name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                left += [each for each in needed if each.marker is None or each.marker.evaluate({"extra": extra})]
    return found
