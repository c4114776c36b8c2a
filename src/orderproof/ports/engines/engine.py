"""The interface of an inference engine: it loads a checkpoint folder and returns logits.

An engine is one file of this folder that defines `ENGINE`, an instance of a subclass of `InferenceEngine`. It runs in a
process of its own. It imports its library in `load` only: `orderproof list engines` must not import it.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderproof.errors import OrderproofError, UsageError
from orderproof.optional_packages import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row = Sequence[int]  # token ids


class EngineError(OrderproofError):
    """An engine that is missing, cannot load a checkpoint, or returns something else than logits."""


@dataclass(frozen=True)
class Scores:
    """The scores of the tokens of one row, as an engine returns them."""

    values: NDArray[np.float32]  # [token, candidate]
    candidates: NDArray[np.int64] | None = None  # token ids [token, candidate]; None: all of the vocabulary, in order
    normalised: bool = False  # log-probabilities, and not logits
    among_candidates: bool = False  # the log-probabilities are normalised over the candidates alone


class LoadedModel:
    """A checkpoint that an engine has loaded; each method that is not overridden is an ability that it lacks."""

    def prefill(self, row: Row) -> Scores:
        """The scores of every token of a prompt."""
        raise NotImplementedError

    def chunks(self, row: Row, sizes: Sequence[int]) -> Scores:
        """The scores of every token, read in chunks of these sizes into one cache."""
        raise NotImplementedError

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        """The scores of the real tokens of each row, in one batch."""
        raise NotImplementedError

    def greedy(self, row: Row, count: int) -> list[int]:
        """The token ids that greedy generation appends to a prompt."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class InferenceEngine(ABC):
    """Another implementation of the architectures of transformers."""

    name: str
    title: str  # of the library: "MLX (mlx-lm)"
    packages: tuple[str, ...] = ()  # that must be importable
    distribution: str = ""  # whose version is reported
    extra: str = ""  # of this package, which installs them
    abilities: frozenset[str] = frozenset({"prefill"})  # calls that it takes: the methods of `LoadedModel`
    reads_config: bool = True  # False: it reads no config.json itself, so that its keys cannot be the cause
    note: str = ""  # on its installation or use, for `orderproof list engines`
    target: str = ""  # of NAME:TARGET
    needs_target: bool = False  # it is named as NAME:TARGET

    def for_target(self, target: str) -> InferenceEngine:
        """The engine for the part of NAME:TARGET after the colon. Raises `UsageError`."""
        raise UsageError(f"expected engine {self.name} without a target; got {self.name}:{target}")

    def prepare(self) -> None:  # noqa: B027 - most engines need nothing
        """Get what the package lacks, before the limits of time of an audit. Raises `EngineError`."""

    @abstractmethod
    def load(self, folder: Path) -> LoadedModel:
        """Load a checkpoint folder that transformers saved. Any exception is reported as text."""

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
    def how_to_install(self) -> str:
        """The command that installs it."""
        return install_command(self.extra) if self.extra else ""
