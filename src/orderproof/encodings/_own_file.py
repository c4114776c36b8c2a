"""An encoding in a file of the user, by `FILE.py:CLASS`; the full name has a digest: `twist.py:Twist@1f0c2a7e`.

So a result by this name belongs to one content of the file, and a file that has changed is another encoding. Code that
the file imports is not part of the digest.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.errors import UsageError, first_line
from orderproof.registry import did_you_mean


def is_in_a_file(name: str) -> bool:
    """True for `FILE.py:CLASS`, with a digest or without."""
    return ".py:" in name


def full_name(name: str) -> str:
    """The name of an encoding, of `FILE.py:CLASS` with a digest of the file.

    Raises `UsageError` if the file is missing, or is not the one of the digest that is given.
    """
    if not is_in_a_file(name):
        return name
    place, _, wanted = name.rpartition("@") if "@" in name.rpartition(":")[2] else (name, "", "")
    path = Path(place.rpartition(":")[0]).expanduser()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    except OSError as error:
        raise UsageError(f"expected an encoding as FILE.py:CLASS; {path}: {error.strerror or error}") from None
    if wanted and wanted != digest:
        raise UsageError(f"expected the encoding {name}; {path} has changed since, and is another encoding")
    return f"{place}@{digest}"


def load(name: str) -> type[PositionalEncoding]:
    """The class. Raises `UsageError`."""
    place, _, digest = full_name(name).rpartition("@")
    file, _, attribute = place.rpartition(":")
    module = _module(Path(file).expanduser().resolve(), digest)
    found = getattr(module, attribute, None)
    if not isinstance(found, type) or not issubclass(found, PositionalEncoding):
        known = [key for key, each in vars(module).items() if isinstance(each, type)]
        hint = did_you_mean(attribute, known) or "; derive it from one of orderproof.encodings"
        raise UsageError(f"expected a class of an encoding, {place}; got {found!r}{hint}")
    return found


@cache
def _module(path: Path, digest: str) -> ModuleType:
    name = f"orderproof_encoding_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"expected an encoding in a file of Python; got {path.name}")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file: anything may come
        del sys.modules[name]
        raise UsageError(f"{path.name}: running it raised {first_line(error)}") from error
    return module
