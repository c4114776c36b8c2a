"""The interface of an inference engine: it loads a checkpoint folder and returns logits.

An engine is one file of this folder that defines `ENGINE`, an instance of a subclass of `InferenceEngine`. It runs in a
process of its own. It imports its library in `load` only: `orderproof list engines` must not import it.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderproof.errors import OrderproofError, UsageError
from orderproof.optional_packages import install_command, missing_packages
from orderproof.ports.engine_side.serving import LoadedModel, Row, Scores

if TYPE_CHECKING:
    from orderproof.laws.ports.port_law import ModelKind
    from orderproof.ports.reference import Reference

__all__ = ["EngineError", "InferenceEngine", "LoadedModel", "Row", "Scores"]


class EngineError(OrderproofError):
    """An engine that is missing, cannot load a checkpoint, or returns something else than logits."""


@dataclass(frozen=True, kw_only=True)
class InferenceEngine(ABC):
    """Another implementation of the architectures of transformers."""

    name: str
    title: str  # of the library: "MLX (mlx-lm)"
    packages: tuple[str, ...] = ()  # that must be importable
    distribution: str = ""  # whose version is reported
    extra: str = ""  # of this package, which installs them
    abilities: frozenset[str] = frozenset({"prefill"})  # calls that it takes: the methods of `LoadedModel`
    encoder_abilities: frozenset[str] = frozenset()  # the same for encoders; empty if it returns no embeddings
    reads_checkpoint: bool = True  # False: it has weights of its own
    reads_config: bool = True  # False: it reads no config.json itself, so that its keys cannot be the cause
    note: str = ""  # on its installation or use, for `orderproof list engines`
    target: str = ""  # of NAME:TARGET
    needs_target: bool = False  # it is named as NAME:TARGET
    has_environment: bool = False  # it runs in another interpreter
    head_width: int = 0  # the least width of a head that it takes; 0: any

    @property
    def engines(self) -> tuple[InferenceEngine, ...]:
        """Itself, as a pair has two."""
        return (self,)

    def or_another(self) -> InferenceEngine:
        """The engine that runs if this one is not installed; itself if there is none."""
        return self

    def for_version(self, version: str) -> InferenceEngine:
        """The engine for the part of NAME@VERSION after the sign. Raises `UsageError`."""
        raise UsageError(f"expected engine {self.name} without a version; got {self.name}@{version}")

    def for_target(self, target: str) -> InferenceEngine:
        """The engine for the part of NAME:TARGET after the colon. Raises `UsageError`."""
        raise UsageError(f"expected engine {self.name} without a target; got {self.name}:{target}")

    def for_reference(self, reference: Reference) -> InferenceEngine:
        """The engine that is compared with a reference; itself if it reads its checkpoint. Raises `SubjectError`."""
        del reference
        return self

    def abilities_for(self, kind: ModelKind) -> frozenset[str]:
        """The calls that it takes for a kind of model."""
        return self.encoder_abilities if kind == "encoder" else self.abilities

    def prepare(self) -> None:  # noqa: B027 - most engines need nothing
        """Get what the package lacks, before the limits of time of an audit. Raises `EngineError`."""

    @abstractmethod
    def load(self, folder: Path) -> LoadedModel:
        """Load a checkpoint folder that transformers saved. Any exception is reported as text."""

    def load_encoder(self, folder: Path) -> LoadedModel:
        """The same for a folder of an encoder without a head; `prefill` and `batch` return embeddings of tokens."""
        raise NotImplementedError

    def open_process(self, request: Any) -> Any:
        """A process of its environment that loads a checkpoint, if it has one. Raises `EngineError`."""
        raise NotImplementedError

    def knows(self, model_type: str) -> bool:
        """True if the engine has an implementation of this architecture; may import the library."""
        del model_type
        return True

    def defaults(self, model_type: str) -> Mapping[str, Any]:
        """The values that the engine takes for keys that config.json lacks; may import the library."""
        del model_type
        return {}

    @property
    def is_installed(self) -> bool:
        """True if its packages can be imported."""
        return all(importlib.util.find_spec(package) is not None for package in self.packages)

    @property
    def version(self) -> str:
        """Name and version of the library."""
        try:
            return f"{self.distribution} {metadata.version(self.distribution)}" if self.distribution else self.name
        except metadata.PackageNotFoundError:
            return self.distribution

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions that a report states, by distribution; empty if it is not installed."""
        if not self.distribution or not self.is_installed:
            return {}
        return {self.distribution: metadata.version(self.distribution)}

    @property
    def import_seconds(self) -> float:
        """The processor time of the import of the library in a process of its own [s]; 0 if there is none yet."""
        return 0.0

    @property
    def missing(self) -> str:
        """The packages that are not installed, and the command that installs them."""
        return f"{' and '.join(missing_packages(*self.packages))} is not installed: {self.how_to_install}"

    @property
    def how_to_install(self) -> str:
        """The command that installs it."""
        return install_command(self.extra) if self.extra else ""
