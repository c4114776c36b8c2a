"""The output of each script shows the violation of its finding."""

from __future__ import annotations

import io
import re
import runpy
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import torch

from orderproof.atlas.document import read_document

FOLDER = Path(__file__).parents[2] / "docs" / "evidence" / "findings"
SCRIPTS = sorted(FOLDER.glob("*.py"))
GENERATED = [s for s in SCRIPTS if "raise SystemExit(difference" in s.read_text(encoding="utf-8")]
BY_HAND = [s for s in SCRIPTS if s not in GENERATED]
MAX_LINES = {True: 25, False: 20}  # of a generated script, and of one written by hand
VISIBLE = 1e-5  # a relative change larger than float32 rounding


def printed(script: Path) -> str:
    """The output of a script, run in this process: importing torch and transformers again takes most of its time."""
    out = io.StringIO()
    with redirect_stdout(out), warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        runpy.run_path(str(script), run_name="__main__")
    return out.getvalue()


def exit_code(text: str) -> int:
    """The exit code of a script, run in this process."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        with pytest.raises(SystemExit) as stop:
            exec(compile(text, "script", "exec"), {"__name__": "__main__"})
    return int(stop.value.code or 0)


@pytest.mark.parametrize("script", GENERATED, ids=lambda s: s.stem)
def test_a_generated_script_exits_with_1(script: Path) -> None:
    assert exit_code(script.read_text(encoding="utf-8")) == 1


@pytest.mark.parametrize(
    ("name", "defect", "correct"),
    [
        ("doge_flex", '"flex_attention"', '"eager"'),
        ("minimax_positions", '["linear_attention", "full_attention"]', '["full_attention", "linear_attention"]'),
        ("minimax_reorder", "past.reorder_cache", "str"),
    ],
)
def test_a_generated_script_exits_with_0_where_there_is_no_defect(name: str, defect: str, correct: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert defect in text
    if name == "minimax_reorder":
        text = text.replace("ids[[1, 0]", "ids[[0, 1]")
    assert exit_code(text.replace(defect, correct)) == 0


@pytest.mark.parametrize("script", [s for s in BY_HAND if s.stem.endswith("_padding")], ids=lambda s: s.stem)
def test_pads_change_a_real_token(script: Path) -> None:
    found = re.search(r"when the pads change: \[(.*)\]", printed(script))
    assert found is not None
    assert max(float(x) for x in found[1].split(",")) > VISIBLE


@pytest.mark.parametrize("script", [s for s in BY_HAND if s.stem.endswith("_cache")], ids=lambda s: s.stem)
def test_cache_changes_the_output(script: Path) -> None:
    found = re.findall(r"and its cache: \[(.*)\]", printed(script))
    assert found
    for each in found:
        assert max(float(x) for x in each.split(",")) > VISIBLE


def test_blt_does_not_read_its_own_rope_parameters() -> None:
    assert float(printed(FOLDER / "blt_ignored_arguments.py").split()[-1]) == 0


def test_deberta_reads_position_ids_only_where_it_adds_them_to_its_input() -> None:
    text = printed(FOLDER / "deberta_position_ids.py")
    found = {biased: float(x) for biased, x in re.findall(r"=(\w+): .* by ([\d.e-]+)", text)}
    assert found["True"] > VISIBLE
    assert found["False"] == 0


def test_generate_has_other_positions_than_roberta_and_those_of_bert() -> None:
    found = re.findall(
        r"(\w+): relative difference of the first logits .*: ([\d.e-]+)", printed(FOLDER / "roberta_generate.py")
    )
    seen = {name for name, change in found if float(change) > VISIBLE}
    assert len(found) == 7
    assert {name for name, _ in found} - seen == {"Bert"}


def test_csm_raises_if_there_are_as_many_rows_as_tokens() -> None:
    made = dict(re.findall(r"(\d) rows of 4 tokens: (.*)", printed(FOLDER / "csm_rows.py")))
    assert made["3"] == made["5"] == "done"
    assert "too many indices" in made["4"]


def test_t5_with_flex_attention_raises_for_more_than_one_row() -> None:
    made = re.findall(r"(.*), batch of (\d): (.*)", printed(FOLDER / "t5_flex.py"))
    assert [(name, rows) for name, rows, outcome in made if outcome != "done"] == [("flex_attention", "2")]


def test_llama_cast_is_less_accurate_than_llama_loaded() -> None:
    off = dict(re.findall(r"(loaded|cast): off by ([\d.e-]+)", printed(FOLDER / "llama_cast.py")))
    assert float(off["cast"]) > 2 * float(off["loaded"])


def test_the_table_of_a_built_model_is_less_accurate_than_that_of_a_loaded_one() -> None:
    off = re.findall(r"(\w+)Config (built|loaded): off by ([\d.e-]+)", printed(FOLDER / "gptj_built.py"))
    assert [(name, how) for name, how, _ in off] == [
        (name, how) for name in ("GPTJ", "CodeGen") for how in ("built", "loaded")
    ]
    assert all((float(number) > 1e-2) is (how == "built") for _, how, number in off)


def test_youtu_loads_another_embedding_than_was_saved() -> None:
    made = re.findall(r"(saved|loaded): embedding ([\d.]+), .* \[(.*)\]", printed(FOLDER / "youtu_loaded.py"))
    embedding = {name: float(number) for name, number, _ in made}
    logits = {name: [abs(float(x)) for x in numbers.split(",")] for name, _, numbers in made}
    assert embedding == {"saved": 1, "loaded": 0}
    assert min(logits["saved"]) > VISIBLE
    assert max(logits["loaded"]) == 0


def test_a_quantised_cache_has_the_length_of_before_the_crop() -> None:
    made = re.findall(r"(\w+) length (\d) off by ([\d.e-]+)", printed(FOLDER / "quantised_cache_crop.py"))
    lengths = {name: int(length) for name, length, _ in made}
    off = {name: float(number) for name, _, number in made}
    assert lengths == {"dynamic": 7, "quantised": 8}
    assert off["dynamic"] < VISIBLE < off["quantised"]


def test_reformer_hashes_into_the_buckets_of_its_first_call() -> None:
    text = printed(FOLDER / "reformer_first_call.py")
    assert "first call: num_buckets [4, 4]" in text
    assert "second call: num_buckets 4" in text
    assert float(text.split()[-1]) > VISIBLE


def test_phi4_vision_is_causal_with_one_backend_and_not_with_the_other() -> None:
    changes = dict(re.findall(r"(eager|sdpa): .* by ([\d.e-]+)", printed(FOLDER / "phi4_vision_causal.py")))
    assert float(changes["eager"]) > VISIBLE
    assert float(changes["sdpa"]) == 0


def test_every_violation_of_the_atlas_is_explained_by_a_script() -> None:
    shown = {
        (row.name, result.law)
        for row in read_document(FOLDER.parent / "atlas" / "atlas.json.gz").rows
        for result in (*row.laws, *row.other_output_laws)
        if result.verdict == "refuted" and result.expected == "holds"
    }
    last = [line.split(" | ")[-1] for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()]
    explained = {
        (name, law)
        for cell in last
        for name, laws in re.findall(r"`([\w-]+)` \(([^)]*)\)", cell)
        for law in re.findall(r"\w+", laws)
    }
    assert shown
    assert shown == explained


def test_every_script_is_in_the_table_and_short() -> None:
    table = (FOLDER / "README.md").read_text()
    assert len(SCRIPTS) >= 5
    for script in SCRIPTS:
        assert f"({script.name})" in table
        lines = sum(bool(line.strip()) for line in script.read_text(encoding="utf-8").splitlines())
        assert lines <= MAX_LINES[script in GENERATED]


def test_the_list_of_generated_scripts_is_that_of_the_tool() -> None:
    tool = (FOLDER.parents[2] / "tools" / "finding_scripts.py").read_text(encoding="utf-8")
    assert {script.stem for script in GENERATED} == set(re.findall(r'^    "(\w+)": \(', tool, flags=re.MULTILINE))
