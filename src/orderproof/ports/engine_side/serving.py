"""Load checkpoints into an engine and answer calls: a line of JSON for each request, and files for arrays.

    python -I serving.py NAME_side.py       requests on standard input, answers on standard output

This file needs the standard library and numpy, and NAME_side.py also its engine: both run in an environment that has no
orderproof. The side defines `load(folder)`, which returns an object with some of the methods of `LoadedModel`, and may
define `knows(model_type)`, `defaults(model_type)` and `DISTRIBUTIONS`, whose versions are reported. One that returns
embeddings of encoders defines `load_encoder(folder)` too, and may define `knows_encoder(model_type)`.

The process imports the engine once. For each checkpoint it forks a child, so that a crash ends the calls of one
checkpoint, and leaves nothing behind. What the engine prints goes into a file, and not among the answers.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERRORS = "errors.txt"
GIB = 2**30
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
DONE = 17  # the exit code of a child that was asked to end: an engine that ends its process has another one
MAX_TEXT = 300  # characters of an error
PLAIN = (int, float, str, bool, type(None))
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Row = Sequence[int]  # token ids


@dataclass(frozen=True)
class Scores:
    """The scores of the tokens of one row, as an engine returns them."""

    values: NDArray[np.float32]  # [token, candidate]
    candidates: NDArray[np.int64] | None = None  # token ids [token, candidate]; None: all of the vocabulary, in order
    normalised: bool = False  # log-probabilities, and not logits
    among_candidates: bool = False  # the log-probabilities are normalised over the candidates alone


class LoadedModel:
    """A checkpoint that an engine has loaded; each method that is not overridden is an ability that it lacks.

    A side may return an array [token, vocabulary] in place of `Scores`: logits, or log-probabilities if it is
    `normalised`. Entries that a masked array hides are not compared. Of an encoder, scores are embeddings.
    """

    normalised = False

    def prefill(self, row: Row) -> Scores:
        """The scores of every token of a prompt."""
        raise NotImplementedError

    def chunks(self, row: Row, sizes: Sequence[int]) -> Scores:
        """The scores of every token, read in chunks of these sizes into one cache."""
        raise NotImplementedError

    def batch(self, rows: Sequence[Row]) -> list[Scores]:
        """The scores of the real tokens of each row, in one batch."""
        raise NotImplementedError

    def prefix(self, earlier: Row, row: Row) -> Scores:
        """The scores of a row that begins as an earlier one, whose cache is reused; of the tokens after that only."""
        raise NotImplementedError

    def cached_prompt(self, earlier: Row, row: Row) -> Scores:
        """The scores of every token of a row that begins as an earlier one, whose cache is kept."""
        raise NotImplementedError

    def preemption(self, rows: Sequence[Row], prompt: int) -> list[Scores]:
        """The scores of the tokens that are generated after the prompts of rows, in a cache too small for all rows."""
        raise NotImplementedError

    def pooled(self, rows: Sequence[Row]) -> list[Scores]:
        """The embedding [1, feature] of each row as a whole, of a batch of rows of different lengths."""
        raise NotImplementedError

    def greedy(self, row: Row, count: int) -> list[int]:
        """The token ids that greedy generation appends to a prompt."""
        raise NotImplementedError


Output = list[Scores] | list[int]  # of each row, or generated token ids
OwnErrors = tuple[type[BaseException], ...]


def load_checkpoint(engine: Any, request: Mapping[str, Any], own_errors: OwnErrors = ()) -> tuple[Any, dict[str, Any]]:
    """The loaded model, or None, and the first answer. Never raises; `own_errors` are written without their class."""
    head: dict[str, Any] = {"knows": True, "failure": "", "refused": False, "defaults": {}}
    folder, model_type = Path(request["folder"]), request["model_type"]
    of_kind = "_encoder" if request["kind"] == "encoder" else ""
    try:
        if model_type:  # of a checkpoint; a folder that the library exported says itself what it is
            head["knows"] = bool(getattr(engine, f"knows{of_kind}", _always)(model_type))
        if not head["knows"]:
            return None, head
        defaults = getattr(engine, "defaults", _no_defaults)(model_type) if model_type else {}
        head["defaults"] = {key: value for key, value in defaults.items() if isinstance(value, PLAIN)}
        return getattr(engine, f"load{of_kind}")(folder), head
    except BaseException as error:  # noqa: BLE001 - third-party code: it may raise anything, SystemExit too
        text = failure_text(error, own_errors).replace(str(folder), "the checkpoint")
        return None, {**head, "failure": text, "refused": not isinstance(error, own_errors)}


def _always(model_type: str) -> bool:
    del model_type
    return True


def _no_defaults(model_type: str) -> Mapping[str, Any]:
    del model_type
    return {}


def make_call(model: Any, call: Mapping[str, Any], own_errors: OwnErrors = ()) -> Output | str:
    """The output of a call, or why there is none. Never raises."""
    kind, rows = call["kind"], call["rows"]
    try:
        if kind == "greedy":
            return [int(token) for token in model.greedy(rows[0], call["count"])]
        if kind in ("batch", "preemption", "pooled"):
            sizes = (call["sizes"][0],) if kind == "preemption" else ()
            return [_scores(each, model) for each in getattr(model, kind)(rows, *sizes)]
        arguments = {"prefill": (rows[0],), "chunks": (rows[0], call["sizes"])}.get(kind, tuple(rows))
        return [_scores(getattr(model, kind)(*arguments), model)]
    except BaseException as error:  # noqa: BLE001 - third-party code: it may raise anything, SystemExit too
        return failure_text(error, own_errors)


def _scores(value: Any, model: Any) -> Scores:
    if isinstance(value, Scores):
        return value
    normalised, candidates = bool(getattr(model, "normalised", False)), None
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            candidates = np.where(np.ma.getmaskarray(value), -1, np.arange(value.shape[-1]))
        value = value.filled(0.0)
    return Scores(np.asarray(value, dtype=np.float32), candidates, normalised)


def failure_text(error: BaseException, own_errors: OwnErrors = ()) -> str:
    """The error that an engine raised, or the one that caused it, on one line without terminal colours."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, own_errors):
        return str(error)
    text = " ".join(_COLOUR.sub("", str(error)).split())
    if not text and (frames := traceback.extract_tb(error.__traceback__)):
        text = frames[-1].line or ""  # a bare assertion says nothing else
    if len(text) > MAX_TEXT:  # it may start with a printed module, and say what is wrong at its end
        text = f"{text[: MAX_TEXT // 2]} ... {text[-MAX_TEXT // 2 :]}"
    return f"raised {type(error).__name__}{': ' if text else ''}{text}"


