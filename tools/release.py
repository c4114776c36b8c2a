"""Build the sdist and the wheels into dist/, then install and use each one where there is no C compiler.

    python tools/release.py [--torch REQUIREMENT]      what `make release` runs (minutes, 2 GB of disk at a time)

There are two distributions: orderproof, and orderproof-recheck, which it needs. The wheels are built from the unpacked
sdists, so a file that an sdist lacks is noticed here. Each archive of orderproof is installed into an environment of
its own whose PATH holds nothing but that environment, then it audits a small model and rechecks the certificate of that
audit. The last one is installed with the extra `hf` too and audits an architecture of transformers. The wheel of
orderproof-recheck is also installed alone, and checks a stored certificate. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
STORED = ROOT / "tests" / "recheck" / "stored" / "causal.json"
COMPILERS = ("cc", "gcc", "clang")
MODEL = '''"""A causal attention layer."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)

    def forward(self, x):
        future = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        return self.layer(x, src_mask=future)


def decoder():
    return Decoder(), torch.randn(2, 5, 16)
'''
CAUSAL = ("--law", "OP201", "--expect", "OP201=holds")
KERNELS = "from importlib.metadata import files; print(any(f.suffix == '.so' for f in files('orderproof')))"


class ReleaseError(Exception):
    """A step of the release that failed."""


def run(*command: str | Path, folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a command; its standard output. Raises `ReleaseError` with the end of what it printed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        shown = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise ReleaseError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{shown}")
    return done.stdout


def unpacked(sdist: Path, work: Path) -> Path:
    """The folder of an unpacked sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(work, filter="data")
    return work / sdist.name.removesuffix(".tar.gz")


def build_rechecker(work: Path) -> Path:
    """The wheel of orderproof-recheck, from its sdist."""
    sdist = built("sdist", ROOT / "recheck", dict(os.environ))
    return built("wheel", unpacked(sdist, work), dict(os.environ))


def build(work: Path) -> Iterator[Path]:
    """The sdist of orderproof, a wheel without kernels, and where there is a compiler one with them."""
    yield (sdist := built("sdist", ROOT, dict(os.environ)))
    tree = unpacked(sdist, work)
    yield built("wheel", tree, os.environ | {"CC": "false"})
    if os.environ.get("CC") or any(map(shutil.which, COMPILERS)):
        yield built("wheel", tree, dict(os.environ))


def built(kind: str, tree: Path, environment: dict[str, str]) -> Path:
    """One archive, made by hatchling."""
    before = set(DIST.iterdir())
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", DIST, folder=tree, environment=environment)
    made = set(DIST.iterdir()) - before
    if len(made) != 1:
        raise ReleaseError(f"expected one new {kind} in {DIST.name}/; got {len(made)}")
    (archive,) = made
    print(f"built {DIST.name}/{archive.name} ({archive.stat().st_size / 1e6:.1f} MB)", flush=True)
    return archive


def fresh_environment(work: Path) -> Callable[..., str]:
    """A new environment without a compiler: the function that runs one of its programs."""
    run(sys.executable, "-m", "venv", work / "venv", folder=work)
    programs = work / "venv" / ("Scripts" if os.name == "nt" else "bin")
    dropped = {"CC", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {key: value for key, value in os.environ.items() if key not in dropped}
    environment |= {"PATH": str(programs), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    if found := [name for name in COMPILERS if shutil.which(name, path=environment["PATH"])]:
        raise ReleaseError(f"expected no C compiler in a fresh environment; got {found[0]}")

    def here(program: str, *arguments: str | Path) -> str:
        return run(programs / program, *arguments, folder=work, environment=environment)

    return here


def use_alone(rechecker: Path, work: Path) -> None:
    """Install the rechecker in an empty environment, and check a stored certificate with it."""
    here = fresh_environment(work)
    here("python", "-m", "pip", "install", "-q", "--no-index", rechecker)
    print(f"installed {rechecker.name} alone: {here('orderproof-recheck', '--version').strip()}")
    print(f"  {here('orderproof-recheck', STORED).splitlines()[0]}", flush=True)


def use(archive: Path, rechecker: Path, work: Path, *, torch: str, hf: bool) -> None:
    """Install an archive in a fresh environment without a compiler; audit with it, and recheck."""
    here = fresh_environment(work)
    # torch comes first, asked for by its version: then no other build of it is chosen.
    for requirement in (torch, str(rechecker), f"{archive}[hf]" if hf else str(archive)):
        here("python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", requirement)
    kernels = "compiled kernels" if here("python", "-c", KERNELS).strip() == "True" else "torch path, no kernels"
    print(f"installed {archive.name}{' with hf' if hf else ''}: {here('orderproof', '--version').strip()}, {kernels}")
    (work / "model.py").write_text(MODEL, encoding="utf-8")
    here("orderproof", "audit", "model.py:decoder", *CAUSAL, "--certificate", "causal.json", "--quiet")
    print("  audited a decoder: OP201 holds")
    print(f"  rechecked it: {here('orderproof', 'recheck', 'causal.json').splitlines()[0]}")
    if hf:
        here("orderproof", "audit", "arch:llama", "--tiny", *CAUSAL, "--quiet")
        print("  audited arch:llama: OP201 holds")
    sys.stdout.flush()


def main() -> int:
    """Read the command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="torch", help="what pip is asked for before orderproof (torch==2.13.0)")
    torch = parser.parse_args().torch
    try:
        DIST.mkdir(exist_ok=True)
        for old in DIST.glob("orderproof[-_]*"):
            old.unlink()
        with tempfile.TemporaryDirectory() as work:
            rechecker, archives = build_rechecker(Path(work)), list(build(Path(work)))
        with tempfile.TemporaryDirectory() as work:
            use_alone(rechecker, Path(work))
        for archive in archives:
            with tempfile.TemporaryDirectory() as work:
                use(archive, rechecker, Path(work), torch=torch, hf=archive == archives[-1])
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"{len(list(DIST.glob('orderproof[-_]*')))} archives in {DIST.name}/ are ready; nothing was uploaded")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
