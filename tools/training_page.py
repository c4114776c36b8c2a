"""Audit the collators, packing strategies and losses of transformers, and of TRL if it is installed, and write a page.

    python tools/training_page.py docs/evidence/training/training.md

A row is a tiny model of one architecture with random weights, a collator and a loss. Every law of training steps is
measured, but for that of several ranks; proofs are left out, and rollouts are those of `generate`. Samples have 5, 9
and 4 tokens, and some collators get labels of their last half. Trainers of preferences and rollouts weigh rows: their
laws are about the log-probabilities in their loss, and GRPO and RLOO sample two completions of each prompt.
"""

from __future__ import annotations

import argparse
import dataclasses
import platform
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.trainer_pt_utils import LabelSmoother

from orderproof.laws import training_laws
from orderproof.optional_packages import missing_packages
from orderproof.records.audit import Report
from orderproof.training.audit import StepAudit
from orderproof.training.fused_head import visible_logits
from orderproof.training.policy_step import PolicyStep
from orderproof.training.step_inputs import StepInputs

VOCABULARY = 40
ARCHITECTURES = ("llama", "gpt2", "qwen3", "mistral", "gpt_neox", "opt", "bloom", "olmo2")
SIGNS = {"pass": "pass", "fail": "**fail**", "undecided": "?", "not_applicable": ""}
HEAD = """# Collators, packing and losses

Written by `python tools/training_page.py docs/evidence/training/training.md`; not edited by hand.

{what}

An empty cell: the law does not apply to the batch. A question mark: undecided. The reasons are below the table.
"""


class Row(NamedTuple):
    """A combination: its names, its model, its collator and samples, and its loss."""

    architecture: str
    collator: str
    loss: str
    collate: Callable[[Any], Any] | None
    samples: list[Any]
    compute: Callable[[Any, Any], Any] | None = None
    model: Any = None  # of its own
    batch: Any = None  # of a trainer that makes its labels itself


