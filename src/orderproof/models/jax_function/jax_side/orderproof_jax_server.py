"""The process of JAX: it loads a model, writes down its programs, and answers calls of it.

It imports nothing of orderproof. Run it as `python orderproof_jax_server.py SOCKET`. A request is a connection to
the socket: a line with two lengths, a JSON text and the bytes of its arrays; the answer has the same form. The process
ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import math
import os
import re
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

FOLDER = str(Path(__file__).parent)
LEAST = 2  # of an open size
# An audit calls a model with many shapes, a few times each.
COMPILES_FASTER = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def read_message(stream: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON text and the arrays of a message."""
    import ml_dtypes  # noqa: F401 - numpy knows bfloat16 by it
    import numpy as np

    size, _ = (int(x) for x in stream.readline().split())
    head = json.loads(stream.read(size))
    arrays = {}
    for name, dtype, shape in head.pop("arrays"):
        count = math.prod(shape) * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(stream.read(count), dtype=np.dtype(dtype)).reshape(shape)
    return head, arrays


def write_message(stream: Any, head: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a message."""
    import numpy as np

    plain = {name: np.asarray(x, order="C") for name, x in arrays.items()}
    described = [[name, str(x.dtype), list(x.shape)] for name, x in plain.items()]
    text = json.dumps({**head, "arrays": described}).encode()
    stream.write(b"%d %d\n" % (len(text), sum(x.nbytes for x in plain.values())) + text)
    for x in plain.values():
        stream.write(x.tobytes())
    stream.flush()


@functools.cache
def accepted_options() -> dict[str, Any] | None:
    """`COMPILES_FASTER`, or None where this JAX does not know it."""
    import jax

    try:
        jax.jit(lambda: 0, compiler_options=COMPILES_FASTER)()
    except Exception:  # noqa: BLE001 - another version has other options
        return None
    return COMPILES_FASTER


class ReadFiles:
    """The files that this process reads, since it listens to its own audit events."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and not int(arguments[2] or 0) & WRITES:
            self.names.add(os.path.abspath(arguments[0]))  # noqa: PTH100 - the model may leave the working folder

    def found(self) -> dict[str, Any]:
        """Those of the user, and those that name the version of each installed package."""
        known = (sys.prefix, sys.base_prefix, FOLDER, "/dev/", "/proc/", "/sys/")
        own = [_source(name) for name in sorted(self.names) if not name.startswith(known)]
        roots = dict.fromkeys(Path(each) for each in sys.path if each)
        versions = [str(file) for root in roots for file in sorted(root.glob("*.dist-info/METADATA"))]
        return {"own": own, "versions": versions}


def _source(name: str) -> str:
    """The file itself, or the source of compiled code."""
    with contextlib.suppress(ValueError, NotImplementedError):
        return importlib.util.source_from_cache(name) if name.endswith(".pyc") else name
    return name


class Model:
    """The model of the user, traced for shapes and called with arrays."""

    def __init__(self, spec: str) -> None:
        import jax
        from orderproof_jax_models import flat_inputs, load, path_name

        self.jax = jax
        self.callee = load(spec)
        self.inputs, self.function = flat_inputs(self.callee)
        leaves, self.tree = jax.tree_util.tree_flatten_with_path(self.callee.weights)
        self.weights = [(path_name(path), jax.numpy.asarray(leaf)) for path, leaf in leaves]
        self.jitted = jax.jit(self._flat, compiler_options=accepted_options())
        self.output_names: list[str] = []

    def _flat(self, weights: Any, *inputs: Any) -> list[Any]:
        from orderproof_jax_models import path_name

        found = self.function(self.tree.unflatten(weights), *inputs)
        entries, _ = self.jax.tree_util.tree_flatten_with_path(found)
        names = [path_name(path) or "output" for path, _ in entries]
        self.output_names = [f"output.{n}" if n.isdigit() else n for n in names]
        return [self.jax.numpy.asarray(x) for _, x in entries]

    def describe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its kind and origin, and its inputs and weights."""
        import numpy as np

        arrays = {f"weight {k}": np.asarray(x) for k, (_, x) in enumerate(self.weights)}
        arrays |= {f"input {k}": np.asarray(x) for k, (_, x) in enumerate(self.inputs)}
        head = {
            "kind": self.callee.kind,
            "version": self.jax.__version__,
            "weights": [name for name, _ in self.weights],
            "inputs": [name for name, _ in self.inputs],
        }
        return head, arrays

    def trace(self, shapes: list[list[Any]], limits: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The program for shapes; a size that is a text is open, and `limits` are what open sizes fulfil."""
        from jax import export
        from orderproof_jax_programs import Writer

        names = sorted({n for shape in shapes for n in shape if isinstance(n, str)})
        conditions = [f"{n} >= {LEAST}" for n in names] + limits
        sizes = dict(zip(names, export.symbolic_shape(", ".join(names), constraints=conditions), strict=True))
        examples = [x for _, x in self.inputs]
        avals = [
            self.jax.ShapeDtypeStruct(tuple(sizes.get(n, n) for n in shape), x.dtype)
            for shape, x in zip(shapes, examples, strict=True)
        ]
        closed = self.jax.make_jaxpr(self._flat)([x for _, x in self.weights], *avals)
        writer = Writer(closed)
        head = {"program": writer.program, "output_names": self.output_names, "shapes": shapes}
        return head, writer.constants

    def limit(self, shapes: list[list[Any]], name: str, most: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The largest size under a name, of those up to `most`, with which the model can be called; 0 without one."""
        sizes = {n: x.shape[d] for shape, (_, x) in zip(shapes, self.inputs, strict=True) for d, n in enumerate(shape)}
        fits = functools.partial(self._fits, shapes, sizes, name)
        low, high = sizes[name], sizes[name] * 2
        if not fits(low):
            return {"limit": 0}, {}
        while high < most and fits(high):
            low, high = high, high * 2
        if high >= most and fits(most):
            return {"limit": most}, {}
        high = min(high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return {"limit": low}, {}

    def _fits(self, shapes: list[list[Any]], sizes: dict[Any, int], name: str, number: int) -> bool:
        known = {**sizes, name: number}
        avals = [
            self.jax.ShapeDtypeStruct(tuple(known[n] for n in shape), x.dtype)
            for shape, (_, x) in zip(shapes, self.inputs, strict=True)
        ]
        try:
            self.jax.eval_shape(self._flat, [x for _, x in self.weights], *avals)
        except Exception:  # noqa: BLE001 - the code of the user: anything may come
            return False
        return True

    def call(self, arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outputs for inputs."""
        import numpy as np

        inputs = [arrays[f"input {k}"] for k in range(len(self.inputs))]
        found = self.jitted([x for _, x in self.weights], *inputs)
        return {"output_names": self.output_names}, {f"output {k}": np.asarray(x) for k, x in enumerate(found)}


def error_text(error: BaseException) -> str:
    """The first line of an error, with the last line of the user that it passed."""
    lines = [line for line in map(str.strip, COLOURS.sub("", str(error)).splitlines()) if line]
    wrapped = len(lines) > 1 and lines[0].startswith("Exception encountered when calling")  # as Keras does
    text = lines[wrapped] if lines else type(error).__name__
    kind = "" if type(error).__name__ in ("Unusable", "Untraceable") else f"{type(error).__name__}: "
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((FOLDER, "<")) and "site-packages" not in f.filename]
    own = [f for f in own if "/lib/python" not in f.filename]
    return f"{kind}{text}" + (f", {Path(own[-1].filename).name}:{own[-1].lineno}" if own else "")


def answer(model: Model, head: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer to a request."""
    if head["do"] == "describe":
        return model.describe()
    if head["do"] == "trace":
        return model.trace(head["shapes"], head["limits"])
    if head["do"] == "limit":
        return model.limit(head["shapes"], head["name"], head["most"])
    return model.call(arrays)


def serve(path: str) -> None:
    """Answer requests until standard input ends."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.path.append(FOLDER)
    files = ReadFiles()
    import jax  # so that a Python without it ends here

    try:
        jax.devices()
    except Exception:  # noqa: BLE001 - plugins of devices raise anything
        os.write(2, f"JAX finds no device of JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS')}; set it to cpu".encode())
        os._exit(1)  # a thread holds standard input, which `sys.exit` waits for

    accepted_options()
    model: Model | None = None
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(64)
    Path(f"{path}.new").rename(path)  # whoever sees it may connect
    while True:
        connection, _ = listener.accept()
        # who asked may be gone: closing the stream then sends what is left of the answer, and raises
        with contextlib.suppress(OSError), connection, connection.makefile("rwb") as stream:
            try:
                head, arrays = read_message(stream)
                if head["do"] == "load":
                    model = Model(head["spec"])
                    write_message(stream, {}, {})
                elif head["do"] == "files":
                    write_message(stream, files.found(), {})
                else:
                    assert model is not None
                    write_message(stream, *answer(model, head, arrays))
            except BaseException as error:  # noqa: BLE001 - the code of the user: anything may come
                write_message(stream, {"error": error_text(error)}, {})


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    sys.path.pop(0)
    serve(sys.argv[1])
