"""The process of JAX that holds the model of a subject: it traces programs and answers calls.

The process imports jax and nothing of this package; what it is asked and what it answers is JSON and plain arrays. Each
request is a connection of its own, so that forked children of an audit may ask too.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import SubjectError, UsageError
from orderproof.forked_process import signal_name

SERVER = Path(__file__).parent / "jax_side" / "orderproof_jax_server.py"
SECONDS_TO_START = 120.0
SECONDS_TO_ANSWER = 300.0  # the first call of a large model compiles it
SECONDS_TO_END = 2.0  # until the end of a process that closed its socket is known
POLL = 0.02  # [s]
NEEDS_JAX = (
    "a model of JAX needs Python with jax: pip install 'orderproof[jax]', or name the Python of another environment "
    "with --jax-python or ORDERPROOF_JAX_PYTHON"
)
DTYPES = {
    "float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64, "uint8": torch.uint8,
    "uint16": torch.uint16, "uint32": torch.uint32, "uint64": torch.uint64, "bool": torch.bool,
    "complex64": torch.complex64,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

Head = dict[str, Any]
Arrays = dict[str, Tensor]


class JaxProcess:
    """A running process of JAX, which holds one model after it is loaded.

    Args:
        python: The interpreter that has jax.

    Raises:
        UsageError: The interpreter has no jax, or does not start.

    """

    def __init__(self, python: str) -> None:
        self.python, self.spec, self.owner = python, "", os.getpid()
        self.weights: list[Tensor] = []  # those of the model, as it has them
        folder = tempfile.mkdtemp(prefix="jax-")
        self.address, self.log = f"{folder}/socket", Path(folder, "log")
        environment = {"JAX_PLATFORMS": "cpu", **os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}
        try:
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    [python, str(SERVER), self.address], stdin=subprocess.PIPE, stdout=log, stderr=log,
                    env=environment,
                )  # fmt: skip
        except OSError as error:
            shutil.rmtree(folder)
            raise UsageError(f"{python} cannot be run ({error.strerror}); {NEEDS_JAX}") from error
        self.close = weakref.finalize(self, _end, os.getpid(), self._process, folder)
        self._wait()

    def _wait(self) -> None:
        """Wait until the process listens."""
        end = time.monotonic() + SECONDS_TO_START
        while not Path(self.address).exists():
            if self._process.poll() is not None:
                raise UsageError(f"{self.python}: {self._last_line()}")
            if time.monotonic() > end:
                self._process.kill()
                raise UsageError(f"{self.python}: importing jax took more than {SECONDS_TO_START:.0f} s")
            time.sleep(POLL)

    def _last_line(self) -> str:
        lines = [x.strip() for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
        if any("No module named 'jax" in line for line in lines):
            return f"it has no jax; {NEEDS_JAX}"
        return f"the process of JAX ended: {lines[-1] if lines else 'it wrote no message'}"

    @property
    def is_alive(self) -> bool:
        """True while it runs; for the process that started it."""
        return self._process.poll() is None

    def _end_in_words(self) -> str:
        """How it ended: only the process that started it knows that."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(SECONDS_TO_END) if os.getpid() == self.owner else 0
            if status < 0:
                return f"was ended by {signal_name(-status)}"
            if status:
                return f"ended with exit code {status}"
        return "has ended"

    def load(self, spec: str) -> None:
        """Load `file.py:name` or `package.module:name`, in place of an earlier model. Raises `SubjectError`."""
        self.spec = spec
        self.ask({"do": "load", "spec": spec})

    def announce_files(self) -> None:
        """Report the files that the process read, and the versions of its packages, as read by this process.

        A kept report is given again only while they stay.
        """
        found, _ = self.ask({"do": "files"})
        for name in (*found["own"], *found["versions"]):
            sys.audit("open", name, "r", os.O_RDONLY)

    def ask(self, head: Head, arrays: Mapping[str, Tensor] | None = None) -> tuple[Head, Arrays]:
        """The answer to a request. Raises `SubjectError` with the error of JAX, or if the process does not answer."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(SECONDS_TO_ANSWER)
        try:
            with connection:
                connection.connect(self.address)
                with connection.makefile("rwb") as stream:
                    write_message(stream, head, arrays or {})
                    found = read_message(stream)
        except TimeoutError as error:
            raise SubjectError(
                f"{self.spec}: JAX gave no answer to {head['do']!r} in {SECONDS_TO_ANSWER:.0f} s"
            ) from error
        except (OSError, ValueError) as error:
            raise SubjectError(
                f"{self.spec}: the process of JAX {self._end_in_words()}; audit the model again"
            ) from error
        if "error" in found[0]:
            raise SubjectError(f"{self.spec}: {found[0]['error']}")
        return found

    def call(self, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        """The outputs that JAX computes for inputs, by the names of the outputs. Raises `SubjectError`."""
        given = {f"input {k}": x.detach().contiguous() for k, x in enumerate(inputs)}
        head, arrays = self.ask({"do": "call"}, given)
        return {name: arrays[f"output {k}"] for k, name in enumerate(head["output_names"])}

    def __deepcopy__(self, memo: Any) -> JaxProcess:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a process of JAX cannot be stored")


def _import_path() -> list[str]:
    """The folders that the user added; the packages of this environment do not fit another interpreter."""
    return [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), str(Path.cwd())]


def _end(owner: int, process: subprocess.Popen[bytes], folder: str) -> None:
    if os.getpid() != owner:
        return  # a forked child: the process is not its own
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------- messages


def write_message(stream: Any, head: Head, arrays: Mapping[str, Tensor]) -> None:
    """Write a line with two lengths, a JSON text and the bytes of arrays."""
    plain = {name: x.reshape(x.shape).contiguous() for name, x in arrays.items()}
    text = json.dumps({**head, "arrays": [[n, _NAMES[x.dtype], list(x.shape)] for n, x in plain.items()]}).encode()
    raw = b"".join(bytes(x.view(-1).view(torch.uint8).numpy()) if x.numel() else b"" for x in plain.values())
    stream.write(b"%d %d\n" % (len(text), len(raw)) + text + raw)
    stream.flush()


def read_message(stream: Any) -> tuple[Head, Arrays]:
    """The JSON text and the arrays of a message. Raises `ValueError` for a stream that ends early."""
    size, _ = (int(x) for x in stream.readline().split())
    head = json.loads(stream.read(size))
    return head, {name: read_array(stream, dtype, shape) for name, dtype, shape in head.pop("arrays")}


def read_array(stream: Any, dtype: str, shape: Sequence[int]) -> Tensor:
    """An array that follows in a stream. Raises `ValueError` if it ends early."""
    if dtype not in DTYPES:
        raise SubjectError(f"an array of JAX has numbers of type {dtype}, which is not supported")
    kind = DTYPES[dtype]
    count = math.prod(shape) * kind.itemsize
    raw = stream.read(count)
    if len(raw) != count:
        raise ValueError("the message ended early")
    return torch.frombuffer(bytearray(raw), dtype=kind).reshape(tuple(shape)) if raw else torch.empty(shape, dtype=kind)
