"""The rechecker refuses every altered step that a run contradicts."""

from __future__ import annotations

import copy

import pytest

from orderproof.diagnosis.certificate import digest
from orderproof.errors import CertificateError
from orderproof.recheck import recheck
from tests.recheck.alterations import altered_steps
from tests.recheck.certificates import PROVED, example


@pytest.mark.parametrize("name", PROVED)
def test_an_alteration_without_new_sums_is_refused_by_its_digest(name: str) -> None:
    _, made = example(name)
    for k, step in enumerate(made["steps"]):
        for key in step:
            altered = copy.deepcopy(made)
            altered["steps"][k][key] = "altered"
            with pytest.raises(CertificateError, match="digest"):
                recheck(altered)
            if key not in ("lemma", "fact", "repeats"):
                altered["digest"] = digest(altered)
                with pytest.raises(CertificateError, match="fingerprint"):
                    recheck(altered)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVED)
def test_every_false_alteration_of_every_step_is_refused(name: str) -> None:
    tried = altered_steps(name, 1)
    assert sum(tried.values()) > 300
    assert set(tried) >= {"operator", "lemma", "operand", "known", "move uniform", "shape", "dtype"}
    assert tried["dependence"] > 0 or name != "causal"


@pytest.mark.parametrize("name", PROVED)
def test_every_seventh_of_them_is_refused(name: str) -> None:
    tried = altered_steps(name, 7)
    assert sum(tried.values()) > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "causal:gpt2?n_layer=1:sdpa",
        "permutation:bert?num_hidden_layers=1:eager",
        "prompt_permutation:gpt2?n_layer=1:eager",
    ],
)
def test_every_false_alteration_of_an_architecture_is_refused(name: str) -> None:
    tried = altered_steps(name, 7)
    assert sum(tried.values()) > 250
