"""What an analyst may do about an error, as codes; and suggestions for misspelled words.

The front ends turn the codes into sentences (:mod:`cutegen_lab.views.hints`): options have other names on the command
line than in a notebook.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

OTHER_NAMES = {
    "swish": "silu", "hswish": "hardswish", "hsigmoid": "hardsigmoid", "lrelu": "leaky_relu", "logistic": "sigmoid",
    "expit": "sigmoid", "ln": "log", "lse": "logsumexp", "inv_sqrt": "rsqrt", "invsqrt": "rsqrt", "inv": "reciprocal",
    "average": "mean", "select": "where",
}  # fmt: skip
"""Other names of functions, with PyTorch's: their spelling is closer to that of another function, or to none."""


class Advice(StrEnum):
    """Next actions in words without option names, for errors shown outside a front end."""

    OTHER_PROVIDER = "Use another provider"
    LIFT_PIN = "Lift a pin and retry, branch from another candidate, or stop"
    OTHER_ARCH = "Use another arch"
    KNOWN_ARCH = "Use a known arch"
    KNOWN_GPU = "Use a known GPU"
    SPEC_PROVIDER = "Use a provider that writes specs"
    STRATEGY_PROVIDER = "Use a provider that asks a model, or search the template's configs"
    SET_KEY = "Set OPENAI_API_KEY, or use another provider"
    START_MANUAL = "Start a run whose provider is manual"
    OTHER_MODEL = "Choose another model"
    MORE_TOKENS = "Allow more tokens, or accept what there is"
    GIVE_PRICE = "Give the price of the model's tokens, or bound tokens"
    USE_EMULATOR = "Use the emulator, or check nvidia-smi and CUDA_VISIBLE_DEVICES"
    DOCTOR = "Ask cutegen's doctor what this machine has"
    WEAK_CAGE = "Run where the kernel has Landlock or namespaces, or allow a weak cage"
    UPGRADE = "Upgrade cutegen-lab, or use another work directory"
    WRITABLE_WORKDIR = "Choose a writable work directory"
    CHECK_DISK = "Check disk space and permissions, or choose another work directory"
    MAKE_ROOM = "Make room for it, or choose another work directory"
    FREE_SPACE = "Free some space, or choose another place by the work directory, CUTEGEN_CACHE or TMPDIR"
    MAKE_WRITABLE = "Make it writable, or choose another place by the work directory, CUTEGEN_CACHE or TMPDIR"
    LIST_RUNS = "See the list of runs"
    DECLARE_INPUTS = "Declare the inputs, or define inputs()"
    DECLARE_ON_LINE = "Declare the inputs on its line, or define inputs()"
    DROP_INPUTS = "Leave out the declared inputs"
    MAKE_TUNABLE = "Add a TUNABLE, or have the kernel made a template"
    SEE_EVIDENCE = "Judge the kernel to see the evidence"
    JUDGE_HERE = "Write a kernel of it to a file and judge that here"
    SEARCH_FIRST = "Search before you replay"
    NAME_CANDIDATE = "Name a candidate"
    OTHER_OUT = "Name another file"
    WITHOUT_VERIFYING = "Nothing was written; it can be written without judging it again"
    NAME_ENTRY = "Write a launch() that calls the kernel, in a file of its own, and give that first; or name the entry"
    DRAW_ONE = "Give one of a layout, an instruction (mma), a box (tma) or a tiled copy (copy)"
    LEAVE_OUT = "Leave out"
    WRITE_AS = "Write it as"
    DRAW_PART = "Draw a part of it: compose it with (64,64)"
    CHOOSE_PART = "Another part can be drawn: choose"
    GIVE_ACCESS = "Give an access: 4B, 8B or 16B"
    OTHER_THREADS = "Use fewer threads, or others: (1,32) goes along the columns"
    MANUAL_FOLDER = "Use another folder: manual:DIR"
    REPLAY_FILE = "Name the recorded conversation: replay:FILE"
    BENCH_RECORD = "Name a file that a benchmark wrote"


@dataclass(frozen=True)
class Hint:
    """The next action after an error."""

    code: Advice
    """What to do."""
    values: tuple[str, ...] = ()
    """Choices for the action, such as the archs that are possible or the known GPUs."""
    seen: str = ""
    """A word that may be one of ``values``, misspelled."""

    @property
    def question(self) -> str:
        """Question that suggests the most similar value, with a space at its end; empty if none is similar."""
        meant = did_you_mean(self.seen, self.values)
        return f"{meant} " if meant else ""

    def __str__(self) -> str:
        """One sentence without options."""
        return f"{self.question}{self.code.value}{': ' if self.values else ''}{', '.join(self.values)}."


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A question that names the one of ``known`` that ``word`` is another name of, else the most similar; empty if none
    is similar. ``cutoff`` (0 to 1): minimum similarity, as in :func:`difflib.get_close_matches`."""
    possible = list(known)
    same = OTHER_NAMES.get(word, "")
    near = [same] if same in possible else difflib.get_close_matches(word, possible, 1, cutoff)
    return f"Did you mean {near[0]!r}?" if near else ""
