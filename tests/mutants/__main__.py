"""``python -m tests.mutants [NAME or AREA …] [--json FILE]``: exit status 0 only if a test catches every fault."""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.mutants.planting import Outcome, copied, planted, tried

TREE = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults, or areas: templates, emulator, judge")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--near", action="store_true", help="only tests of the fault's own area: minutes, not hours")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found, one object a line")
    parser.add_argument("--tree", type=Path, default=TREE, help="whose product and tests (default: this one's)")
    given = parser.parse_args()
    faults = planted(given.names)
    if given.list:
        for fault in faults:
            print(f"{fault.area:10} {fault.name}: {fault.why}")
        return 0
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copied(given.tree, Path(folder))
        for number, fault in enumerate(faults, 1):
            print(f"[{number}/{len(faults)}] {fault.name}: {fault.why}", flush=True)
            found.append(tried(fault, Path(folder), given.near))
            print(f"    {found[-1].seconds:.0f} s: {found[-1].caught_by or 'NOT CAUGHT'}", flush=True)
            if given.json:
                with given.json.open("a") as file:
                    file.write(json.dumps(asdict(found[-1])) + "\n")
    missed = [outcome.name for outcome in found if not outcome.caught_by]
    print(f"{len(found)} faults: {len(found) - len(missed)} caught" + (f", not {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
