"""A failed causal check names the line of the mask, draws the mask, and proposes an edit that repairs the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderproof.auditing.api import audit
from orderproof.records.audit import Finding

MODEL = """
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.diagonal = 1
        self.register_buffer("seen", torch.ones(16, 16).tril(1))
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        n = x.shape[1]
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        {mask}
        {attend}
        return x + y


def decoder():
    return Decoder(), torch.randn(2, 7, 8)
"""
FUSED = "y = scaled_dot_product_attention(q, k, v, attn_mask=mask)"
FILLED = "y = (q @ k.transpose(1, 2)).masked_fill(mask, float('-inf')).softmax(-1) @ v"
ADDED = "y = (q @ k.transpose(1, 2) + mask).softmax(-1) @ v"
CHOSEN = "y = torch.where(mask, q @ k.transpose(1, 2), float('-inf')).softmax(-1) @ v"
LATER_THAN_NEXT = "mask = torch.arange(n)[:, None] + 1 < torch.arange(n)[None, :]"
NO_MASK = "pass"
SCORED = "y = s.softmax(-1) @ v"
LOGARITHM = "s = q @ k.transpose(1, 2) + self.seen[:n, :n].log()"
OFF_BY_ONE = ("1!00000", "11!0000", "111!000", "1111!00", "11111!0", "111111!", "1111111")
PROGRAMS = {  # name -> (line of the mask, line of the attention, the edited line or lines)
    "method": (
        "mask = torch.ones(n, n, dtype=torch.bool).tril(1)", FUSED, "mask = torch.ones(n, n, dtype=torch.bool).tril(0)"
    ),
    "function": (
        "mask = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=2)", FILLED,
        "mask = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)",
    ),
    "attribute": (
        "mask = torch.ones(n, n, dtype=torch.bool).tril(self.diagonal)", CHOSEN,
        "mask = torch.ones(n, n, dtype=torch.bool).tril(self.diagonal).tril()",
    ),
    "comparison": (
        "mask = torch.arange(n)[:, None] >= torch.arange(n)[None, :] - 1", FUSED,
        "mask = (torch.arange(n)[:, None] >= torch.arange(n)[None, :] - 1).tril()",
    ),
    "hidden": (
        LATER_THAN_NEXT, FILLED,
        f"{LATER_THAN_NEXT}\n        mask = mask | torch.ones_like(mask).triu(1)",
    ),
    "added": (
        "mask = torch.full((n, n), float('-inf')).triu(2)", ADDED, "mask = torch.full((n, n), float('-inf')).triu(1)"
    ),
    "a buffer that fills": (
        "s = (q @ k.transpose(1, 2)).masked_fill(self.seen[:n, :n] == 0, float('-inf'))", SCORED,
        "s = (q @ k.transpose(1, 2)).masked_fill(self.seen[:n, :n].tril() == 0, float('-inf'))",
    ),
    "an inverted buffer": (
        "s = torch.masked_fill(q @ k.transpose(1, 2), ~(self.seen[:n, :n] > 0), float('-inf'))", SCORED,
        "s = torch.masked_fill(q @ k.transpose(1, 2), ~((self.seen[:n, :n] > 0).tril()), float('-inf'))",
    ),
    "a buffer that chooses": (
        "s = torch.where(self.seen[:n, :n] == 1, q @ k.transpose(1, 2), float('-inf'))", SCORED,
        "s = torch.where((self.seen[:n, :n] == 1).tril(), q @ k.transpose(1, 2), float('-inf'))",
    ),
    "a buffer that is added": (
        LOGARITHM, SCORED,
        f"{LOGARITHM}\n        s = s + torch.full_like(s, float('-inf')).triu(1)",
    ),
    "a buffer of fused attention": (
        "y = scaled_dot_product_attention(q, k, v, attn_mask=self.seen[:n, :n] > 0)", "pass",
        "y = scaled_dot_product_attention(q, k, v, attn_mask=(self.seen[:n, :n] > 0).tril())",
    ),
    "a triangle in the line that applies it": (
        "s = (q @ k.transpose(1, 2)).masked_fill(torch.ones(n, n).tril(1) == 0, float('-inf'))", SCORED,
        "s = (q @ k.transpose(1, 2)).masked_fill(torch.ones(n, n).tril(0) == 0, float('-inf'))",
    ),
    "a mask with more axes": (
        "mask = torch.arange(n)[:, None] >= torch.arange(n)[None, :] - 1", FUSED.replace("mask)", "mask[None])"),
        "mask = (torch.arange(n)[:, None] >= torch.arange(n)[None, :] - 1).tril()",
    ),
    "in brackets": (
        "mask = (torch.arange(n)[:, None] >= torch.arange(n)[None, :] - 1)", FUSED,
        "mask = ((torch.arange(n)[:, None] >= torch.arange(n)[None, :] - 1).tril())",
    ),
}  # fmt: skip


def causal(folder: Path, mask: str, attend: str) -> Finding:
    """The finding on a model in a file of its own."""
    file = folder / f"model_{len(list(folder.iterdir()))}.py"
    file.write_text(MODEL.format(mask=mask, attend=attend), encoding="utf-8")
    (finding,) = audit(f"{file}:decoder", laws=["causal"]).findings
    return finding


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_mask_is_drawn_and_the_edit_of_its_line_repairs_the_model(name: str, tmp_path: Path) -> None:
    mask, attend, edited = PROGRAMS[name]
    finding = causal(tmp_path, mask, attend)
    assert (finding.outcome, finding.verdict) == ("fail", "refuted")
    line = MODEL.splitlines().index("        {mask}") + 1
    assert finding.fix_source.endswith(f".py:{line}")
    assert finding.fix_line == mask
    picture = finding.entries[0].picture
    assert picture is not None
    assert (picture.kind, picture.rows) == ("mask", OFF_BY_ONE)
    removed, *added = finding.remedy_diff.splitlines()
    assert removed == f"-{mask}"
    assert "\n        ".join(text.removeprefix("+") for text in added) == edited
    assert causal(tmp_path, edited, attend).verdict == "proved"


@pytest.mark.parametrize(
    ("before", "applies"),
    [
        (
            "seen = self.seen[:n, :n]",
            "y = (q @ k.transpose(1, 2)).masked_fill(seen == 0, float('-inf')).softmax(-1) @ v",
        ),
        ("s = q @ k.transpose(1, 2)", "y = s.masked_fill(self.seen[:n, :n] == 0, float('-inf')).softmax(-1) @ v"),
    ],
)
def test_a_mask_in_the_line_of_the_attention_is_edited_there(before: str, applies: str, tmp_path: Path) -> None:
    finding = causal(tmp_path, before, applies)
    assert finding.fix_line == applies
    edited = applies.replace(" == 0", ".tril() == 0")
    assert finding.remedy_diff == f"-{applies}\n+{edited}"
    assert causal(tmp_path, before, edited).verdict == "proved"


@pytest.mark.parametrize(
    "applies",
    [
        "s = (q @ k.transpose(1, 2) + self.seen[:n, :n].log()) * 1.5",  # the sum is not what the line assigns
        "s = (q @ k.transpose(1, 2)).masked_fill(self.seen[:n, :n] == 1 - 1, float('-inf'))",  # no constant
    ],
)
def test_a_line_that_applies_a_mask_in_another_way_is_not_edited(applies: str, tmp_path: Path) -> None:
    finding = causal(tmp_path, applies, SCORED)
    assert finding.fix_line == applies
    assert finding.entries[0].picture is not None
    assert not finding.remedy_diff.startswith(f"-{applies}")


def test_attention_without_a_mask_gets_one(tmp_path: Path) -> None:
    attend = "y = scaled_dot_product_attention(q, k, v)"
    finding = causal(tmp_path, NO_MASK, attend)
    assert finding.remedy_diff == f"-{attend}\n+y = scaled_dot_product_attention(q, k, v, is_causal=True)"
    assert finding.fix_line == attend
    assert finding.entries[0].picture is None
    assert causal(tmp_path, NO_MASK, finding.remedy_diff.partition("\n+")[2]).verdict == "proved"


@pytest.mark.parametrize(
    "mask",
    [
        "mask = torch.ones(n, n, dtype=torch.bool).tril(\n            1)",  # of several lines
        "mask = torch.ones(n, n, dtype=torch.bool).tril(1)  # causal",  # what follows is not code
    ],
)
def test_a_line_that_is_not_understood_is_named_and_not_edited(mask: str, tmp_path: Path) -> None:
    finding = causal(tmp_path, mask, FUSED)
    assert finding.fix_source
    assert finding.entries[0].picture is not None
    assert not finding.remedy_diff.startswith(f"-{finding.fix_line}")
    assert finding.remedy_diff.startswith("-scaled_dot_product_attention(")  # the example of the law


def test_a_causal_model_and_an_expected_leak_have_no_line_to_change(tmp_path: Path) -> None:
    passed = causal(tmp_path, "mask = torch.ones(n, n, dtype=torch.bool).tril()", FUSED)
    assert (passed.outcome, passed.fix_source, passed.remedy_diff) == ("pass", "", "")
    file = tmp_path / "encoder.py"
    file.write_text(MODEL.format(mask=NO_MASK, attend="y = scaled_dot_product_attention(q, k, v)"), encoding="utf-8")
    (expected,) = audit(f"{file}:decoder", laws=["causal"], kind="encoder").findings
    assert (expected.outcome, expected.fix_source, expected.remedy_diff) == ("pass", "", "")


def test_a_library_line_is_not_edited() -> None:
    from torch import nn

    (finding,) = audit(nn.TransformerEncoderLayer(8, 2, batch_first=True), laws=["causal"]).findings
    assert (finding.outcome, finding.fix_source) == ("fail", "")


def test_a_table_of_positions_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    table = "x = x + torch.arange(n)[:, None] * torch.tensor([0.0, 1.0, -1.0, 0, 0, 0, 0, 0])"
    source = MODEL.format(mask=table, attend="y = scaled_dot_product_attention(q, k, v)")
    file.write_text(source, encoding="utf-8")
    finding = audit(f"{file}:decoder", laws=["permutation"]).findings[0]
    picture = finding.entries[0].picture
    assert picture is not None
    assert (picture.kind, len(picture.rows)) == ("table", 7)
    assert [row[1:3] for row in picture.rows] == ["44", "53", "62", "72", "82", "91", "90"] or picture.rows[6][1] == "9"


@pytest.mark.parametrize(
    ("mask", "attend", "edited"),
    [
        (
            "mask = torch.tril(torch.full((n, n), float('-inf')), diagonal=-1)", ADDED,
            "mask = torch.triu(torch.full((n, n), float('-inf')), diagonal=1)",
        ),
        (
            "mask = torch.ones(n, n, dtype=torch.bool).triu()", FUSED,
            "mask = torch.ones(n, n, dtype=torch.bool).tril()",
        ),
        (
            "mask = torch.arange(n)[:, None] > torch.arange(n)[None, :]", FILLED, "",
        ),
    ],
)  # fmt: skip
def test_a_mask_that_hides_earlier_tokens_is_turned_and_not_cut(
    mask: str, attend: str, edited: str, tmp_path: Path
) -> None:
    finding = causal(tmp_path, mask, attend)
    assert finding.verdict == "refuted"
    if edited:
        assert finding.remedy_diff == f"-{mask}\n+{edited}"
        assert causal(tmp_path, edited, attend).verdict == "proved"
    else:
        assert not finding.remedy_diff.startswith(f"-{mask}")


def test_a_product_with_a_mask_of_tokens_is_no_constant_mask(tmp_path: Path) -> None:
    edges = "a = ((q @ k.mT > 0) | torch.eye(n, dtype=torch.bool)).float()"
    finding = causal(tmp_path, edges, "y = (a.sum(-1, keepdim=True) * a) @ v")
    assert finding.verdict == "refuted"
