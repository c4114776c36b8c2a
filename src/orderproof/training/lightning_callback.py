"""A callback for Lightning: the first batch is audited before the step on it.

    Trainer(callbacks=[LightningAudit()])

The loss is that of the module's `training_step`. Lightning need not be installed to import this: any trainer that calls
`on_train_batch_start` with a module that has a `training_step` will do.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from torch import nn

from orderproof.errors import UnsupportedCallError
from orderproof.laws.training import TrainingBatch, TrainingStep
from orderproof.optional_packages import missing_packages
from orderproof.training.first_step import FirstStepAudit
from orderproof.training.micro_batches import some_rows

_MODULES = ("lightning", "lightning.pytorch.callbacks"), ("pytorch_lightning", "pytorch_lightning.callbacks")
_LOGS = ("log", "log_dict", "manual_backward")


def _base() -> Any:
    """The class of callbacks of the Lightning that is installed; `object` without one."""
    module = next((module for package, module in _MODULES if not missing_packages(package)), None)
    return importlib.import_module(module).Callback if module else object


class LightningAudit(_base()):  # type: ignore[misc]
    """Audits the first batch of a run, and changes nothing of the run.

    `action` is "warn", which logs, or "fail", which raises `FailedStepError` after a violation. `report` is a file for
    the report as JSON, `laws` are names or codes.
    """

    def __init__(
        self,
        *,
        action: Literal["warn", "fail"] = "warn",
        report: str | Path | None = None,
        laws: Sequence[str] | None = None,
    ) -> None:
        self.audit, self.is_done = FirstStepAudit(action, report, laws), False

    def on_train_batch_start(self, trainer: Any, pl_module: nn.Module, batch: Any, batch_idx: int) -> None:
        """Audit the first batch."""
        if self.is_done or not getattr(trainer, "is_global_zero", True):
            return
        self.is_done = True

        def loss(model: Any, given: Any) -> Any:
            del model  # the one that the module calls
            with _unlogged(pl_module):
                result = pl_module.training_step(given, batch_idx)  # type: ignore[operator]
            return result["loss"] if isinstance(result, Mapping) else result

        rows = some_rows(batch)
        self.audit.run(
            pl_module, rows, loss, pl_module, name=type(pl_module).__name__, wrapped=getattr(trainer, "model", None),
            share=1.0 if rows is batch else len(next(iter(rows.values()))) / len(next(iter(batch.values()))),
            logits_of=lambda given: _model_of_logits(pl_module, given, loss),
        )  # fmt: skip


def _model_of_logits(module: nn.Module, batch: Any, loss: Any) -> nn.Module:
    """The module that returns the logits: a part of the Lightning module, else itself."""
    for part in module.children():
        with suppress(UnsupportedCallError):
            TrainingStep(part, TrainingBatch.of(batch), loss).logits(TrainingBatch.of(batch))
            return part
    return module


@contextmanager
def _unlogged(module: nn.Module) -> Iterator[None]:
    """A block in which the module logs nothing."""
    before = {name: module.__dict__[name] for name in _LOGS if name in module.__dict__}
    module.__dict__.update(dict.fromkeys(_LOGS, lambda *_, **__: None))
    try:
        yield
    finally:
        for name in _LOGS:
            module.__dict__.pop(name)
        module.__dict__.update(before)
