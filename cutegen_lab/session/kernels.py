"""Accepted kernels as ``.py`` files: a comment block that states what was proven, then the candidate's text."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.plain_text import one_line
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import Trial, WorkloadCheck
from cutegen_lab.exports.header import SOURCE, under
from cutegen_lab.session.specialised import Written

_CONFIG = "# cutegen config: "
_FOLDED = "# for this config only: "


def kernel_text(
    state: RunState, candidate_id: str, written: Written | None = None, further: Sequence[str] = ()
) -> str:  # fmt: skip
    """The candidate's text below a block of comments.

    The block holds the config as JSON, which :func:`read_kernel` reads, so that the file can be judged as it was
    accepted. ``written``: the specialised text to write instead, for this config only. ``further``: more
    lines of the block.
    """
    candidate = state.candidates[candidate_id]
    head = [f"# {line}" for line in (*claims(state, candidate_id), *map(one_line, further))]
    return written_text(head, written or Written(candidate.source, candidate.config))


def claims(state: RunState, candidate_id: str) -> tuple[str, ...]:
    """Lines that say what a candidate is and what was judged; of a run read from a file, that nothing was judged
    here."""
    word = f"read from {one_line(state.imported)}: the verdict and times below are claims of whoever wrote that file"
    lines = (
        f"{state.problem.name}: kernel {candidate_id} of run {state.run_id}, by cutegen-lab",
        *([word] if state.imported else []),
        f"workload: {state.problem.workload.describe()}",
        *_evidence(state.trials.get(candidate_id)),
    )
    return tuple(one_line(line) for line in lines)


def written_text(comments: Sequence[str], written: Written) -> str:
    """As :func:`with_header`; the comments also have the config that is folded into the text, if any."""
    if written.folded is None:
        return with_header(comments, written.source, written.config)
    folded = f"{_FOLDED}{json.dumps(dict(written.folded), sort_keys=True)}"
    return with_header([*comments, folded], written.source)


def with_header(comments: Sequence[str], source: str, config: Config | None = None) -> str:
    """``source`` under ``comments``, with what :func:`read_kernel` needs to recover both."""
    further = () if config is None else (f"{_CONFIG}{json.dumps(dict(config), sort_keys=True)}",)
    return under([line.removeprefix("# ") for line in comments], source, further)


def located(path: Path) -> str:
    """A kernel file's path, and the line at which its text begins: evidence counts lines from there."""
    comments, _ = _split(read_text_file(path))
    return f"{path} (its text begins at line {len(comments) + 2}; line numbers count from there)"


def is_unmodified(text: str) -> bool:
    """Whether :func:`with_header` wrote the file and nothing below its comments has changed."""
    comments, source = _split(text)
    return f"{SOURCE}{sha256(source)}" in comments


def read_kernel(text: str) -> tuple[str, Config]:
    """The candidate's text and the config in the file ({} without one).

    An unmodified exported file returns the exact text it was made from, which compiles to the same artifact; any other
    file is returned whole, so that line numbers are the file's. Raises InputError for a damaged config.
    """
    lines, source = _split(text)
    found = next((line.removeprefix(_CONFIG) for line in lines if line.startswith(_CONFIG)), None)
    if found is None:
        return (source if is_unmodified(text) else text), {}
    try:
        config = json.loads(found)
    except json.JSONDecodeError as error:
        raise InputError(f"the file's cutegen config is not JSON: {error}", "Correct or remove it.") from None
    if not isinstance(config, dict):
        raise InputError("the file's cutegen config is not an object", "Correct or remove that line.")
    return (source if is_unmodified(text) else text), config


def for_one_config(text: str) -> bool:
    """Whether the file was specialised for one config, without parameters to search."""
    return any(line.startswith(_FOLDED) for line in _split(text)[0])


def _split(text: str) -> tuple[list[str], str]:
    """The comments at the top, and the text after the blank line below them."""
    lines = list(takewhile(lambda line: line.startswith("#"), text.split("\n")))
    return lines, text[sum(len(line) + 1 for line in lines) + 1 :]


def read_text_file(path: Path) -> str:
    """Text of a file. Raises InputError if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text", "Give a .py kernel or a .json artifact.") from None


def accepted_path(workdir: Path, run_id: str, candidate_id: str) -> Path:
    """Path of an accepted kernel in the work directory."""
    return workdir / "kernels" / f"{run_id}-{candidate_id}.py"


def keep_accepted(workdir: Path, state: RunState) -> None:
    """Writes each accepted kernel to :func:`accepted_path`, unless the file exists. Raises StoreError."""
    for candidate_id in state.accepted:
        path = accepted_path(workdir, state.run_id, candidate_id)
        if not path.exists():
            write_atomically(path, kernel_text(state, candidate_id))


def write_atomically(path: Path, contents: str | bytes) -> None:
    """Writes a file atomically, text as UTF-8. Raises StoreError if it cannot be written."""
    data = contents.encode() if isinstance(contents, str) else contents
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", "Choose a writable place.") from error


def _evidence(trial: Trial | None) -> list[str]:
    if trial is None:
        return ["verdict: none, approved without evidence"]
    record = trial.provenance
    lines = [
        f"verdict: {trial.verdict.value} on {trial.device or 'no device'} ({one_line(trial.reason) or 'no reason'})"
    ]
    if trial.check and trial.check.checks:
        lines.append(f"checked: {_checked(trial.check.checks)}")
    worst = trial.check.worst() if trial.check else None
    if worst is not None:
        lines.append(f"error to float64: {worst.norm:.2e} (PyTorch at the same precision: {worst.torch_norm:.2e})")
    if trial.timing is not None:
        gap = f", {trial.sol_gap:.2f}x the speed of light" if trial.sol_gap else ""
        lines.append(f"time: {trial.timing.time_us:.1f} us {trial.timing.kind} on {one_line(trial.timing.device)}{gap}")
    versions: dict[str, Any] = dict(sorted(record.versions.items()))
    lines.append(f"made for {record.arch} with " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    return lines


def _checked(checks: Sequence[WorkloadCheck]) -> str:
    """How many draws of each workload passed."""
    made, passed = Counter(c.workload for c in checks), Counter(c.workload for c in checks if c.verdict.passed)
    return ", ".join(f"{one_line(name)} {passed[name]} of {count} draws" for name, count in made.items())
