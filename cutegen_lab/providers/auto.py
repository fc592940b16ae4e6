"""The strategy "auto": templates while they serve, since they cost no tokens, and then a model."""

from __future__ import annotations

from dataclasses import replace

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import NotCovered, ProviderError, ProviderExhausted
from cutegen_lab.core.protocols import Cancel, GenerateRequest, Provider, Say


class AutoProvider:
    """A :class:`~cutegen_lab.core.protocols.Provider`: asks ``templates`` for a first kernel, and for refinements of
    their kernels until none is predicted to gain; everything else goes to ``model``.

    A request with an analyst's reason goes to ``model``, and so does one for a spec. Proposals of ``templates`` say so
    (:attr:`Proposal.provider`). Raises what ``model`` raises.
    """

    def __init__(self, templates: Provider, model: Provider) -> None:
        self._templates, self._model = templates, model
        self._at_the_floor: set[str] = set()  # candidates of the templates that they do not refine any further
        self._covered = True  # until the templates say that they do not cover the problem
        self.name = model.name

    @property
    def streamed(self) -> int:
        """Tokens received of the model's current answer."""
        return int(getattr(self._model, "streamed", 0))

    def propose(self, request: GenerateRequest, say: Say, cancel: Cancel) -> Proposal:
        if self._covered and self._serves(request):
            try:
                found = self._templates.propose(replace(request, wanted=False), say, cancel)
                return replace(found, provider=self._templates.name)
            except ProviderError as error:
                self._covered = not isinstance(error, NotCovered)
                if isinstance(error, ProviderExhausted) and request.parent is not None:
                    self._at_the_floor.add(request.parent.candidate.id)
                say(f"{error.message}; asking the model")
        return self._model.propose(request, say, cancel)

    def _serves(self, request: GenerateRequest) -> bool:
        parent = request.parent
        if request.kind == "fix" or request.feedback or request.language == "spec":
            return False
        if parent is None:
            return True
        return parent.candidate.provider == self._templates.name and parent.candidate.id not in self._at_the_floor
