"""A script shows a planted defect with the library alone, and shows nothing once the defect is repaired."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, MoshiConfig
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from orderproof import audit, reproduce
from orderproof.errors import ReproductionError, UsageError
from orderproof.models import from_module, load
from orderproof.report.html_page import render_html
from orderproof.reproduction.model_code import config_values, dictionary_lines
from orderproof.reproduction.reproduction import run_script, with_scripts
from orderproof.reproduction.tensor_code import TensorVariables

MAX_LINES = 25


def restart_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Llama counts positions from 0 in each call."""
    original = LlamaRotaryEmbedding.forward

    def forward(self: Any, x: Tensor, position_ids: Tensor) -> Any:
        return original(self, x, position_ids - position_ids[:, :1])

    monkeypatch.setattr(LlamaRotaryEmbedding, "forward", forward)


def add_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """BERT adds the mean of a row, pads included, to each token."""
    original = BertEmbeddings.forward

    def forward(self: Any, *given: Any, **named: Any) -> Any:
        embedded = original(self, *given, **named)
        return embedded + embedded.mean(1, keepdim=True)

    monkeypatch.setattr(BertEmbeddings, "forward", forward)


def lines(script: str) -> int:
    return sum(bool(line.strip()) for line in script.splitlines())


@pytest.mark.parametrize(
    ("plant", "law", "spec"),
    [
        (restart_positions, "cached_decoding", "arch:llama"),
        (restart_positions, "chunked_prefill", "arch:llama"),
        (add_mean, "padding", "arch:bert"),
        (add_mean, "batch_composition", "arch:bert"),
    ],
)
def test_the_script_of_a_planted_defect_shows_it_and_not_its_repair(
    plant: Any, law: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as planted:
        plant(planted)
        subject = load(spec, tiny=True)
        failed = next(f for f in audit(subject, laws=[law]).findings if f.outcome == "fail")
        made = reproduce(subject, failed)
        assert run_script(made.script) == 1
    assert run_script(made.script) == 0
    assert lines(made.script) <= MAX_LINES
    assert "orderproof" not in made.script
    for heading in (
        "## Versions",
        "## Configuration that differs",
        "## Severity",
        "## Where the two runs first differ",
    ):
        assert heading in made.issue
    assert made.script in made.issue


def test_the_page_shows_the_script_of_a_failed_check_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    restart_positions(monkeypatch)
    subject = load("arch:llama", tiny=True)
    report = with_scripts(subject, audit(subject, laws=["chunked_prefill"]))
    (finding,) = report.findings
    assert "LlamaModel" in finding.script
    page = render_html(report)
    assert "reproduce without orderproof" in page
    assert "expected[:3].tolist()" in page
    assert '"intermediate_size": 128' not in page.split('class="script"')[1].split("</details>")[0]


def test_a_law_that_holds_has_no_script() -> None:
    subject = load("arch:llama", tiny=True)
    (finding,) = audit(subject, laws=["use_cache"]).findings
    with pytest.raises(UsageError, match="expected a refuted law; OP404 use_cache is held"):
        reproduce(subject, finding)


class Running(nn.Module):
    """Each token gets the sum of all rows."""

    def forward(self, x: Tensor) -> Tensor:
        return x + x.sum(0, keepdim=True)


def test_a_module_of_another_library_has_no_script() -> None:
    subject = from_module(Running(), torch.randn(2, 7, 8))
    failed = next(f for f in audit(subject, laws=["batch"]).findings if f.verdict == "refuted")
    with pytest.raises(ReproductionError, match="models of transformers only"):
        reproduce(subject, failed)


def test_a_configuration_is_written_with_the_values_that_are_not_derived() -> None:
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=4)
    assert config_values(config) == {"hidden_size": 64, "num_attention_heads": 4}
    values = config_values(MoshiConfig(hidden_size=64, num_attention_heads=4))
    assert values["hidden_size"] == 64
    assert MoshiConfig(**values).num_attention_heads == 4


def test_a_long_dictionary_is_written_over_several_statements() -> None:
    written = dictionary_lines("sizes", {f"name_of_a_value_{k}": k for k in range(12)})
    assert max(map(len, written)) <= 120
    namespace: dict[str, Any] = {}
    exec("\n".join(written), namespace)
    assert namespace["sizes"] == {f"name_of_a_value_{k}": k for k in range(12)}


def test_tensors_are_slices_of_a_few_variables() -> None:
    variables = TensorVariables()
    ids = torch.arange(14).reshape(2, 7)
    assert variables.expression("input_ids", ids) == "ids"
    assert variables.expression("input_ids", ids[:, 2:4]) == "ids[:, 2:4]"
    assert variables.expression("input_ids", ids[[1, 0]]) == "ids[[1, 0]]"
    assert variables.expression("attention_mask", torch.ones(2, 7, dtype=torch.long)) == "mask"
    namespace: dict[str, Any] = {"torch": torch}
    exec("\n".join(variables.lines), namespace)
    assert torch.equal(namespace["ids"], ids)


def test_a_long_tensor_with_few_changes_names_the_changes() -> None:
    variables = TensorVariables()
    ids = torch.randint(8, 99, (1, 200), generator=torch.Generator().manual_seed(0))
    other = ids.clone()
    other[0, 7] = 1
    variables.expression("input_ids", ids)
    variables.expression("input_ids", other)
    assert len(variables.lines) == 3
    namespace: dict[str, Any] = {"torch": torch}
    exec("\n".join(variables.lines), namespace)
    assert torch.equal(namespace["ids2"], other)
