"""Compile the optional C kernels while building the wheel.

Without a working C compiler the wheel is built without kernels, with a warning; every function then runs through
torch with the same results.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/orderproof/encodings/kernels")
# Each product is rounded separately, so that kernels and torch give the same numbers.
FLAGS = ("-O3", "-std=gnu11", "-ffp-contract=off", "-fPIC", "-shared")
# Python's functions are resolved by the process that loads the library; macOS needs to allow that explicitly.
UNDEFINED = ("-undefined", "dynamic_lookup") if platform.system() == "Darwin" else ()


class KernelHook(BuildHookInterface):
    """Compiles `rotary.c` into the folder of its source."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for this platform if that succeeded."""
        del version
        if self.target_name != "wheel":
            return
        folder = Path(self.root) / FOLDER
        library = folder / "rotary.so"
        compiler = shlex.split(os.environ.get("CC", "")) or [next(filter(shutil.which, ("cc", "gcc", "clang")), "")]
        if platform.system() == "Windows" or not compiler[0]:
            self.app.display_warning("no C compiler was found: built without the kernels, which torch replaces")
            return
        output = library.with_suffix(f".{os.getpid()}.so")
        plain = [*compiler, *FLAGS, str(folder / "rotary.c"), "-o", str(output), "-lm"]
        # With Python's header, small calls get a native function; without it they go through ctypes.
        with_python = [*plain, str(folder / "rotary_python.c"), f"-I{sysconfig.get_path('include')}", *UNDEFINED]
        for command in (with_python, plain):
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if not result.returncode:
                break
        if result.returncode:
            message = (result.stderr.strip().splitlines() or ["no message"])[0]
            self.app.display_warning(f"the kernels did not compile, built without them: {message}")
            output.unlink(missing_ok=True)
            return
        output.replace(library)
        build_data["artifacts"].append(f"/{library.relative_to(self.root).as_posix()}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
