"""The GPU kernel without a GPU: its results in Triton's interpreter, and the code around it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from orderproof.encodings import kernels
from orderproof.encodings.kernels import _rotary_gpu

TESTS = Path(__file__).with_name("test_triton_rotate.py")
CPU = torch.device("cpu")


needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

COMPILED = """
import itertools
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from orderproof.encodings.kernels._rotary_triton import _rotary_kernel as rotary

fixed = dict(PAIRS=48, COLUMNS=64, TOKENS=16, EACH=4, x_feature=1, out_feature=1)
flags = (False, True)
for dtype, interleaved, inverse, rest in itertools.product(("fp32", "bf16", "fp16"), flags, flags, (0, 5)):
    constants = fixed | dict(INTERLEAVED=interleaved, INVERSE=inverse, REST=rest, REST_COLUMNS=8 if rest else 1)
    kinds = dict(out="*" + dtype, x="*" + dtype, cos="*fp32", sin="*fp32")
    kinds |= dict.fromkeys(constants, "constexpr") | dict(x_row="i64")
    signature = {name: kinds.get(name, "i32") for name in rotary.arg_names}
    source = ASTSource(rotary, signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False})
    assert "fma" not in made.asm["ptx"]
    assert (dtype == "bf16") == ("cvt.rn.bf16" in made.asm["ptx"])
    print(len(made.asm["cubin"]) > 0)
"""


@pytest.mark.slow
@needs_triton
def test_it_passes_the_gpu_tests_in_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(TESTS)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "skipped" not in done.stdout


@pytest.mark.slow
@needs_triton
def test_it_compiles_for_a_gpu_without_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILED],
        env={k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["True"] * 24


def test_importing_the_package_imports_no_triton_of_its_own() -> None:
    code = (
        "import sys, torch; before = 'triton' in sys.modules; import orderproof.encodings; "
        "print(before == ('triton' in sys.modules), "
        "'orderproof.encodings.kernels._rotary_triton' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_tensors_on_the_cpu_are_not_accepted() -> None:
    q = torch.ones(1, 1, 1, 2)
    assert not kernels.can_rotate_on_gpu(q, q)


def test_a_kernel_that_fails_or_is_wrong_warns_once_and_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*_: object, **__: object) -> None:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable.")

    for rotate_into, reason in (
        (no_compiler, r"\(RuntimeError: Failed to find C compiler.\)"),
        (lambda out, *_, **__: out.zero_(), r"\(a quarter turn of \(1, 1\) gave \[0.0, 0.0\]\)"),
    ):
        _rotary_gpu._kernel_works.cache_clear()
        monkeypatch.setattr(
            _rotary_gpu, "_rotary_triton", lambda rotate_into=rotate_into: SimpleNamespace(rotate_into=rotate_into)
        )
        with pytest.warns(UserWarning, match=r"rotations on cpu run through torch: Triton's kernel fails.*" + reason):
            assert not _rotary_gpu._kernel_works(CPU)
        assert not _rotary_gpu._kernel_works(CPU)
    _rotary_gpu._kernel_works.cache_clear()


def test_without_triton_or_with_kernels_disabled_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "orderproof.encodings.kernels._rotary_triton", raising=False)
    _rotary_gpu._rotary_triton.cache_clear()
    assert _rotary_gpu._rotary_triton() is None
    _rotary_gpu._kernel_works.cache_clear()
    assert not _rotary_gpu._kernel_works(CPU)
    monkeypatch.setenv("ORDERPROOF_KERNELS", "0")
    _rotary_gpu._rotary_triton.cache_clear()
    assert _rotary_gpu._rotary_triton() is None
    _rotary_gpu._rotary_triton.cache_clear()
    _rotary_gpu._kernel_works.cache_clear()
