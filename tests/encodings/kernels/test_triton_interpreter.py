"""The kernel for a GPU, where there is none: what it computes, by Triton's interpreter; and what stands around it."""

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
from orderproof.encodings.kernels import _on_gpu

TESTS = Path(__file__).with_name("test_triton_turn.py")
CPU = torch.device("cpu")


needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

COMPILED = """
import itertools
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from orderproof.encodings.kernels._triton_turn import _turn_block as turn

fixed = dict(PAIRS=48, COLUMNS=64, TOKENS=16, EACH=4, x_feature=1, out_feature=1)
for dtype, interleaved, back, rest in itertools.product(("fp32", "bf16", "fp16"), (False, True), (False, True), (0, 5)):
    constants = fixed | dict(INTERLEAVED=interleaved, BACK=back, REST=rest, REST_COLUMNS=8 if rest else 1)
    kinds = dict(out="*" + dtype, x="*" + dtype, cos="*fp32", sin="*fp32")
    kinds |= dict.fromkeys(constants, "constexpr") | dict(x_row="i64")
    signature = {name: kinds.get(name, "i32") for name in turn.arg_names}
    source = ASTSource(turn, signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False})
    assert "fma" not in made.asm["ptx"]
    assert (dtype == "bf16") == ("cvt.rn.bf16" in made.asm["ptx"])
    print(len(made.asm["cubin"]) > 0)
"""


@pytest.mark.slow
@needs_triton
def test_interpreted_it_passes_the_tests_of_a_gpu() -> None:
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
def test_it_can_be_compiled_for_a_gpu_that_is_not_there(tmp_path: Path) -> None:
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
        "'orderproof.encodings.kernels._triton_turn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_tensors_on_the_cpu_are_not_its_own() -> None:
    q = torch.ones(1, 1, 1, 2)
    assert not kernels.serves_on_gpu(q, q)


def test_a_kernel_that_cannot_be_made_or_is_wrong_is_told_once_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*_: object, **__: object) -> None:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable.")

    for turn_into, reason in (
        (no_compiler, r"\(RuntimeError: Failed to find C compiler.\)"),
        (lambda out, *_, **__: out.zero_(), r"\(a quarter turn of \(1, 1\) gave \[0.0, 0.0\]\)"),
    ):
        _on_gpu._works.cache_clear()
        monkeypatch.setattr(_on_gpu, "_triton_turn", lambda turn_into=turn_into: SimpleNamespace(turn_into=turn_into))
        with pytest.warns(UserWarning, match=r"rotations on cpu run through torch: Triton's kernel fails.*" + reason):
            assert not _on_gpu._works(CPU)
        assert not _on_gpu._works(CPU)
    _on_gpu._works.cache_clear()


def test_without_triton_or_with_the_switch_off_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "orderproof.encodings.kernels._triton_turn", raising=False)
    _on_gpu._triton_turn.cache_clear()
    assert _on_gpu._triton_turn() is None
    _on_gpu._works.cache_clear()
    assert not _on_gpu._works(CPU)
    monkeypatch.setenv("ORDERPROOF_KERNELS", "0")
    _on_gpu._triton_turn.cache_clear()
    assert _on_gpu._triton_turn() is None
    _on_gpu._triton_turn.cache_clear()
    _on_gpu._works.cache_clear()
