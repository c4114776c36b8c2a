"""The processor time of all laws of training steps, and in multiples of one training step.

    python benchmarks/training_laws.py                                   half a minute
    python benchmarks/training_laws.py --checkpoint 234                  and a checkpoint of 234 million parameters

A tiny Llama with its own loss and padded rows; a larger one with 4 rows of 128 tokens, by the audit and by the callback
of a Trainer. Imports are not counted. Time is that of this process and of those that it waited for. The checkpoint is
one of benchmarks/checkpoints.py, written, and loaded in float32.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from checkpoints import VOCABULARY, write_checkpoint
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from orderproof import training
from orderproof.training import first_step
from orderproof.training.trainer_callback import TrainerAudit


def seconds() -> float:
    """The processor time of this process and of its children [s]."""
    return sum(os.times()[:4])


def llama(width: int, layers: int, vocabulary: int) -> nn.Module:
    """A Llama with random weights."""
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=4, initializer_range=0.1, pad_token_id=0, use_cache=False,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def rows(count: int, length: int, vocabulary: int) -> dict[str, Tensor]:
    """Rows of tokens with pads on the right, and labels."""
    tokens = torch.randint(1, vocabulary, (count, length))
    mask = (torch.arange(length) < length - torch.arange(count)[:, None] * (length // 8)).long()
    return {"input_ids": tokens * mask, "attention_mask": mask, "labels": tokens.masked_fill(mask == 0, -100)}


def step_time(model: Any, batch: dict[str, Tensor]) -> float:
    """The processor time of a forward and a backward pass, the second of two [s]."""
    took = 0.0
    for _ in range(2):
        began = seconds()
        model(**batch).loss.backward()
        took = seconds() - began
        model.zero_grad()
    return took


def audited(model: nn.Module, batch: dict[str, Tensor], laws: list[str] | None = None) -> float:
    """The processor time of an audit [s]."""
    began = seconds()
    training.audit(model, batch, laws=laws)
    return seconds() - began


def by_callback(model: nn.Module, batch: dict[str, Tensor]) -> float:
    """The wall time of an audit by the callback, in steps of its Trainer."""
    first_step.LEAST_SECONDS = 0.0
    given: Any = [{name: value[k] for name, value in batch.items()} for k in range(len(batch["labels"]))]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, max_steps=1, per_device_train_batch_size=len(given), report_to=[], use_cpu=True, disable_tqdm=True,
            save_strategy="no",
        )  # fmt: skip
        trainer = Trainer(model=model, args=arguments, train_dataset=given)
        callback = TrainerAudit(trainer)
        trainer.add_callback(callback)
        taken: list[float] = []
        run = callback.audit.run

        def timed(*positional: Any, **named: Any) -> Any:
            began = time.perf_counter()
            found = run(*positional, **named)
            taken.append(time.perf_counter() - began)
            return found

        callback.audit.run = timed  # type: ignore[method-assign]
        trainer.train()
    began = time.perf_counter()
    step_time(model, batch)
    return taken[0] / ((time.perf_counter() - began) / 2)


def checkpoint(millions: float) -> nn.Module:
    """A checkpoint with random weights, written and loaded."""
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name), millions)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    model.config.use_cache = False
    return model  # type: ignore[no-any-return]


def print_steps(model: nn.Module, batch: dict[str, Tensor]) -> None:
    """Print what the laws cost in training steps."""
    millions, step = sum(x.numel() for x in model.parameters()) / 1e6, step_time(model, batch)
    laws = ["OP702", "OP703", "OP704", "OP705", "OP706", "OP707"]
    every, measured = audited(model, batch), audited(model, batch, laws)
    print(f"{type(model).__name__} of {millions:.0f} million parameters, a step of {step:.2f} s:")
    print(f"  all laws {every / step:.1f} steps; without OP701 and its proof {measured / step:.1f} steps", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=float, metavar="MILLIONS", help="parameters of a checkpoint, in millions")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    audited(llama(16, 1, 19), rows(3, 9, 19))  # first calls
    print(f"all laws of a tiny Llama with its loss: {audited(llama(32, 2, 50), rows(3, 9, 50)):.1f} s")
    model, batch = llama(384, 4, 4000), rows(4, 128, 4000)
    print_steps(model, batch)
    print(f"  the callback of a Trainer {by_callback(model, batch):.1f} steps", flush=True)
    if chosen.checkpoint:
        print_steps(checkpoint(chosen.checkpoint), rows(4, 128, VOCABULARY))


if __name__ == "__main__":
    main()
