"""The atlas of ports: variants, rows in processes of their own, a store that is resumed, the page and the scripts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orderproof.atlas.ports import worker
from orderproof.atlas.ports.document import PortsDocument, build_document, read_document
from orderproof.atlas.ports.engine_page import engine_page
from orderproof.atlas.ports.groups import difference_groups
from orderproof.atlas.ports.page import page
from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.runner import PortStore, requests, update_store
from orderproof.atlas.ports.script import assignments, has_script, script
from orderproof.atlas.ports.trial import FAMILIES, trial
from orderproof.atlas.ports.variants import variants
from orderproof.atlas.ports.worker import PortRequest, PortTask
from orderproof.cli.application import app
from orderproof.errors import UsageError
from orderproof.ports.engines.registry import find_engine
from orderproof.records.audit import PortCause
from tests.ports import planted_masks as masks
from tests.ports.planted_engine import PlantedEngine

PAGE = Path(__file__).parents[3] / "docs/evidence/ports/ports.json.gz"
WINDOW = PortCause(cause="window", setting="sliding_window", stated="6", assumed="no window", remaining=6e-7)
BASE = PortCause(
    cause="rotary base", setting="rope_parameters.rope_theta", stated="10000", assumed="1e+06, its own default",
    remaining=0.5,
)  # fmt: skip


def law(**values: object) -> PortLawResult:
    fields = {
        "law": "same_past_window", "verdict": "refuted", "difference": 0.9, "rounding": 5e-7, "first_token": 6,
        "tokens": 20, "causes": (WINDOW,), "explained": True,
    }  # fmt: skip
    return PortLawResult.model_validate({**fields, **values})


def row(name: str, *laws: PortLawResult, engine: str = "mlx", variant: str = "default") -> PortRow:
    return PortRow(
        name=name, variant=variant, engine=engine, engine_version="mlx-lm 0", transformers="5", model_type=name,
        laws=laws, finished_on="2026-01-01", values={"vocab_size": 99},
    )  # fmt: skip


def test_a_configuration_is_compared_with_each_scaling_that_it_can_state() -> None:
    assert list(variants("llama")) == ["default", "linear", "dynamic", "yarn", "llama3", "longrope"]
    assert list(variants("gpt2")) == ["default"]
    assert variants("phi")["linear"]["rope_parameters"]["partial_rotary_factor"] == 0.5
    assert len(variants("llama")["longrope"]["rope_parameters"]["long_factor"]) == 8


def test_encoders_without_a_language_model_are_asked_of_engines_that_return_embeddings() -> None:
    names = {each: {one.name for one in requests((), [find_engine(each)], scalings=False)} for each in ("vllm", "mlx")}
    assert {"llama", "bert", "modernbert"} <= names["vllm"]
    assert names["vllm"] - names["mlx"] >= {"modernbert", "distilbert"}


def test_rows_are_computed_once_and_a_second_run_reads_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = list(requests(["mistral", "vit"], [PlantedEngine(plants=(masks.window(7),))], scalings=False))
    with PortStore(tmp_path / "rows.jsonl") as store:
        first = update_store(wanted, store, lambda running, done, total: None)
    assert first[1].failure.startswith("arch:vit: transformers has no causal language model")
    difference = first[0].law("same_past_window")
    assert difference is not None
    assert [cause.assumed for cause in difference.causes] == ["7"]

    def refuse(request: PortRequest, close_in_child: Callable[[], None]) -> PortTask:
        raise AssertionError(request)

    monkeypatch.setattr(PortRequest, "start", refuse)
    with PortStore(tmp_path / "rows.jsonl") as store:
        assert update_store(wanted, store, lambda running, done, total: None) == first


@pytest.mark.slow
def test_an_architecture_with_the_text_model_of_another_has_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row_of(name: str, **changes: Any) -> PortRow:
        wanted = list(requests([name], [PlantedEngine(**changes)], scalings=False))
        with PortStore(tmp_path / "rows.jsonl") as store:
            return update_store(wanted, store, lambda running, done, total: None)[0]

    first = row_of("llama")
    monkeypatch.setattr(worker, "engine_findings", lambda *arguments: 1 / 0)
    assert row_of("llava").laws == first.laws
    for other in (row_of("mistral"), row_of("llava_next", distribution="torch")):  # of another version of the engine
        assert other.failure.startswith("ZeroDivisionError")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("something else\n")
    with pytest.raises(UsageError, match="expected a store of orderproof ports; line 1"):
        PortStore(tmp_path / "rows.jsonl")


def test_causes_that_older_keys_remove_are_another_group() -> None:
    both = law(causes=(BASE, WINDOW), with_older_keys=0.8, older_causes=(WINDOW,), older_explained=True)
    key = law(causes=(BASE,), with_older_keys=5e-7)
    groups = difference_groups([row("starcoder2", both), row("mistral", law()), row("qwen2", key)])
    found = {(group.status, group.cause and group.cause.setting): group.names for group in groups}
    assert found == {
        ("difference of the port", "sliding_window"): ["mistral", "starcoder2"],
        ("configuration of another version", "rope_parameters.rope_theta"): ["qwen2", "starcoder2"],
    }
    assert [sorted(group.alone) for group in groups] == [["qwen2"], ["mistral"]]
    assert [group.script for group in groups] == [
        "mlx_rope_theta_its_own_default_key.py",
        "mlx_sliding_window_no_window.py",
    ]


def test_the_page_counts_and_lists_the_rows() -> None:
    equal = law(verdict="held", difference=6e-7, first_token=None, causes=(), explained=False)
    raised = law(verdict="undecided", difference=None, reason="mlx raised ValueError: no")
    other = law(verdict="undecided", difference=None, reason="the reference raised ValueError: no")
    rows = [row("mistral", law()), row("llama", equal), row("phi", raised), row("glm", raised, other)]
    rows = [each.model_copy(update={"processor_seconds": 15.0}) for each in rows]
    text = page(build_document(rows, machine="a machine"))
    assert "| mlx | default | 4 | 1 | 1 | 0 | 0 | 0 | 1 | 1 |" in text
    assert "| window | `sliding_window`: 6, no window | difference of the port | 6 | 0.9 | mistral |" in text
    assert "| mistral | **0.9** from 6 | - | 2026-01-01 |" in text
    assert "| llama | same | - | 2026-01-01 |" in text
    assert "; 4 rows, 1.0 min of processor time." in text


def test_each_engine_has_a_page_with_its_versions_and_its_time() -> None:
    slow = row("llama", law(), engine="vllm").model_copy(update={"engine_seconds": 9.5, "import_seconds": 31.0})
    of_version = row("llama", law(verdict="held", causes=()), engine="mlx@0.31.3")
    other = row("gpt2", engine="vllm").model_copy(update={"engine_seconds": 0.1, "known": False})
    document = build_document([row("mistral", law()), slow, of_version, other], machine="a machine")
    text = page(document, "engines")
    assert "| [vllm](engines/vllm.md) | mlx-lm 0 | 2026-01-01 | 1 | A checkpoint with all calls takes it 9.5 s" in text
    assert "| llama | same |" not in text
    own = engine_page(document, "vllm")
    assert "(median of 1), after an import of 31 s." in own
    assert "| llama | **0.9** from 6 |" in own
    assert "mistral" not in own
    assert engine_page(document, "mlx@0.31.3").startswith("# MLX (mlx-lm) 0.31.3\n")


def test_a_document_is_written_and_read_back(tmp_path: Path) -> None:
    document = build_document([row("mistral", law())], machine="a machine")
    for name in ("ports.json", "ports.json.gz"):
        document.write(tmp_path / name)
        assert read_document(tmp_path / name) == document
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match="expected an atlas of ports of schema 1: .* fields are missing"):
        read_document(tmp_path / "other.json")


def test_values_are_written_as_source_in_few_lines() -> None:
    inner = {"rope_type": "longrope", "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "short_factor": [1.5] * 7}
    value = {"b": [1.5, None, True], "a": {"x": "y"}, "long": [1, 2] * 30, "runs": ["x"] * 5 + ["y"], "rope": inner}
    lines = assignments("values", value)
    names: dict[str, object] = {}
    exec("\n".join(lines), names)  # text of this test
    assert names["values"] == value
    assert len(lines) == 2
    assert max(map(len, lines)) <= 120
    assert "[1, 2] * 30" in lines[-1]


def test_a_script_has_25_lines_and_can_be_sent_to_its_project(published: PortsDocument) -> None:
    scripts = {group.script: script(group) for group in difference_groups(published.rows)}
    assert not [name for name, text in scripts.items() if text.count("\n") > 25]
    text = scripts["mlx_sliding_window_no_window.py"]
    first, *_ = text.splitlines()
    assert first == '"""mistral, mlx-lm 0.32.2: sliding_window: 6 in transformers, no window here."""'
    assert "orderproof" not in text
    for each in scripts.values():
        compile(each, "script.py", "exec")


@pytest.fixture(scope="module")
def published() -> PortsDocument:
    return read_document(PAGE)


@pytest.mark.slow
def test_published_scripts_show_their_differences(published: PortsDocument, tmp_path: Path) -> None:
    groups = [g for g in difference_groups(published.rows) if (g.engine, g.variant) == ("mlx", "default")]
    files = []
    for setting, needs_older_keys in (
        ("sliding_window", False),
        ("rope_parameters.rope_theta", False),
        ("hidden_act", True),
    ):
        of_setting = [g for g in groups if g.cause is not None and g.cause.setting == setting]
        group = next(g for g in of_setting if ("update(older)" in script(g)) == needs_older_keys)
        files.append(PAGE.parent / "scripts" / group.script)
        assert files[-1].read_text() == script(group)
    for file in files:  # each in a process of its own: MLX starts threads, and later tests fork
        done = subprocess.run(
            [sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path
        )
        found = [float(each) for each in re.findall(r"[\d.]+(?:e-?\d+)?", done.stdout)]
        assert max(found) > 1e-4
        if file is files[0]:
            assert [each > 1e-3 for each in found].index(True) == 6


def test_the_published_table_of_families_has_each_with_its_command(published: PortsDocument) -> None:
    title, text, table = trial(published.rows)
    lines = table.splitlines()[2:]
    assert [line.split(" | ")[0].strip("| ") for line in lines] == list(FAMILIES)
    assert all(
        f"`orderproof audit arch:{name} --against mlx`" in line for name, line in zip(FAMILIES, lines, strict=True)
    )
    assert not [line for line in lines if "not explained" in line]
    assert "| mistral | yes | 0.94 | 6 | `sliding_window`: 6, no window |" in table
    assert f"{title}\n\n{text}\n\n{table}" in page(published)
    assert trial([row for row in published.rows if row.name != "llama"]) == []


def test_the_published_page_and_scripts_are_those_of_the_published_rows(published: PortsDocument) -> None:
    assert (PAGE.parent / "ports.md").read_text() == page(published, "engines")
    pages = {f"{name}.md": engine_page(published, name) for name in {each.engine for each in published.rows}}
    assert {file.name: file.read_text() for file in (PAGE.parent / "engines").glob("*.md")} == pages
    assert all(map(has_script, difference_groups(published.rows)))
    scripts = {group.script: script(group) for group in difference_groups(published.rows)}
    assert {file.name: file.read_text() for file in (PAGE.parent / "scripts").glob("*.py")} == scripts


def test_every_published_difference_has_a_cause_or_says_that_it_has_none(published: PortsDocument) -> None:
    known = [each for each in published.rows if each.known and not each.failure]
    assert len({each.name for each in known if each.engine == "mlx"}) > 60
    for each in known:
        for result in each.differences:
            assert result.explained or "no setting was found" in result.reason or "unexplained" in result.reason


def test_the_command_reads_a_document_and_writes_the_page(tmp_path: Path) -> None:
    source = tmp_path / "ports.json"
    build_document([row("mistral", law())], machine="a machine").write(source)
    arguments = ["ports", "--from-json", str(source), "--markdown", str(tmp_path / "p.md"), "--scripts", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "mlx (default): sliding_window: no window: mistral" in result.stdout
    assert (tmp_path / "p.md").read_text().startswith("# Ports of transformers")
    assert "load_model" in (tmp_path / "mlx_sliding_window_no_window.py").read_text()
    assert find_engine("mlx").name == "mlx"
