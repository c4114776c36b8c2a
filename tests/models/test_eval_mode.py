"""Modules that refuse eval(), and calls that leave a monitor thread of a library behind."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.models import from_module

IDS = torch.randint(0, 12, (2, 7), generator=torch.Generator().manual_seed(0))


class Decoder(nn.Module):
    """Attention over ids; with `leaks` each token sees the next one."""

    def __init__(self, *, leaks: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.leaks = int(leaks)
        self.words, self.qkv = nn.Embedding(12, 16), nn.Linear(16, 48)

    def forward(self, input_ids: Tensor) -> Tensor:
        n = input_ids.shape[1]
        query, key, value = self.qkv(self.words(input_ids)).chunk(3, -1)
        mask = torch.ones(n, n, dtype=torch.bool).tril(self.leaks)
        return (query @ key.mT / 4).masked_fill(~mask, -torch.inf).softmax(-1) @ value


class RefusesInClass(Decoder):
    """Its class has one mode."""

    def train(self, mode: bool = True) -> Any:
        if not mode:
            raise RuntimeError("this module has no eval mode")
        return super().train(mode)


class RefusesEval(Decoder):
    """Only `eval` raises."""

    def eval(self) -> Any:
        raise NotImplementedError


class Outer(nn.Module):
    """A module with a part that refuses."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part, self.drop = part, nn.Dropout(0.5)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.drop(self.part(input_ids))


def _exported(*, leaks: bool, is_open: bool = True) -> nn.Module:
    shapes = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},) if is_open else None
    return torch.export.export(Decoder(leaks=leaks), (IDS,), dynamic_shapes=shapes).module()


def _copied(*, leaks: bool) -> nn.Module:
    return copy.deepcopy(Outer(RefusesInClass(leaks=leaks)))


MAKERS: dict[str, tuple[Callable[..., nn.Module], str]] = {
    "exported": (_exported, "the module"),
    "exported at one length": (lambda *, leaks: _exported(leaks=leaks, is_open=False), "the module"),
    "exported part": (lambda *, leaks: Outer(_exported(leaks=leaks)), "its part 'part'"),
    "class": (RefusesInClass, "the module"),
    "eval only": (RefusesEval, "the module"),
    "part": (_copied, "its part 'part'"),
}


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_a_module_that_refuses_eval_is_audited_in_its_mode(name: str) -> None:
    make, refusing = MAKERS[name]
    for leaks, verdict in ((False, "proved"), (True, "refuted")):
        subject = from_module(make(leaks=leaks), (IDS,), assume={"model_kind": "causal_lm"})
        assert f"{refusing} refuses eval(): it is audited in the mode that it has" in subject.notes
        findings = {f.law: f for f in audit(subject, laws=["causal", "stateless"]).findings}
        assert findings["causal"].verdict == verdict, findings["causal"].reason
        assert findings["stateless"].outcome == "pass"


def test_a_copy_of_a_part_that_refuses_is_switched_itself() -> None:
    module = Outer(RefusesInClass(leaks=False))
    from_module(module, (IDS,))
    copied = copy.deepcopy(module)
    assert copied.part.eval() is copied.part
    assert not copied.drop.training
    assert not module.drop.training


class ProgressDecoder(Decoder):
    """A progress bar over two passes, whose class starts a monitor thread."""

    def forward(self, input_ids: Tensor) -> Tensor:
        tqdm = pytest.importorskip("tqdm").tqdm
        found = torch.zeros(())
        for _ in tqdm(range(2), disable=False, file=_Silent()):
            found = found + super().forward(input_ids)
        return found


class _Silent:
    def write(self, _: str) -> None:
        """Nothing is shown."""

    def flush(self) -> None:
        """Nothing is shown."""


@pytest.fixture
def _ends_its_monitor() -> Iterator[None]:
    yield
    bar = pytest.importorskip("tqdm").tqdm
    if bar.monitor is not None:
        bar.monitor.exit()
        bar.monitor = None


@pytest.mark.usefixtures("_ends_its_monitor")
def test_a_progress_bar_is_no_reason_to_refuse() -> None:
    for leaks, verdict in ((False, "proved"), (True, "refuted")):
        subject = from_module(ProgressDecoder(leaks=leaks), (IDS,), assume={"model_kind": "causal_lm"})
        (causal,) = audit(subject, laws=["causal"]).findings
        assert causal.verdict == verdict, causal.reason


class _OfTheModel(threading.Thread):
    """A daemon whose code is that of the model."""

    def run(self) -> None:
        threading.Event().wait(30)


@pytest.mark.trials
@pytest.mark.parametrize(
    "start",
    [
        lambda: _OfTheModel(daemon=True).start(),
        lambda: threading.Thread(target=threading.Event().wait, args=(30,), daemon=True).start(),
        lambda: threading.Timer(30, print).start(),
    ],
    ids=["class", "target", "timer"],
)
def test_another_thread_is_a_reason(start: Callable[[], None]) -> None:
    class Starts(Decoder):
        def forward(self, input_ids: Tensor) -> Tensor:
            start()
            return super().forward(input_ids)

    with pytest.raises(SubjectError, match="left 1 thread running"):
        from_module(Starts(leaks=False), (IDS,))