def write_output(output: Output, place: Path, index: int) -> dict[str, Any]:
    """Write the arrays of one call; the part of its line of JSON that names them."""
    rows: list[Any] = []
    elements: Sequence[Scores | int] = output
    for number, row in enumerate(elements):
        if isinstance(row, int):
            rows.append(row)
            continue
        name = f"{index}-{number}"
        np.save(place / f"{name}.npy", np.asarray(row.values, dtype=np.float32), allow_pickle=False)
        if row.candidates is not None:
            np.save(place / f"{name}-ids.npy", np.asarray(row.candidates, dtype=np.int64), allow_pickle=False)
        rows.append(
            {
                "name": name, "normalised": row.normalised, "partial": row.candidates is not None,
                "among_candidates": row.among_candidates,
            }
        )  # fmt: skip
    return {"rows": rows}


# ------------------------------------------------------------ lines


def read_line(file: int) -> dict[str, Any] | None:
    """The next request; None at the end. It takes no byte of the one after it, which another process may read."""
    data = bytearray()
    while not data.endswith(b"\n"):
        more = os.read(file, 1)
        if not more:
            return None
        data += more
    return dict(json.loads(data))


def write_line(file: int, line: Mapping[str, Any]) -> None:
    """Write one answer."""
    data = json.dumps(line).encode() + b"\n"
    while data:
        data = data[os.write(file, data) :]


def serve_checkpoint(
    engine: Any, request: Mapping[str, Any], requests: int, answers: int, own_errors: OwnErrors = ()
) -> None:
    """Load the checkpoint of a request, and answer calls until there are no more."""
    place, session = Path(request["place"]), {"session": request["session"]}
    keep_messages(place)
    use_temporary_folder(place)
    limit_memory(request["memory_gib"])
    model, head = load_checkpoint(engine, request, own_errors)
    write_line(answers, {**head, **session, "seconds": used_seconds()})
    index = 0
    while model is not None and (call := read_line(requests)) and "kind" in call:
        output = make_call(model, call, own_errors)
        rows = {"failure": output} if isinstance(output, str) else {"failure": "", **write_output(output, place, index)}
        write_line(answers, {**rows, **session, "seconds": used_seconds()})
        index += 1


def used_seconds() -> float:
    """The processor time of this process and of those that it waited for [s]."""
    return sum(os.times()[:4])


def keep_messages(place: Path) -> None:
    """Write what libraries print into a file: the last words of one that aborts."""
    file = os.open(place / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def use_temporary_folder(place: Path) -> None:
    """Make temporary files here: the parent removes the folder, however this process ends."""
    folder = place / "temporary"
    folder.mkdir(exist_ok=True)
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)


def limit_memory(gib: float) -> None:
    """Limit the address space, and write no core files."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # a lower limit is set already, or there are none
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (int(gib * GIB), int(gib * GIB)))


# ------------------------------------------------------------ the program


def main(side: str) -> None:
    """Answer requests on standard input; standard output belongs to the answers alone."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    try:
        engine = import_side(Path(side))
    except BaseException as error:  # noqa: BLE001 - third-party code: it may raise anything, SystemExit too
        write_line(answers, {"failure": failure_text(error)})
        return
    found = versions(getattr(engine, "DISTRIBUTIONS", ()))
    write_line(answers, {"failure": "", "versions": found, "seconds": used_seconds()})
    while (request := read_line(requests)) is not None:
        if "folder" not in request:
            continue
        if not sys.platform.startswith("linux"):  # where libraries do not survive a fork
            serve_checkpoint(engine, request, requests, answers)
            continue
        library, parent = ctypes.CDLL(None), os.getpid()
        if (child := os.fork()) == 0:
            try:
                library.prctl(DIE_WITH_PARENT, signal.SIGKILL)
                if os.getppid() == parent:
                    serve_checkpoint(engine, request, requests, answers)
            finally:
                os._exit(DONE)
        _, status = os.waitpid(child, 0)
        if not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == DONE):
            write_line(answers, {"died": status, "session": request["session"]})


def import_side(file: Path) -> Any:
    """The module of a side; its file may have the name of the engine that it imports."""
    spec = importlib.util.spec_from_file_location(f"orderproof_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"no Python file {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def versions(distributions: Sequence[str]) -> dict[str, str]:
    """The versions of those that are installed."""
    found = {}
    for name in distributions:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


if __name__ == "__main__":
    main(sys.argv[1])
