"""Models that misbehave while laws are measured cost one law its verdict, with the reason, and no other."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orderproof import audit, forked_process
from orderproof.adapter import ModelOutput
from orderproof.auditing.decide.sandbox import MeasurementRun
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.laws import find_law, measured_laws
from orderproof.models import from_adapter
from orderproof.records.audit import Finding, Report
from orderproof.time_limit import TimeAllowed, TimeLimitExceeded, time_limit
from tests.interruptible import start_interruptible

ROOT = Path(__file__).parents[3]
NAMES = ["cached_decoding", "use_cache", "stateless"]  # the middle one misbehaves
forks = pytest.mark.skipif(not forked_process.can_fork(), reason="needs fork")


class Misbehaving(TransformerAdapter):
    """Right, but for what it does when nothing is said of a cache, which only `use_cache` does."""

    def call(self, tokens: Tensor, *, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        if keep is None and kwargs.get("past") is None:
            self.act()
        return super().call(tokens, keep=keep, **kwargs)

    def act(self) -> None:
        raise NotImplementedError


class Raising(Misbehaving):
    def act(self) -> None:
        raise RuntimeError("no such call")


class Hanging(Misbehaving):
    def act(self) -> None:
        time.sleep(60)


class Dying(Misbehaving):
    def act(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Leaving(Misbehaving):
    def act(self) -> None:
        os.abort()


class Starting(Misbehaving):
    def act(self) -> None:
        start_interruptible(["sleep", "300"], start_new_session=True)


class Learning(Misbehaving):
    def act(self) -> None:
        with torch.no_grad():
            next(self.module.parameters()).add_(0.01)


class Printing(Misbehaving):
    def act(self) -> None:
        os.write(1, b"\x1b[2J" * 1000)


def findings(of: type[Misbehaving], limit: float | None = 60.0) -> list[Finding]:
    laws = [law for law in measured_laws() if law.name in NAMES]
    return list(MeasurementRun(from_adapter(tiny_decoder(of=of)), laws, allowed=TimeAllowed(limit)).findings())


@forks
@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (Dying, "its process was ended by SIGSEGV"),
        (Leaving, "its process was ended by SIGABRT"),
        (Starting, "it left 1 process behind"),
    ],
)
def test_misbehaving_model_costs_one_law_its_verdict(of: type[Misbehaving], reason: str) -> None:
    made = findings(of)
    assert [f.law for f in made] == NAMES
    assert [f.verdict for f in made] == ["held", "undecided", "held"]
    assert made[1].reason.startswith(reason)


class LearningQuietly(Misbehaving):
    """Learns after the output was computed: the two outputs agree."""

    def act(self) -> None:
        with torch.no_grad():
            list(self.module.parameters())[-1].add_(1e-5)


@forks
def test_model_that_learns_keeps_its_violation_and_the_weight_is_named() -> None:
    held, refuted, after = findings(Learning)
    assert (held.verdict, after.verdict) == ("held", "held")
    assert refuted.verdict == "refuted"
    assert refuted.reason.endswith(
        "; the model changed module.stack.layers.0.attention.to_query.weight while the law was measured"
    )


@forks
def test_outputs_that_agree_while_weights_change_are_no_evidence() -> None:
    made = findings(LearningQuietly)
    assert [f.verdict for f in made] == ["held", "undecided", "held"]
    assert made[1].reason.startswith("the model changed its own weights while the law was measured: ")


class WithACache(nn.Module):
    """Attention over a cache in a saved buffer, which every call writes from its start."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.register_buffer("cache", torch.zeros(40, 40, 8))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        rows, n = tokens.shape
        self.cache[:rows, :n] = x
        past = self.cache[:rows]
        return x + scaled_dot_product_attention(x, past, past, torch.ones(n, 40, dtype=torch.bool).tril())


def test_a_cache_that_every_call_writes_is_a_note() -> None:
    (finding,) = audit(WithACache().eval(), inputs=torch.randint(20, (2, 7)), laws=["batch_composition"]).findings
    assert finding.verdict == "held"
    assert "the model changed cache while the law was measured" in finding.reason


