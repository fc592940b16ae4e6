"""The next action after an error, in the words of the front end where the user is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.hints import Advice, Hint, did_you_mean
from cutegen_lab.core.run import RunState


@dataclass(frozen=True)
class Spelling:
    """How a front end writes the options and commands that hints name."""

    provider: str = "--provider"
    """Option with the provider."""
    arch: str = "--arch"
    """Option with the architecture."""
    gpu: str = "--gpu"
    """Option with the GPU."""
    device: str = "--device"
    """Option with the device."""
    model: str = "--model"
    """Option with the model."""
    workdir: str = "--workdir"
    """Option with the work directory."""
    inputs: str = "--inputs"
    """Option with the inputs."""
    refactor: str = "--refactor"
    """Option that makes a template of a kernel."""
    tokens: str = "--max-tokens"
    """Option that bounds tokens."""
    price: str = "--price"
    """Option with the price of tokens."""
    replay: str = "--simulate"
    """Option that replays a search."""
    out: str = "by --out"
    """How another file is named."""
    candidate: str = "--candidate {}"
    """How a candidate is named."""
    no_verify: str = "--no-verify"
    """Option that leaves out judging a kernel again."""
    runs: str = "`cutegen runs list`"
    """Command that lists runs."""
    command: str = "`cutegen {}`"
    """A command of the command line."""
    weak_cage: str = "set CUTEGEN_ALLOW_WEAK_CAGE=1 or say --allow-weak-cage"
    """How a weak cage is allowed."""


COMMAND_LINE = Spelling()
NOTEBOOK = Spelling(
    tokens="--budget",
    replay="--replay",
    out="as the path",
    candidate='`candidate_id="{}"`',
    no_verify="`verify=False`",
    runs="`%cutegen runs`",
    command="`!cutegen {}`",
    weak_cage="set CUTEGEN_ALLOW_WEAK_CAGE=1 before the notebook's kernel starts",
)

_PROVIDERS = "{provider} openai (a model writes the kernel), manual (paste one) or replay:FILE."
_TEXTS: Mapping[Advice, str] = {
    Advice.OTHER_PROVIDER: f"Try {_PROVIDERS}",
    Advice.OTHER_ARCH: f"Try {{arch}} {{first}}, or else {_PROVIDERS}",
    Advice.KNOWN_ARCH: "Use {arch} {values}.",
    Advice.KNOWN_GPU: "Use {gpu} {values}.",
    Advice.STRATEGY_PROVIDER: (
        "Use {provider} openai, manual:DIR or replay:FILE; `cutegen tune` searches a template's configs."
    ),
    Advice.SPEC_PROVIDER: "Use {provider} openai or manual:DIR.",
    Advice.SET_KEY: "Set OPENAI_API_KEY, or use {provider} templates or manual.",
    Advice.START_MANUAL: "Start a run with {provider} manual.",
    Advice.OTHER_MODEL: "Choose another with {model}.",
    Advice.MORE_TOKENS: "Raise {tokens}, or accept a kernel found so far.",
    Advice.GIVE_PRICE: (
        "Give {price} 1.25/10 (dollars for a million tokens sent and received), or bound tokens with {tokens}."
    ),
    Advice.USE_EMULATOR: "Use {device} emulator, or check nvidia-smi and CUDA_VISIBLE_DEVICES.",
    Advice.DOCTOR: "{doctor} says what this machine has.",
    Advice.WEAK_CAGE: (
        "Run where the kernel has Landlock (Linux 5.13 or newer with landlock in /sys/kernel/security/lsm; in a "
        "container, a runtime whose seccomp profile allows it, such as Docker 23 or newer) or lets users "
        "create namespaces. If candidates may run with all of your permissions, {weak_cage}."
    ),
    Advice.UPGRADE: "Upgrade cutegen-lab, or use another {workdir}.",
    Advice.WRITABLE_WORKDIR: "Choose a writable {workdir}.",
    Advice.CHECK_DISK: "Check disk space and permissions, or choose another {workdir}.",
    Advice.MAKE_ROOM: "Make room for it, or choose another {workdir}.",
    Advice.FREE_SPACE: "Free some space, or choose another place with {workdir}, CUTEGEN_CACHE or TMPDIR.",
    Advice.MAKE_WRITABLE: "Make it writable, or choose another place with {workdir}, CUTEGEN_CACHE or TMPDIR.",
    Advice.LIST_RUNS: "{runs} lists the runs.",
    Advice.LIFT_PIN: "Lift a pin and retry, branch from another candidate, or stop.",
    Advice.DECLARE_ON_LINE: "Write `{first}`, or give {inputs}, or define inputs().",
    Advice.DECLARE_INPUTS: 'Give {inputs} "x: bf16[4096,8192]" or define inputs().',
    Advice.DROP_INPUTS: "Leave out {inputs}.",
    Advice.MAKE_TUNABLE: (
        'Add TUNABLE = {{"threads": (64, 128, 256)}} at the top level and the keyword threads: cutlass.Constexpr = 128 '
        "to launch(), and use it in place of the number; {refactor} does this for you."
    ),
    Advice.SEE_EVIDENCE: "{judge} shows the evidence.",
    Advice.JUDGE_HERE: "To judge it here, export a kernel of it: {judge}.",
    Advice.SEARCH_FIRST: "Run the same command without {replay} first.",
    Advice.NAME_CANDIDATE: "Candidates: {listed}. Name one: {named}.",
    Advice.OTHER_OUT: "Name another file {out}.",
    Advice.WITHOUT_VERIFYING: "Nothing was written. To write it as it is, use {no_verify}.",
    Advice.NAME_ENTRY: (
        "Write a launch() that calls the kernel, in a file of its own, and give that first; or name one with --entry."
    ),
    Advice.DRAW_ONE: (
        "Give one of a layout, --mma, --tma and --copy. A layout is written as CuTe prints it: ((2,4),8):((1,16),2)."
    ),
    Advice.LEAVE_OUT: "Leave out {option}.",
    Advice.WRITE_AS: "Write it as {option}.",
    Advice.DRAW_PART: "Draw a part of it: --compose '(64,64)'.",
    Advice.CHOOSE_PART: "{option} A:B chooses another part.",
    Advice.GIVE_ACCESS: "Add --access 16B.",
    Advice.OTHER_THREADS: "Use fewer threads, or another layout: --threads (1,32) goes along the columns.",
    Advice.MANUAL_FOLDER: "Use {provider} manual:DIR.",
    Advice.REPLAY_FILE: "Use {provider} replay:FILE.",
    Advice.BENCH_RECORD: "{bench} writes such a file.",
}


def spelled(hint: Hint, front: Spelling) -> str:
    """The sentence that tells a user of ``front`` what to do."""
    *others, last = hint.values or ("",)
    commands = {name: front.command.format(name) for name in ("doctor", "judge")}
    commands["bench"] = front.command.format("bench GPU --out FILE.json")
    first = (*others, last)[0]
    # Both front ends spell the options of pictures like this.
    named, option = front.candidate.format(first), f"--{first}"
    values = f"with one of: {', '.join(hint.values)}" if others else last
    return hint.question + _TEXTS[hint.code].format(
        values=values, listed=", ".join(hint.values), named=named, option=option, first=first, **commands,
        **asdict(front),
    )  # fmt: skip


def advised(error: CutegenError, front: Spelling) -> CutegenError:
    """``error``, with its next action in the words of ``front``."""
    if error.hint is not None:
        error.advise(spelled(error.hint, front))
    return error


def with_hint(reason: str, hint: Hint | None, front: Spelling) -> str:
    """A reason from a run's events, followed by its next action."""
    return reason if hint is None else f"{reason}. {spelled(hint, front)}"


def note_of(state: RunState, front: Spelling) -> str:
    """Why a run waits or ended, and what to do about it; empty if that is obvious."""
    return with_hint(state.problem_note, state.problem_hint, front)


_UNKNOWN = re.compile(r"unrecognized arguments: (.*)")
_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


def misspelt_argument(message: str, options: Iterable[str]) -> str:
    """Which option or choice was meant, for a message of argparse; empty if it is about something else. ``options``:
    the known options."""
    if unknown := _UNKNOWN.search(message):
        word = next((word for word in unknown[1].split() if word.startswith("-")), "")
        return did_you_mean(word.partition("=")[0], options)
    if choice := _CHOICE.search(message):
        return did_you_mean(choice[1], re.findall(r"[\w:.-]+", choice[2]))
    return ""
