"""A module that cannot be called safely is refused with one line, and leaves nothing behind."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, forked_process, prove
from orderproof.errors import SubjectError, UsageError
from orderproof.models import from_module, load, trial_call
from orderproof.models.process_state import module_classes
from orderproof.recording.process_settings import read_settings

pytestmark = pytest.mark.trials

ROOT = Path(__file__).parents[2]
INPUTS = torch.zeros(2, 7, 8)
CALLS_OF_A_RECORDING = 12  # and of what is derived before it
forks = pytest.mark.skipif(not forked_process.can_fork(), reason="needs fork")


class Odd(BaseException):
    """Not an `Exception`."""


class Model(nn.Module):
    """Does something in each call."""

    def __init__(self, act: Callable[[nn.Module], object]) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        self.act(self)
        return self.linear(x) + x.mean(1, keepdim=True)


class Other(Model):
    """Another class."""


def _raise(error: BaseException) -> Callable[[nn.Module], None]:
    def act(_: nn.Module) -> None:
        raise error

    return act


def _spin(_: nn.Module) -> None:
    while True:
        pass


def _allocate(_: nn.Module) -> None:
    kept = []
    while True:
        kept.append(bytearray(10**7))


def _allocate_tensors(_: nn.Module) -> None:
    kept = []
    while True:
        kept.append(torch.ones(10**6))


def _fork(_: nn.Module) -> None:
    if os.fork() == 0:
        time.sleep(300)
        os._exit(0)


REFUSED: dict[str, tuple[Callable[[nn.Module], object], str]] = {
    "exits": (_raise(SystemExit(7)), "raised SystemExit: 7"),
    "interrupts": (_raise(KeyboardInterrupt()), "raised KeyboardInterrupt"),
    "raises": (_raise(Odd("odd")), "raised Odd: odd"),
    "leaves": (lambda _: os._exit(7), "took the process with it, which ended with exit code 7"),
    "crashes": (lambda _: ctypes.string_at(0), "took the process with it, which was ended by SIGSEGV"),
    "spins": (_spin, "did not return within 2 s"),
    "sleeps": (lambda _: time.sleep(1000), "did not return within 2 s"),
    "allocates": (_allocate, "needs more than the 0.168 GiB of memory that are available"),
    "allocates_tensors": (_allocate_tensors, "needs more than the 0.168 GiB of memory that are available"),
    "forks": (_fork, "forks the process"),
    "forks_itself": (lambda _: os.fork(), "forks the process"),
    "starts": (lambda _: subprocess.Popen(["sleep", "300"]), "left 1 process behind"),
    "threads": (lambda _: threading.Thread(target=time.sleep, args=(30,)).start(), "left 1 thread running"),
    "class": (lambda model: setattr(model, "__class__", Other), "changed the class or the mode of the model"),
    "mode": (lambda model: model.linear.train(), "changed the class or the mode of linear"),
    "dtype": (lambda _: torch.set_default_dtype(torch.float64), "changed the default dtype"),
    "deterministic": (lambda _: torch.use_deterministic_algorithms(True), "changed the deterministic algorithms"),
    "thread_count": (lambda _: torch.set_num_threads(3), "changed the number of threads"),
    "gradients": (lambda _: torch.set_grad_enabled(True), "changed the gradient mode"),
    "hook": (lambda _: nn.modules.module.register_module_forward_hook(print), "changed the hooks of all modules"),
    "folder": (lambda _: os.chdir("/"), "changed the working directory"),
    "signal": (lambda _: signal.signal(signal.SIGALRM, signal.SIG_IGN), "changed the handlers of signals"),
    "closes": (lambda _: sys.stdout.close(), "changed the files of the standard streams"),
    "closes_file": (lambda _: os.close(1), "changed the files of the standard streams"),
    "replaces": (lambda _: setattr(sys, "stdout", sys.stderr), "changed the standard streams"),
}


@forks
@pytest.mark.parametrize("name", REFUSED)
def test_module_that_cannot_be_called_safely_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    act, reason = REFUSED[name]
    timeout = 2.0 if name in ("spins", "sleeps") else 60.0
    if name.startswith("allocates"):
        monkeypatch.setattr(trial_call, "available_memory", lambda: 2e8)
    model = Model(act)
    before = read_settings() | module_classes(model.eval())
    threads, children = threading.active_count(), forked_process.descendants(os.getpid())
    with pytest.raises(SubjectError) as caught:
        audit(model, laws=["causal"], inputs=INPUTS, timeout=timeout)
    assert str(caught.value).startswith(f"Model: it cannot be audited: a call of it {reason}")
    assert "\n" not in str(caught.value)
    assert read_settings() | module_classes(model) == before
    assert threading.active_count() == threads
    assert forked_process.descendants(os.getpid()) == children


@forks
def test_a_call_that_waits_for_a_thread_started_before_names_the_thread() -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        pool.submit(int).result()
        with pytest.raises(SubjectError, match=r"did not return within 2 s; it may wait for a thread .*\(prefetch_0\)"):
            audit(Model(lambda _: pool.submit(int).result()), laws=["causal"], inputs=INPUTS, timeout=2.0)


LOADS = {
    "leaves": ("os._exit(7)", "took the process with it, which ended with exit code 7"),
    "aborts": ("os.abort()", "took the process with it, which was ended by SIGABRT"),
    "crashes": ("ctypes.string_at(0)", "took the process with it, which was ended by SIGSEGV"),
    "allocates": ("kept = [bytearray(10**7) for _ in range(10**6)]", "needs more than the 0.168 GiB of memory"),
    "spins": ("while True: pass", "did not return within 2 s"),
    "forks": ("os.fork()", "forks the process"),
}


@forks
@pytest.mark.parametrize("place", ["import", "function"])
@pytest.mark.parametrize("name", LOADS)
def test_code_that_cannot_be_run_safely_is_refused(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, reason = LOADS[name]
    monkeypatch.setattr(trial_call, "LOAD_TIMEOUT", 2.0 if name == "spins" else 60.0)
    monkeypatch.setattr(trial_call, "available_memory", lambda: 2e8)
    indent = "    " if place == "function" else ""
    file = tmp_path / "bad_load.py"
    file.write_text(f"import ctypes, os\n\n\ndef build():\n    pass\n{indent}{act}\n", encoding="utf-8")
    children = forked_process.descendants(os.getpid())
    with pytest.raises(SubjectError) as caught:
        load(f"{file}:build")
    assert str(caught.value).startswith(f"{file}:build: it cannot be loaded: its code {reason}")
    assert "bad_load" not in " ".join(sys.modules)
    assert forked_process.descendants(os.getpid()) == children


@pytest.mark.parametrize("calls", range(1, 7))
def test_module_that_exits_at_a_later_call_does_not_end_the_program(calls: int, tmp_path: Path) -> None:
    file = tmp_path / "calls"

    def act(_: nn.Module) -> None:
        with file.open("a") as text:
            text.write("x")
        if file.stat().st_size >= calls:
            raise SystemExit(7)

    with pytest.raises(SubjectError, match="raised SystemExit: 7"):
        audit(Model(act), laws=["causal"], inputs=INPUTS)


def test_module_that_raises_later_costs_one_law_its_verdict(tmp_path: Path) -> None:
    calls = tmp_path / "calls"  # a file: each run of a law begins in the recorded state of the module

    def act(_: nn.Module) -> None:
        with calls.open("a") as file:
            file.write("x")
        if calls.stat().st_size > CALLS_OF_A_RECORDING:
            raise SystemExit(7)

    report = audit(Model(act), laws=["causal"], inputs=INPUTS)
    (finding,) = report.findings
    assert finding.verdict == "undecided"
    assert "SystemExit: 7" in finding.reason


@pytest.mark.parametrize("make", [torch.jit.script, lambda m: torch.jit.trace(m, INPUTS)], ids=["script", "trace"])
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_script_module_is_undecided_and_says_what_to_give(make: Callable[[nn.Module], nn.Module]) -> None:
    finding = prove(make(nn.Linear(8, 8)), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided"
    assert "the model is a torch.jit.ScriptModule; give the module from which it was made" in finding.reason


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Using .torch.compile.*global hooks:UserWarning")  # a recording follows the modules
def test_compiled_module_runs_eagerly(nested: bool) -> None:
    before = set(forked_process.descendants(os.getpid()))
    compiled = torch.compile(nn.Linear(8, 8))
    subject = from_module(nn.Sequential(nn.Tanh(), compiled) if nested else compiled, INPUTS)
    assert subject.notes == ("torch.compile is not used: compiled parts run eagerly",)
    finding = prove(subject, "causal")
    assert finding.verdict == "proved", finding.reason
    assert set(forked_process.descendants(os.getpid())) <= before  # the compiler starts processes


@forks
@pytest.mark.parametrize(
    ("name", "code"), [("prints", 0), ("leaves", 2), pytest.param("leaves_early", 2, marks=pytest.mark.slow)]
)
def test_standard_output_is_json_or_empty(name: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "import os, sys, torch\nfrom torch import nn\n\n\nclass Bad(nn.Linear):\n    def forward(self, x):\n"
        "        self.act()\n        return super().forward(x)\n\n\n"
        "class Prints(Bad):\n    def act(self):\n        print('said')\n        os.write(1, b'said')\n\n\n"
        "class Leaves(Bad):\n    def act(self):\n        sys.exit(1)\n\n\n"
        "def prints():\n    print('said')\n    return Prints(8, 8), torch.zeros(2, 7, 8)\n\n\n"
        "def leaves():\n    return Leaves(8, 8), torch.zeros(2, 7, 8)\n\n\n"
        "def leaves_early():\n    sys.exit(1)\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, "-m", "orderproof", "prove", f"bad.py:{name}", "--law", "causal", "--json", "-", "--quiet"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == code, run.stderr
    if code == 0:
        assert json.loads(run.stdout)["findings"][0]["verdict"] == "proved"
        assert "said" in run.stderr
    else:
        assert run.stdout == ""
        assert run.stderr.startswith("orderproof: ")
        assert run.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["bad.py"]


class Returns(nn.Module):
    """Returns something that is computed from its output."""

    def __init__(self, make: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.make = make

    def forward(self, x: Tensor) -> object:
        return self.make(self.linear(x))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda y: torch.nested.nested_tensor(list(y)), "its output is a nested tensor"),
        (lambda y: (y, y.to("meta")), "its output.1 is on the meta device"),
    ],
)
def test_an_output_that_cannot_be_compared_is_refused(make: Callable[[Tensor], object], reason: str) -> None:
    with pytest.raises(SubjectError, match=reason):
        prove(Returns(make).eval(), "causal", inputs=INPUTS)


@pytest.mark.parametrize("inputs", [torch.zeros(0, 7, 8), torch.zeros(2, 0, 8)])
def test_an_empty_input_is_refused(inputs: Tensor) -> None:
    with pytest.raises(SubjectError, match="the first input is empty, of shape"):
        prove(nn.Linear(8, 8), "batch", inputs=inputs)


def test_a_token_axis_that_names_none_is_refused() -> None:
    with pytest.raises(UsageError, match="token_axis names no axis; expected one for at least one input"):
        prove(nn.Linear(8, 8), "batch", inputs=INPUTS, token_axis=(None,))