@forks
def test_hanging_model_costs_one_law_its_time() -> None:
    made = findings(Hanging, limit=5.0)
    assert [f.verdict for f in made] == ["held", "undecided", "held"]
    assert made[1].reason == "not done after 5 s"


def test_what_a_model_raises_is_the_reason() -> None:
    made = findings(Raising)
    assert [f.verdict for f in made] == ["held", "held", "held"]
    assert made[1].measurement is not None
    reasons = [t.reason for t in made[1].measurement.comparisons]
    assert [bool(reason) for reason in reasons] == [False, True, False, False]
    assert reasons[1].startswith("a call that the law makes raised RuntimeError: no such call, test_sandbox.py:")
    assert made[1].reason == "2 comparisons, 1 more could not be made"


@forks
def test_what_a_model_prints_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    assert [f.verdict for f in findings(Printing)] == ["held", "held", "held"]
    assert capfd.readouterr() == ("", "")


@forks
def test_nothing_is_left_of_what_a_model_started() -> None:
    findings(Starting)
    assert not [pid for pid in forked_process.descendants(os.getpid()) if "sleep\x00300" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


def test_model_that_cannot_be_called_at_all_leaves_every_law_undecided() -> None:
    class Mute(TransformerAdapter):
        def call(self, *_given: Any, **_more: Any) -> ModelOutput:
            raise RuntimeError("out of order")

    law = find_law("stateless")
    made = list(MeasurementRun(from_adapter(tiny_decoder(of=Mute)), [law]).findings())  # type: ignore[list-item]
    (finding,) = made
    assert finding.verdict == "undecided"
    assert finding.reason.startswith("a call that the law makes raised RuntimeError: out of order, test_sandbox.py:")


@forks
def test_interrupted_audit_reports_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "hang.py").write_text(
        "from orderproof.blocks.transformer_adapter import tiny_decoder\n"
        "from tests.auditing.decide.test_sandbox import Hanging\n\n\n"
        "class Seen(Hanging):\n    def act(self):\n        open('hangs', 'w').close()\n        super().act()\n\n\n"
        "def hang():\n    return tiny_decoder(of=Seen)\n",
        encoding="utf-8",
    )
    laws = [word for name in NAMES for word in ("--law", name)]
    command = [
        sys.executable,
        "-m",
        "orderproof",
        "audit",
        "hang.py:hang",
        *laws,
        "--json",
        "part.json",
        "--html",
        "part.html",
    ]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    process = start_interruptible(
        command,
        cwd=tmp_path,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
    )
    until = time.monotonic() + 120
    while not (tmp_path / "hangs").exists() and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "exit code 130: interrupted; 1 finding so far" in output
    report = Report.from_json((tmp_path / "part.json").read_text(encoding="utf-8"))
    assert report.interrupted
    assert "interrupted after 1 finding" in (tmp_path / "part.html").read_text(encoding="utf-8")
    assert [(f.law, f.verdict) for f in report.findings if f.law not in report.left] == [("cached_decoding", "held")]
    assert {f.reason for f in report.findings if f.law in report.left} == {"interrupted before it was decided"}
    assert [f.law for f in report.findings] == NAMES
    assert not forked_process.descendants(process.pid)


class Endless(torch.nn.Module):
    """Quick for its first call only, and only with seven tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = itertools.count(1)  # a counter that no recording sets back

    def forward(self, x: Tensor) -> Tensor:
        if next(self.calls) > 1 or x.shape[1] != 7:
            time.sleep(1)
        return x


def test_recording_that_takes_too_long_is_undecided_and_the_report_is_whole() -> None:
    report = audit(Endless(), laws=["causal"], inputs=torch.zeros(2, 7, 8), timeout=0.5)
    reason = "the graph was not recorded within 0.5 s"
    assert [(f.law, f.verdict, f.reason) for f in report.findings] == [("causal", "undecided", reason)]


def test_time_limit_ends_work_and_is_taken_back() -> None:
    with pytest.raises(TimeLimitExceeded), time_limit(0.05):
        time.sleep(5)
    with time_limit(0.05):
        pass
    time.sleep(0.1)
    with time_limit(None):
        assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
