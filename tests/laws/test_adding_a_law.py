"""A law is one file: a proved and a measured law in a temporary folder are found, decided and reported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from torch import Tensor, nn

import orderproof.laws.measured
import orderproof.laws.proved
from orderproof.auditing import audit
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.laws import find_law, measured_laws, proved_laws

PROVED = '''
"""OP190 first_swap: equivariance to the exchange of the first two tokens."""

from orderproof.laws.proved.proved_law import EquivarianceLaw
from orderproof.permutations import transposition

LAW = EquivarianceLaw(
    code="OP190", name="first_swap", statement="Exchanging the first two tokens exchanges their outputs.",
    trait="sees the order of the first two tokens", trait_if="fails", kind="property", expectation={},
    generators=lambda tokens: (transposition(tokens, 0, 1),),
)
'''
MEASURED = '''
"""OP390 doubled_batch: repeating every row of a batch repeats the outputs."""

from orderproof.laws.measured import Comparison, MeasuredLaw
from orderproof.laws.measured.controls import replace_first_token


class DoubledBatch(MeasuredLaw):
    """The law of this module."""

    def comparisons(self, calls):
        yield Comparison("every row repeated", self.compare)

    def control(self, calls):
        return replace_first_token(calls)

    def compare(self, calls):
        output = calls.forward(calls.default_tokens.repeat_interleave(2, 0))
        return calls.default_output.repeat_interleave(2, 0), output


LAW = DoubledBatch(
    code="OP390", name="doubled_batch", statement="Repeating every row of a batch repeats the outputs.",
    trait="gives repeated rows repeated outputs", expectation={"causal_lm": "holds"}, remedy="Compute rows separately.",
)
'''


class SeesFirst(nn.Module):
    """Adds the first token to all others."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], x[:, 1:] + x[:, :1]], 1)


class DependsOnBatchSize(TransformerAdapter):
    """The output is scaled by the number of rows."""

    def call(self, tokens: Tensor, **kwargs: object) -> object:  # type: ignore[override]
        answer = super().call(tokens, **kwargs)  # type: ignore[arg-type]
        answer.output.mul_(len(tokens))
        return answer


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two laws, each in one new file of a folder that the packages of the laws list too."""
    for package, name, text in (
        (orderproof.laws.proved, "first_swap", PROVED),
        (orderproof.laws.measured, "doubled_batch", MEASURED),
    ):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / f"{name}.py").write_text(dedent(text).lstrip(), encoding="utf-8")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    caches = (proved_laws, measured_laws)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("added")
def test_a_proved_law_is_one_file() -> None:
    assert [law.code for law in proved_laws()] == sorted(law.code for law in proved_laws())
    module = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).eval()
    for subject, verdict, outcome in ((module, "proved", "no"), (SeesFirst(), "refuted", "yes")):
        described = audit(subject, laws=["first_swap"], inputs=torch.randn(2, 7, 8), expect={"first_swap": "any"})
        (finding,) = described.findings
        assert (finding.verdict, finding.kind, finding.outcome) == (verdict, "property", outcome), finding.reason
        assert finding.trait == "sees the order of the first two tokens"
        assert finding.statement == find_law("op190").statement


@pytest.mark.usefixtures("added")
def test_a_measured_law_is_one_file() -> None:
    for adapter, verdict, outcome in (
        (tiny_decoder(), "held", "pass"),
        (tiny_decoder(of=DependsOnBatchSize), "refuted", "fail"),
    ):
        (finding,) = audit(adapter, laws=["OP390"]).findings
        assert (finding.verdict, finding.kind, finding.outcome) == (verdict, "check", outcome), finding.reason
        assert finding.remedy == ("Compute rows separately." if verdict == "refuted" else "")


def test_without_the_files_there_are_no_such_laws() -> None:
    assert "first_swap" not in {law.name for law in proved_laws()}
    assert "doubled_batch" not in {law.name for law in measured_laws()}
