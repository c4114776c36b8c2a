"""The packages of an extra that a command needs: asked for before anything is loaded or trained."""

from __future__ import annotations

import importlib.util

from orderproof.errors import UsageError


def need(what: str, *packages: str, extra: str, otherwise: str = "") -> None:
    """Raises `UsageError` that names the extra, and what else can be done, where a package is not installed."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        known = " and ".join(missing)
        raise UsageError(f"{what} needs {known}: pip install 'orderproof[{extra}]'{otherwise and f'; or {otherwise}'}")
