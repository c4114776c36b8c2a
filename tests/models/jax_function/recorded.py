"""The answers of a process of JAX for the models of `subjects.py`, so that tests without jax have its programs.

Record it again, with an interpreter that has jax, flax and equinox, by

    ORDERPROOF_JAX_PYTHON=... python -m tests.models.jax_function.recorded
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.jax_function.load_function import jax_python, subject_of
from orderproof.models.jax_function.module import JaxModule
from orderproof.models.jax_function.process import JaxProcess
from orderproof.models.subject import Subject

FOLDER = Path(__file__).parent / "recorded"
SUBJECTS = Path(__file__).with_name("subjects.py")


def names() -> tuple[str, ...]:
    """The recorded models."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


class Recorder(JaxProcess):
    """A process that keeps its answers."""

    def __init__(self, python: str) -> None:
        super().__init__(python)
        self.answers: list[tuple[dict[str, Any], dict[str, Tensor], dict[str, Any], dict[str, Tensor]]] = []

    def ask(self, head: dict[str, Any], arrays: Mapping[str, Tensor] | None = None) -> Any:
        try:
            found = super().ask(head, arrays)
        except SubjectError as error:
            self.answers.append((head, dict(arrays or {}), {"error": str(error)}, {}))
            raise
        self.answers.append((head, dict(arrays or {}), *found))
        return found

    def save(self, name: str) -> None:
        stored: dict[str, Any] = {}
        entries = []
        for number, (head, given, answer, found) in enumerate(self.answers):
            stored |= {f"{number} {side} {key}": x.numpy() for side, part in (("given", given), ("found", found))
                       for key, x in part.items()}  # fmt: skip
            entries.append({"head": head, "answer": answer})
        text = json.dumps(entries, indent=None, separators=(",", ":")).replace(str(SUBJECTS.parent), "tests")
        FOLDER.joinpath(f"{name}.json").write_text(text.replace('{"head"', '\n{"head"') + "\n", encoding="utf-8")
        np.savez_compressed(FOLDER / f"{name}.npz", **stored)


class RecordedProcess:
    """Answers as a process of JAX did."""

    def __init__(self, name: str) -> None:
        self.spec, self.weights = f"subjects.py:{name}", list[Tensor]()
        text = FOLDER.joinpath(f"{name}.json").read_text(encoding="utf-8")
        self.entries = json.loads(text.replace('"tests/subjects.py"', json.dumps(str(SUBJECTS))))
        with np.load(FOLDER / f"{name}.npz") as stored:
            self.arrays = {key: torch.from_numpy(stored[key]) for key in stored.files}

    def ask(self, head: dict[str, Any], arrays: Mapping[str, Tensor] | None = None) -> Any:
        for number, entry in enumerate(self.entries):
            given = self._arrays(number, "given")
            if entry["head"] == head and given.keys() == (arrays or {}).keys():
                if all(x.shape == given[key].shape and torch.equal(x, given[key]) for key, x in (arrays or {}).items()):
                    if "error" in entry["answer"]:
                        raise SubjectError(entry["answer"]["error"])
                    return entry["answer"], self._arrays(number, "found")
        raise SubjectError(f"{self.spec}: this was not recorded")

    def _arrays(self, number: int, side: str) -> dict[str, Tensor]:
        start = f"{number} {side} "
        return {key.removeprefix(start): x for key, x in self.arrays.items() if key.startswith(start)}

    def call(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        return JaxProcess.call(self, inputs)  # type: ignore[arg-type]

    def __deepcopy__(self, memo: Any) -> RecordedProcess:
        return self


def recorded_subject(name: str) -> Subject:
    """The subject of a recorded model; its runs use operators of torch."""
    subject = subject_of(RecordedProcess(name), assume={"model_kind": "causal_lm"})  # type: ignore[arg-type]
    for part in subject.module.modules():
        if isinstance(part, JaxModule):
            part.calls_jax = False
    return subject


def recorded_names_in_source() -> tuple[str, ...]:
    """The names that `subjects.py` lists, which this Python may not be able to import."""
    tree = ast.parse(SUBJECTS.read_text(encoding="utf-8"))
    values = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "RECORDED"]
    return tuple(ast.literal_eval(values[0]))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    recorder = Recorder(jax_python())
    for each in recorded_names_in_source():
        recorder.load(f"{SUBJECTS}:{each}")
        recorder.answers.clear()
        subject_of(recorder, assume={"model_kind": "causal_lm"})
        recorder.save(each)
        print(each, len(recorder.answers))  # noqa: T201
