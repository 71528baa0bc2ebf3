"""ServedModel: one model in use: its engine, of the float file or the promoted artefact, changed while frames flow."""

from __future__ import annotations

import logging
from pathlib import Path

from edge_agent.artefacts import Artefact, Artefacts, ArtefactUnfit, ArtefactUnusable, Binding
from edge_agent.backends.base import Backend, Engine, Profile
from edge_agent.backends.swap import SwapEngine
from edge_agent.errors import ConfigError, EngineError, ModelError

log = logging.getLogger(__name__)


class ServedModel:
    """Serves the promoted artefact where it holds for `binding`, else the float file. One thread owns it, the engines'.

    `engine` stays the same all along. `artefact`: the id of the one in use, None for the float file. `note`: why a
    promoted one is not in use that was made for something else. `fault`: what keeps a promoted one, or the float file
    after a rollback, from being used; both are None where all is as it should be.
    """

    def __init__(
        self,
        backend: Backend,
        binding: Binding,
        onnx_path: Path,
        profiles: tuple[Profile, ...],
        artefacts: Artefacts | None,
    ) -> None:
        """Loads the engine; without `artefacts` it is the float file's. Raises what loading that one raises."""
        self.binding = binding
        self.onnx_path = onnx_path
        self.profiles = profiles
        self.note: str | None = None
        self.fault: str | None = None
        self._backend = backend
        self._artefacts = artefacts
        self._seen: str | None = None  # the artefact that promoted.json named, whether it serves or not
        self._mark = None if artefacts is None else artefacts.mark(None)
        self._serving: Artefact | None = None
        self.engine = SwapEngine(binding.model, self._first())

    @property
    def artefact(self) -> str | None:
        """The id of the artefact in use; may be asked for from any thread."""
        serving = self._serving
        return None if serving is None else serving.id

    @property
    def file(self) -> Path:
        """The model file in use: the artefact's, else the float one."""
        serving = self._serving
        return self.onnx_path if serving is None else serving.onnx

    def attend(self) -> None:
        """Puts to use what was promoted or rolled back meanwhile; for between two frames.

        Loading takes as long as at start-up. What cannot be loaded is a `fault`, and what ran goes on. Raises what
        loading raises where nothing is left to go on with.
        """
        if self._artefacts is None or self._artefacts.mark(self._seen) == self._mark:
            return
        wanted, serving = self._look(self._artefacts), self._serving
        if self.fault is not None or (wanted and wanted.id) == self.artefact:
            return
        try:
            self.engine.swap(lambda: self._load(wanted), lambda: self._load(serving))
        except ModelError as exc:
            self._fail(str(exc))
            return
        self._serving = wanted
        log.warning("%s: reading on with %s (%s)", self.binding.model, self.engine.fingerprint, _named(wanted))

    def _first(self) -> Engine:
        wanted = None if self._artefacts is None else self._look(self._artefacts)
        if wanted is not None:
            try:
                engine = self._load(wanted)
            except (ConfigError, EngineError) as exc:
                self._fail(str(exc))
            else:
                self._serving = wanted
                return engine
        return self._load(None)

    def _look(self, artefacts: Artefacts) -> Artefact | None:
        """The artefact to use, None for the float file; what stands in the way is in `note` and `fault`, and logged."""
        self.note = self.fault = None
        promoted_mark = artefacts.mark(None)
        try:
            self._seen = None
            self._seen = artefacts.promotion().active
            return artefacts.active(self.binding)
        except ArtefactUnfit as exc:
            self.note = f"{exc}; it runs in float; to earn INT8 anew run: edge-agent calibrate {self.binding.model}"
            log.warning("%s", self.note)
        except ArtefactUnusable as exc:
            self._fail(str(exc))
        finally:
            # the first as it was before anything was read: a change that came between is then met the next time
            self._mark = (*promoted_mark, *artefacts.mark(self._seen)[1:])
        return None

    def _load(self, artefact: Artefact | None) -> Engine:
        if artefact is None:
            return self._backend.load(self.onnx_path, self.profiles)
        return self._backend.load(artefact.onnx, self.profiles, self.onnx_path)

    def _fail(self, why: str) -> None:
        self.fault = f"{why}; going on without it; mend it, or run: edge-agent rollback {self.binding.model}"
        log.warning("%s", self.fault)


def _named(artefact: Artefact | None) -> str:
    return "the float model" if artefact is None else f"artefact {artefact.id}"
