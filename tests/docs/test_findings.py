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

FOLDER = Path(__file__).parents[2] / "docs" / "findings"
SCRIPTS = sorted(FOLDER.glob("*.py"))
VISIBLE = 1e-5  # a relative change larger than float32 rounding


def printed(script: Path) -> str:
    """The output of a script, run in this process: importing torch and transformers again takes most of its time."""
    out = io.StringIO()
    with redirect_stdout(out), warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        runpy.run_path(str(script), run_name="__main__")
    return out.getvalue()


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem.endswith("_padding")], ids=lambda s: s.stem)
def test_pads_change_a_real_token(script: Path) -> None:
    found = re.search(r"when the pads change: \[(.*)\]", printed(script))
    assert found is not None
    assert max(float(x) for x in found[1].split(",")) > VISIBLE


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem.endswith("_cache")], ids=lambda s: s.stem)
def test_cache_changes_the_output(script: Path) -> None:
    found = re.findall(r"and its cache: \[(.*)\]", printed(script))
    assert found
    for each in found:
        assert max(float(x) for x in each.split(",")) > VISIBLE


def test_blt_does_not_read_its_own_rope_parameters() -> None:
    assert float(printed(FOLDER / "blt_ignored_arguments.py").split()[-1]) == 0


def test_prophetnet_clamps_positions() -> None:
    within, past = re.findall(r"changes the first by ([\d.e-]+)", printed(FOLDER / "prophetnet_context_length.py"))
    assert float(within) > VISIBLE
    assert float(past) == 0


def test_csm_raises_if_there_are_as_many_rows_as_tokens() -> None:
    made = dict(re.findall(r"(\d) rows of 4 tokens: (.*)", printed(FOLDER / "csm_rows.py")))
    assert made["3"] == made["5"] == "done"
    assert "too many indices" in made["4"]


def test_t5_with_flex_attention_raises_for_more_than_one_row() -> None:
    made = re.findall(r"(.*), batch of (\d): (.*)", printed(FOLDER / "t5_flex.py"))
    assert [(name, rows) for name, rows, outcome in made if outcome != "done"] == [("flex_attention", "2")]


def test_doge_is_causal_with_eager_and_sdpa_and_not_with_flex() -> None:
    changes = dict(re.findall(r"(\w+): the last token .* by ([\d.e-]+)", printed(FOLDER / "doge_flex.py")))
    assert float(changes["eager"]) == float(changes["sdpa"]) == 0
    assert float(changes["flex_attention"]) > VISIBLE


def test_llama_cast_is_less_accurate_than_llama_loaded() -> None:
    off = dict(re.findall(r"(loaded|cast): off by ([\d.e-]+)", printed(FOLDER / "llama_cast.py")))
    assert float(off["cast"]) > 2 * float(off["loaded"])


def test_aimv2_text_is_causal_with_one_backend_and_not_with_the_other() -> None:
    changes = dict(re.findall(r"(eager|sdpa): .* by ([\d.e-]+)", printed(FOLDER / "aimv2_text_causal.py")))
    assert float(changes["eager"]) == 0
    assert float(changes["sdpa"]) > VISIBLE


def test_phi4_vision_is_causal_with_one_backend_and_not_with_the_other() -> None:
    changes = dict(re.findall(r"(eager|sdpa): .* by ([\d.e-]+)", printed(FOLDER / "phi4_vision_causal.py")))
    assert float(changes["eager"]) > VISIBLE
    assert float(changes["sdpa"]) == 0


def test_videoprism_text_is_causal_with_a_mask_of_ones_and_not_without_a_mask() -> None:
    changes = dict(
        re.findall(r"(mask of ones|no mask): .* by ([\d.e-]+)", printed(FOLDER / "videoprism_text_causal.py"))
    )
    assert float(changes["mask of ones"]) == 0
    assert float(changes["no mask"]) > VISIBLE


def test_every_violation_of_the_atlas_is_explained_by_a_script() -> None:
    shown = {
        (row.name, result.law)
        for row in read_document(FOLDER.parent / "atlas.json.gz").rows
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
        assert sum(bool(line.strip()) for line in script.read_text().splitlines()) < 20


def test_canine_output_depends_on_padding() -> None:
    found = re.search(r"each character: \[(.*)\]", printed(FOLDER / "canine_rows.py"))
    assert found is not None
    changes = [float(x) for x in found[1].split(",")]
    assert min(changes[-6:]) > 0.1 > max(changes[:10])


def test_reformer_output_depends_on_padding() -> None:
    changes = dict(
        re.findall(r"(\w+): relative change when the row is padded: ([\d.e+-]+)", printed(FOLDER / "reformer_rows.py"))
    )
    assert set(changes) == {"local", "lsh"}
    assert min(map(float, changes.values())) > 0.1
