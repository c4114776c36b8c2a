"""Build the kernels: a few lines of plain C that the package also works without.

Where there is no C compiler, or it fails, the package is built without them and says so; every function then takes
its path through torch, with the same results.
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
# Products are rounded one by one, so that the kernel and the path through torch give the same numbers.
FLAGS = ("-O3", "-std=gnu11", "-ffp-contract=off", "-fPIC", "-shared")
# The functions of Python are found in the process that loads the library; macOS wants to be told so.
UNDEFINED = ("-undefined", "dynamic_lookup") if platform.system() == "Darwin" else ()


class KernelHook(BuildHookInterface):
    """Compile `turn.c` beside its source."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and mark the wheel as one for this machine where that worked."""
        del version
        if self.target_name != "wheel":
            return
        folder = Path(self.root) / FOLDER
        library = folder / "turn.so"
        compiler = shlex.split(os.environ.get("CC", "")) or [next(filter(shutil.which, ("cc", "gcc", "clang")), "")]
        if platform.system() == "Windows" or not compiler[0]:
            self.app.display_warning("no C compiler was found: the kernels are left out, their torch path is taken")
            return
        made = library.with_suffix(f".{os.getpid()}.so")
        plain = [*compiler, *FLAGS, str(folder / "turn.c"), "-o", str(made), "-lm"]
        # With Python's header the smallest call gets a function of its own; without it ctypes makes that call.
        with_python = [*plain, str(folder / "turn_python.c"), f"-I{sysconfig.get_path('include')}", *UNDEFINED]
        for command in (with_python, plain):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if not done.returncode:
                break
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no message"])[0]
            self.app.display_warning(f"the kernels did not compile and are left out: {said}")
            made.unlink(missing_ok=True)
            return
        made.replace(library)
        build_data["artifacts"].append(f"/{library.relative_to(self.root).as_posix()}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
