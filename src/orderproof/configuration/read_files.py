"""The files and variables that a process and its forked children ask for.

That is the files that they read, the folders that the model lists, the paths of which they ask if they are there, the
folders in which modules are looked for, and the variables of the environment that the model asks for.

Python reports each file that it opens to an audit hook, and the reader of safetensors, which opens files by itself,
reports them too. Files that other libraries in C open by themselves are not seen. The names are collected in a file
without a name, to which forked processes add.
"""

from __future__ import annotations

import fcntl
import functools
import glob
import os
import pathlib
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
_ASKING = frozenset(  # the files of functions that ask for others: of os, os.environ, pathlib and glob
    each.__code__.co_filename for each in (os.walk, Mapping.get, os.path.exists, Path.iterdir, Path.glob, glob.iglob)
) | {pathlib.__file__}
_LISTINGS, _LIBRARY = frozenset({"os.listdir", "os.scandir"}), "ctypes.dlopen"
_EVENTS = _LISTINGS | {"open", _LIBRARY}
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
        """Those that are read and not written, listed folders, and imported modules; none of an installed package."""
        written = {os.path.realpath(_source(name)) for name in self._collected_names("w")}
        imported = {str(getattr(each, "__file__", None)) for each in list(sys.modules.values())}
        read = {_source(name) for name in self._collected_names("r") | {each for each in imported if each[:1] == "/"}}
        return {Path(name) for name in _own(read) if os.path.realpath(name) not in written} | {
            Path(name) for name in _own(self._collected_names("l"))
        }

    def questions(self) -> set[Path]:
        """The paths of which it was asked if they are there, unless the audit itself has changed the answer."""
        there, missing = _own(self._collected_names("y")), _own(self._collected_names("n"))
        return {Path(name) for name in there | missing if (name in there) == Path(name).exists() != (name in missing)}

    def module_folders(self) -> set[Path]:
        """The folders in which modules were looked for."""
        return {Path(name) for name in _own({os.path.abspath(each) for each in list(sys.path_importer_cache)})}  # noqa: PTH100

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
            with _safetensors_announced(), _variables_announced(), _questions_announced():
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


def _own(names: set[str]) -> set[str]:
    """Those that are no device and of no installed package."""
    return {name for name in names if not f"{os.path.realpath(name)}{os.sep}".startswith(_not_own())}


@functools.cache
def _not_own() -> tuple[str, ...]:
    return (*(f"{root}{os.sep}" for root in package_roots()), *_DEVICES)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS or not _listening:
        return
    name, flags = arguments[0], arguments[-1]
    if event in _LISTINGS:
        kind = "l"
        name = "." if name is None else name
        if not _is_asked_by_model():
            return
    else:
        kind = "w" if event == "open" and isinstance(flags, int) and flags & _WRITES else "r"
    if isinstance(name, (str, bytes)) and (event != _LIBRARY or os.sep in os.fsdecode(name)):
        _collect(kind, os.path.abspath(os.fsdecode(name)))  # noqa: PTH100 - the model may leave the working folder


def _collect(kind: str, name: str) -> None:
    with suppress(OSError, ValueError):
        os.write(_listening[0], f"{kind}{name}\0".encode("utf-8", "surrogateescape"))


def _source(name: str) -> str:
    """The file itself, or for compiled code its source. A symbolic link stays one: it may lead elsewhere later."""
    if name.endswith(".pyc"):
        with suppress(ValueError, NotImplementedError):
            name = source_from_cache(name)
    return name


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
    get = kind.__getitem__

    def announced(self: Any, key: Any) -> Any:
        if _listening and isinstance(key, str) and _is_asked_by_model():
            _collect("e", key)
        return get(self, key)

    kind.__getitem__ = announced
    try:
        yield
    finally:
        kind.__getitem__ = get


@contextmanager
def _questions_announced() -> Iterator[None]:
    """In the block, collect the paths of which it is asked if they are there: os.path and pathlib ask os.stat."""
    ask: Any = os.stat
    kinds = [each for each in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks) if ask in each]

    @functools.wraps(ask)
    def announced(path: Any, *args: Any, **kwargs: Any) -> Any:
        found = "n"
        try:
            result = ask(path, *args, **kwargs)
            found = "y"
            return result
        finally:
            if _listening and isinstance(path, (str, bytes, os.PathLike)) and not kwargs.get("dir_fd"):
                _collect(found, os.path.abspath(os.fsdecode(path)))  # noqa: PTH100

    vars(os)["stat"] = announced
    for each in kinds:
        each.add(announced)
    try:
        yield
    finally:
        vars(os)["stat"] = ask
        for each in kinds:
            each.discard(announced)


def _is_asked_by_model() -> bool:
    """True if code outside of installed packages asks, through modules for paths and variables or not."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename in _ASKING:
        frame = frame.f_back
    name = frame.f_code.co_filename
    return not name.startswith("<") and bool(_own({name}))