def tokenizer(side: str = "right") -> PreTrainedTokenizerFast:
    """A tokenizer of words, made here."""
    words = {"<pad>": 0, "<eos>": 1, "<mask>": 2, **{f"w{k}": k for k in range(3, VOCABULARY)}}
    own = Tokenizer(models.WordLevel(words, unk_token="<eos>"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=own, pad_token="<pad>", eos_token="<eos>", mask_token="<mask>", padding_side=side
    )


def samples(*lengths: int, labelled: bool = False) -> list[dict[str, list[int]]]:
    """Samples of these lengths; with labels of their last half, if asked to."""
    draw = torch.Generator().manual_seed(5)
    rows = [torch.randint(3, VOCABULARY, (length,), generator=draw).tolist() for length in lengths]
    if not labelled:
        return [{"input_ids": row} for row in rows]
    return [{"input_ids": row, "labels": [-100] * (len(row) // 2) + row[len(row) // 2 :]} for row in rows]


def collators() -> Iterator[tuple[str, Callable[[Any], Any], list[Any]]]:
    """The collators of transformers, each with samples for it."""
    odd, labelled = samples(5, 9, 4), samples(5, 9, 4, labelled=True)
    for side in ("right", "left"):
        language = transformers.DataCollatorForLanguageModeling(tokenizer(side), mlm=False)
        yield f"DataCollatorForLanguageModeling, pads {side}", language, odd
    yield "DataCollatorForSeq2Seq", transformers.DataCollatorForSeq2Seq(tokenizer()), labelled
    yield "DataCollatorWithFlattening", transformers.DataCollatorWithFlattening(), labelled
    equal = samples(7, 7, 7, labelled=True)
    yield "default_data_collator", transformers.default_data_collator, equal
    yield "DataCollatorForSeq2Seq, pads left", transformers.DataCollatorForSeq2Seq(tokenizer("left")), labelled


def accumulated(model: Any, batch: Any, *, counted: bool) -> Any:
    """The sum of what a Trainer back-propagates for micro-batches of one row."""
    rows = range(len(batch["labels"]))
    count = (batch["labels"][:, 1:] != -100).sum()
    parts = [{name: value[row : row + 1] for name, value in batch.items()} for row in rows]
    if counted:
        return sum(model(**part, num_items_in_batch=count).loss for part in parts)
    return sum(model(**part).loss / len(parts) for part in parts)


def smoothed(model: Any, batch: Any) -> Any:
    """The label smoother of the Trainer."""
    given = dict(batch)
    return LabelSmoother(epsilon=0.1)(model(**given), given["labels"], shift_labels=True)


def rows_of_transformers() -> Iterator[Row]:
    """Every collator with every architecture, and other losses with the first one."""
    for architecture in ARCHITECTURES:
        for name, collate, given in collators():
            yield Row(architecture, name, "of the model", collate, given)
    first, (name, collate, given) = ARCHITECTURES[0], next(collators())
    masked = transformers.DataCollatorForLanguageModeling(tokenizer(), mlm=True)
    yield Row(first, "DataCollatorForLanguageModeling, masked words", "of the model", masked, given)
    yield Row(first, name, "label smoother of the Trainer", collate, given, smoothed)
    for counted in (True, False):
        text = "accumulated, with the number of labels" if counted else "accumulated, mean of micro-batches"
        yield Row(first, name, text, collate, given, lambda m, b, counted=counted: accumulated(m, b, counted=counted))


def rows_of_trl() -> Iterator[Row]:
    """The collators and packing strategies of TRL."""
    if missing_packages("trl", "datasets"):
        return
    import trl
    from datasets import Dataset
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling as Collator

    for free in (False, True):
        collate = Collator(pad_token_id=0, padding_free=free)
        yield Row("llama", f"TRL, padding-free {free}", "of the model", collate, samples(5, 9, 4))
        prompt = [{**x, "completion_mask": [0, 0] + [1] * (len(x["input_ids"]) - 2)} for x in samples(5, 9, 4)]
        yield Row("llama", f"TRL, completions only, padding-free {free}", "of the model", collate, prompt)
    for strategy in ("bfd", "bfd_split", "wrapped"):
        try:
            given = trl.pack_dataset(Dataset.from_list(samples(5, 9, 4)), 10, strategy)
        except ValueError:
            continue
        name = f"TRL, packing {strategy}"
        yield Row("llama", name, "of the model", Collator(pad_token_id=0, padding_free=True), given.to_list())


def rows_of_trainers() -> Iterator[Row]:
    """The SFTTrainer of TRL: its own data set, collator and fused loss."""
    if missing_packages("trl", "datasets"):
        return
    import trl
    from datasets import Dataset

    texts = [" ".join(f"w{token}" for token in x["input_ids"]) for x in samples(5, 9, 4)]
    whole, parts = [{"text": x} for x in texts], [{"prompt": x[:5], "completion": x[5:]} for x in texts]
    options: dict[str, tuple[list[dict[str, str]], dict[str, Any]]] = {
        "pads right": (whole, {}),
        "completions only": (parts, {}),
        "padding-free": (whole, {"padding_free": True, "max_length": None}),
        "completions only, padding-free": (parts, {"padding_free": True, "max_length": None}),
        "packing bfd": (whole, {"packing": True, "max_length": 12}),
        "packing bfd_split": (whole, {"packing": True, "packing_strategy": "bfd_split", "max_length": 8}),
        "packing wrapped": (whole, {"packing": True, "packing_strategy": "wrapped", "max_length": 8}),
        "activation checkpointing": (whole, {"gradient_checkpointing": True}),
    }
    plain = {"report_to": [], "use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    for name, (given, more) in options.items():
        for kind in ("nll", "dft"):
            trainer = trl.SFTTrainer(
                model=model_of("llama"), args=trl.SFTConfig(tempfile.mkdtemp(), loss_type=kind, **{**plain, **more}),
                train_dataset=Dataset.from_list(given), processing_class=tokenizer(),
            )  # fmt: skip

            if more.get("gradient_checkpointing"):
                trainer.model.gradient_checkpointing_enable()
            trainer.model.eval()  # its copies generate by the forward of this one

            def compute(model: Any, batch: Any, trainer: Any = trainer) -> Any:
                with visible_logits(model):
                    return trainer.compute_loss(model, dict(batch))

            prepared = trainer.train_dataset.to_list()
            yield Row("llama", f"SFTTrainer, {name}", kind, trainer.data_collator, prepared, compute, trainer.model)


def rows_of_policies() -> Iterator[Row]:
    """The trainers of TRL for preferences and rollouts, with the batch that the loss of each gives its model."""
    if missing_packages("trl", "datasets"):
        return
    for loss, trainer in trainers_of_policies():
        trainer.model.train()
        torch.manual_seed(0)
        trainer.current_gradient_accumulation_steps = 1
        inputs = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
        trainer.model.eval()
        with visible_logits(trainer.model):
            step = PolicyStep.of(trainer.model, partial(trainer.compute_loss, trainer.model, inputs))

        def compute(model: Any, batch: Any, step: PolicyStep = step) -> Any:
            with visible_logits(model):
                return step.loss(model, batch)

        yield Row("llama", type(trainer).__name__, loss, None, [], compute, trainer.model, step.batch)


def trainers_of_policies() -> Iterator[tuple[str, Any]]:
    """The losses and their trainers."""
    import trl
    from datasets import Dataset

    rows = [[f"w{token}" for token in x["input_ids"]] for x in samples(5, 9, 4)]
    given = [{"prompt": " ".join(x[:2]), "completion": f" {' '.join(x[2:])}"} for x in rows]
    chosen = [{"prompt": x["prompt"], "chosen": x["completion"], "rejected": f" {x['prompt']}"} for x in given]
    judged = [{**x, "label": k != 1} for k, x in enumerate(given)]
    plain = {"report_to": [], "use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    plain["per_device_train_batch_size"] = 3

    def made(kind: str, data: list[dict[str, Any]], loss: str, **more: Any) -> tuple[str, Any]:
        arguments, named = getattr(trl, f"{kind}Config"), {"loss_type": loss} if loss else {}
        torch.manual_seed(0)
        options = {
            "args": arguments(tempfile.mkdtemp(), **{**plain, **named, **more}), "processing_class": tokenizer(),
            "train_dataset": Dataset.from_list(data),
        }  # fmt: skip
        if "max_completion_length" in more:
            options["reward_funcs"] = lambda completions, **_: [float(len(set(x.split()))) for x in completions]
        return loss or "of the trainer", getattr(trl, f"{kind}Trainer")(model=saved(model_of("llama")), **options)

    for loss in ("sigmoid", "hinge", "ipo"):
        yield made("DPO", chosen, loss)
    for loss in ("kto", "apo_zero_unpaired"):
        yield made("KTO", judged, loss)
    asked = [{"prompt": x["prompt"]} for x in given]
    sampled = {"num_generations": 2, "max_completion_length": 6, "per_device_train_batch_size": 4}
    for loss in ("dapo", "grpo", "dr_grpo", "cispo"):
        yield made("GRPO", asked, loss, **sampled)
    yield made("RLOO", asked, "", **sampled)


def saved(model: Any) -> Any:
    """The model, with a folder from which a trainer can load another one as reference."""
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(folder)


def model_of(architecture: str) -> Any:
    """A tiny model with random weights."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(architecture)
    small = {
        "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
        "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "ffn_dim": 32, "word_embed_proj_dim": 16,
        "initializer_range": 0.4, "init_std": 0.4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
        "use_cache": False,
    }  # fmt: skip
    for name, value in small.items():
        if hasattr(config, name):
            setattr(config, name, value)
    return AutoModelForCausalLM.from_config(config)


def report_of(row: Row) -> Report:
    """The report of a combination."""
    model = model_of(row.architecture) if row.model is None else row.model
    given = StepInputs(model, row.batch, row.compute, row.collate, row.samples, "generate")
    step = dataclasses.replace(given.step(0), may_be_proved=False, weighs_labels=row.batch is not None)
    *_, report = StepAudit(None, None, row.architecture).reports_of(step)
    return report


def page(rows: list[Row]) -> str:
    """The page."""
    codes = [law.code for law in training_laws() if law.code != "OP708"]  # which needs a loss of several ranks
    versions = [f"transformers {transformers.__version__}", f"torch {torch.__version__}"]
    if not missing_packages("trl"):
        import trl

        versions.append(f"TRL {trl.__version__}")
    what = " ".join((__doc__ or "").split("\n\n")[2].split())
    lines = [
        HEAD.format(what=what),
        f"{len(rows)} combinations; {', '.join(versions)}, Python {platform.python_version()}.\n",
    ]
    lines.append(f"| model | collator | loss | {' | '.join(codes)} |")
    lines.append("| --- " * (3 + len(codes)) + "|")
    reasons: dict[str, list[str]] = {}
    for row in rows:
        cells = dict.fromkeys(codes, "")
        try:
            findings = report_of(row).findings
        except Exception as error:  # noqa: BLE001 - the page shows what each combination does
            findings = ()
            reasons.setdefault(f"not audited: {' '.join(str(error).split())[:200]}", []).append(_name(row))
        for finding in findings:
            if finding.code in cells:
                cells[finding.code] = SIGNS[finding.outcome]
            if finding.outcome in ("fail", "undecided"):
                reasons.setdefault(f"{finding.code} {finding.outcome}: {finding.reason}", []).append(_name(row))
        lines.append(f"| {row.architecture} | {row.collator} | {row.loss} | {' | '.join(cells.values())} |")
        print(lines[-1], flush=True)
    lines.append("\n## Failures and undecided laws\n")
    lines += [f"- {text}. In: {'; '.join(dict.fromkeys(names))}." for text, names in reasons.items()]
    return "\n".join(lines) + "\n"


def _name(row: Row) -> str:
    return f"{row.architecture}, {row.collator}" + ("" if row.loss == "of the model" else f", {row.loss}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    text = page([*rows_of_transformers(), *rows_of_trl(), *rows_of_trainers(), *rows_of_policies()])
    arguments.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
