"""The files that a process and its forked children read, and the variables of the environment that a model asks for.

Python reports each file that it opens to an audit hook, and the reader of safetensors, which opens files by itself,
reports them too. Files that other libraries in C open by themselves are not seen. The names are collected in a file
without a name, to which forked processes add.
"""

from __future__ import annotations

import fcntl
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_OF_THE_MAPPING = frozenset({os.getenv.__code__.co_filename, Mapping.get.__code__.co_filename})
_DEVICES = ("/dev/", "/proc/", "/sys/")
_listening: list[int] = []  # the file that collects names; a hook cannot be removed
_hooked = False


class ReadFiles:
    """The files that were read since the beginning of a block."""

    def __init__(self, collected: int) -> None:
        self._collected = collected

    def settings(self) -> set[str]:
        """The variables of the environment that code outside of installed packages asked for."""
        return self._collected_names("e")

    def paths(self) -> set[Path]:
        """Those that are read and not written, and the files of imported modules; none of an installed package."""
        written = {_source(name) for name in self._collected_names("w")}
        read = {_source(name) for name in self._collected_names("r")}
        imported = {str(getattr(each, "__file__", None)) for each in list(sys.modules.values())}
        roots = package_roots()
        return {
            Path(name)
            for name in (read | {_source(file) for file in imported if os.path.isabs(file)}) - written  # noqa: PTH117
            if not name.startswith(_DEVICES) and not any(Path(name).is_relative_to(root) for root in roots)
        }

    def _collected_names(self, kind: str) -> set[str]:
        size = os.fstat(self._collected).st_size
        entries = os.pread(self._collected, size, 0).decode("utf-8", "surrogateescape").split("\0")
        return {entry[1:] for entry in entries if entry.startswith(kind)}


@contextmanager
def followed_reads() -> Iterator[ReadFiles]:
    """In the block, collect the files that are read."""
    global _hooked
    with tempfile.TemporaryFile() as file:
        collected = file.fileno()
        fcntl.fcntl(collected, fcntl.F_SETFL, fcntl.fcntl(collected, fcntl.F_GETFL) | os.O_APPEND)
        if not _hooked:
            sys.addaudithook(_hook)
            _hooked = True
        _listening[:] = [collected]
        try:
            with _safetensors_announced(), _variables_announced():
                yield ReadFiles(collected)
        finally:
            _listening.clear()


def package_roots() -> list[Path]:
    """The folders of the standard library, of installed packages and of this package: their versions are known."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages(), *own_folders()]
    return [Path(path).resolve() for path in dict.fromkeys(paths)]


def own_folders() -> list[str]:
    """The folders of this package and of the rechecker."""
    found = [sys.modules.get(name) for name in ("orderproof", "orderproof_recheck")]
    return [str(Path(str(each.__file__)).parent) for each in found if each is not None and each.__file__]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not _listening:
        return
    name, _, flags = arguments
    if isinstance(name, (str, bytes)):
        kind = "w" if isinstance(flags, int) and flags & _WRITES else "r"
        _collect(kind, os.path.abspath(os.fsdecode(name)))  # noqa: PTH100 - the model may leave the working folder


def _collect(kind: str, name: str) -> None:
    with suppress(OSError, ValueError):
        os.write(_listening[0], f"{kind}{name}\0".encode("utf-8", "surrogateescape"))


def _source(name: str) -> str:
    """The file itself, or for compiled code its source; without symbolic links."""
    if name.endswith(".pyc"):
        with suppress(ValueError, NotImplementedError):
            name = source_from_cache(name)
    return os.path.realpath(name)


@contextmanager
def _safetensors_announced() -> Iterator[None]:
    """In the block, report the files that safetensors opens."""
    import safetensors

    modules = [each for name in ("safetensors", "safetensors.torch") if (each := sys.modules.get(name)) is not None]
    opens = safetensors.safe_open

    def announced(filename: Any, *args: Any, **kwargs: Any) -> Any:
        sys.audit("open", os.fspath(filename), "r", os.O_RDONLY)
        return opens(filename, *args, **kwargs)

    for each in modules:
        vars(each)["safe_open"] = announced
    try:
        yield
    finally:
        for each in modules:
            vars(each)["safe_open"] = opens


@contextmanager
def _variables_announced() -> Iterator[None]:
    """In the block, collect the variables of the environment that are asked for."""
    kind: Any = type(os.environ)
    get, roots = kind.__getitem__, tuple(f"{root}{os.sep}" for root in package_roots())

    def announced(self: Any, key: Any) -> Any:
        if _listening and isinstance(key, str) and not _asking_file().startswith(("<", *roots)):
            _collect("e", key)
        return get(self, key)

    kind.__getitem__ = announced
    try:
        yield
    finally:
        kind.__getitem__ = get


def _asking_file() -> str:
    """The file of the code that asks for a variable, through functions of `os` or not."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename in _OF_THE_MAPPING:
        frame = frame.f_back
    return os.path.realpath(name) if not (name := frame.f_code.co_filename).startswith("<") else name
