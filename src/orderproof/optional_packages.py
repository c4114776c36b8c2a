"""Checks that optional packages are installed, before anything is loaded or trained."""

from __future__ import annotations

import importlib.util
import json
from importlib import metadata

from orderproof.errors import UsageError


def require_packages(what: str, *packages: str, extra: str, otherwise: str = "") -> None:
    """Raise `UsageError` where a package is not installed; it names the extra and the alternative."""
    missing = missing_packages(*packages)
    if missing:
        names = " and ".join(missing)
        raise UsageError(f"{what} needs {names}: {install_command(extra)}{otherwise and f'; or {otherwise}'}")


def missing_packages(*packages: str) -> list[str]:
    """The packages that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def install_command(extra: str) -> str:
    """The command that installs an extra: from the clone, if this package was installed from one, else by its name."""
    if _is_installed_from_clone():
        return f"pip install -e '.[{extra}]' in the clone of orderproof"
    return f"pip install 'orderproof[{extra}]'"


def _is_installed_from_clone() -> bool:
    """True if the package was installed as `pip install -e .` does it, or is run from its sources."""
    try:
        record = metadata.distribution("orderproof").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return True
    return bool(record) and "dir_info" in json.loads(record or "{}")
