"""Packed documents in every form: each module keeps both laws, and each of its faults breaks one at its line."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.errors import SubjectError
from orderproof.models import Subject, from_module
from orderproof.models.roles.document_ids import document_ids, document_mask, document_numbers
from orderproof.models.roles.packed_documents import GridSizes, packed_documents
from orderproof.records.audit import Report
from tests.models.roles.packed_modules import CASES, IDS, IdsAttention, seeded, vectors
from tests.pairs import one_in

LAWS = ("packing", "packed_alone")
FAULTS = [(name, fault) for name, case in CASES.items() for fault in case.faults]
WITH_THEOREM = {"ids_attention", "ids_positions", "restarting", "given_mask"}


def subject_of(name: str, fault: str = "") -> Subject:
    case = CASES[name]
    return from_module(seeded(lambda: case.build(fault)), case.inputs(), assume={"model_kind": case.kind})


def exit_code(report: Report) -> int:
    outcomes = {finding.outcome for finding in report.findings}
    return 1 if "fail" in outcomes else 3 if "undecided" in outcomes else 0


@pytest.mark.parametrize("name", one_in(3, CASES))
def test_a_module_that_keeps_documents_apart_passes_every_law_of_its_kind(name: str) -> None:
    report = audit(subject_of(name))
    assert exit_code(report) == 0, [(f.law, f.reason) for f in report.findings if f.outcome in ("fail", "undecided")]
    found = {finding.law: finding for finding in report.findings}
    assert found["packing"].verdict == "proved"
    assert found["packed_alone"].verdict == "held"
    assert {found[law].expected for law in LAWS} == {"holds"}
    theorem = found["packing"].theorem
    assert theorem is not None
    assert theorem.proved is (name in WITH_THEOREM)


@pytest.mark.parametrize(("name", "fault"), one_in(2, FAULTS))
def test_a_fault_breaks_a_law_at_its_line(name: str, fault: str) -> None:
    report = audit(subject_of(name, fault), laws=LAWS)
    law, text = CASES[name].faults[fault]
    found = next(finding for finding in report.findings if finding.law == law)
    assert (found.verdict, found.outcome) == ("refuted", "fail")
    assert found.witness is not None
    place = found.entries[0].source if found.entries else found.witness.first_violating_source
    file, _, line = place.partition(":")
    assert file.endswith("packed_modules.py")
    assert text in linecache.getline(str(Path(__file__).with_name("packed_modules.py")), int(line))


def test_the_roles_of_packed_inputs_are_listed_with_how_they_are_known() -> None:
    def role(name: str, fault: str = "", place: int = 1) -> tuple[str, str]:
        found = subject_of(name, fault).input_roles[place]
        return found.role, found.known_by

    assert role("ids_positions") == ("document ids", "calls: it hides one document from another")
    assert role("state_space", "state")[1] == "its name; calls do not show that it separates documents"
    assert role("restarting") == ("position ids", "the example counts from 0 again in each document")
    assert role("given_mask") == ("mask of packed documents [token, token]", "its values")
    assert role("grid_images") == ("grid sizes of packed images", "its values")
    assert role("variable_length", place=3) == ("length of the longest packed document", "its values")


def test_token_types_and_padding_masks_are_no_document_ids() -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.types = nn.Embedding(2, 16)

        def forward(self, x: Tensor, token_type_ids: Tensor, given: Tensor) -> Tensor:
            y = x + self.types(token_type_ids)
            return (y @ y.mT / 4).masked_fill(given[:, None] == 0, -torch.inf).softmax(-1) @ y

    types, mask = IDS.repeat(2, 1), torch.tensor([[0, 0, 1, 1, 1, 1, 1]]).repeat(2, 1)
    subject = from_module(seeded(Encoder), {"x": vectors(2, 7, 16), "token_type_ids": types, "given": mask})
    assert not subject.takes_documents
    assert {one.name: one.role for one in subject.input_roles} == {
        "x": "tokens: vectors", "token_type_ids": "moves and grows with the tokens",
        "given": "padding mask, 1 at real tokens",
    }  # fmt: skip


def test_a_law_of_documents_is_a_property_without_a_kind() -> None:
    inputs = {"x": vectors(2, 7, 16), "document_ids": IDS.repeat(2, 1)}
    named = audit(seeded(lambda: IdsAttention("convolution")), inputs=inputs, laws=("packing",))
    assert exit_code(named) == 1  # a law that is named is expected to hold
    report = audit(from_module(seeded(lambda: IdsAttention("convolution")), inputs))
    assert {f.law: f.outcome for f in report.findings}["packed_alone"] not in ("pass", "fail")


@pytest.mark.parametrize("wrong", [[1, 3, 7], [0, 3, 6], [0, 5, 3, 7], [0, 3, 9], [7]])
@pytest.mark.parametrize("shape", [(7, 16), (1, 7, 16)])
def test_boundaries_that_do_not_fit_the_tokens_are_refused_in_one_line(
    wrong: list[int], shape: tuple[int, ...]
) -> None:
    class Running(nn.Module):
        def forward(self, x: Tensor, cu_seqlens: Tensor) -> Tensor:
            return x.cumsum(-2) + cu_seqlens[0]

    inputs = {"x": vectors(*shape), "cu_seqlens": torch.tensor(wrong)}
    with pytest.raises(SubjectError, match=r"^M: expected input 'cu_seqlens' to be boundaries .* got \[[\d, ]+\]$"):
        from_module(Running(), inputs, name="M")


def test_boundaries_of_another_sequence_are_held() -> None:
    class Cross(nn.Module):
        def forward(self, x: Tensor, memory: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor) -> Tensor:
            ends = zip(cu_seqlens_q.diff().tolist(), cu_seqlens_k.diff().tolist(), strict=True)
            assert len(list(ends)) == 2
            return x + memory.mean(0)

    inputs = (vectors(7, 16), vectors(5, 16), torch.tensor([0, 3, 7]), torch.tensor([0, 2, 5]))
    roles = {one.name: one.role for one in from_module(Cross(), inputs).input_roles}
    assert roles["cu_seqlens_q"] == "boundaries of packed documents"
    assert roles["cu_seqlens_k"] == "held: the same in every call"


def test_the_forms_of_documents_are_read_from_their_values() -> None:
    grid = packed_documents(torch.tensor([[1, 2, 4], [1, 4, 6]]), 32)
    assert isinstance(grid, GridSizes)
    assert grid.for_documents((16, 24), 1, torch.device("cpu")).tolist() == [[1, 4, 4], [1, 4, 6]]
    assert packed_documents(torch.tensor([[1, 2, 4]]), 9) is None
    assert document_numbers((2, 0, 1)).tolist() == [0, 0, 2]
    assert document_ids("x", torch.tensor([[0, 1, 0]]), 1, 3) is None
    causal = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 0, 1]]).bool()
    found = document_mask("m", causal[None, None], 1, 3)
    assert found is not None
    assert found.causal
    assert torch.equal(found.for_documents((2, 1), 1, torch.device("cpu")), causal[None, None])
    assert document_mask("m", torch.ones(3, 3).tril(), 1, 3) is None
