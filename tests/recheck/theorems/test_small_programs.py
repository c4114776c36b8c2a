"""Certificates of small programs: those of theorems are accepted, and those of a prover whose solver lies refused."""

from __future__ import annotations

import pytest

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.pairs import one_in
from tests.recheck.theorems.examples import CASES, LAWS, LyingSolver, example, recorded, unchecked


@pytest.mark.parametrize("name", one_in(8, CASES))
def test_certificates_of_theorems_are_accepted(name: str) -> None:
    proved = CASES[name].laws & set(LAWS)
    for law in sorted(proved):
        made = example(name, law)
        assert made is not None
        result = check_theorem(made)
        assert result.theorem.startswith(f"{law}: for every length from ")


@pytest.mark.parametrize("name", one_in(16, CASES))
def test_certificates_of_a_prover_with_a_wrong_solver_are_refused(name: str) -> None:
    """An error of Z3 alone cannot make the certificate of a false law pass."""
    case = CASES[name]
    graphs, roles = recorded(case)
    for law in LAWS:
        made = unchecked(graphs, roles, law, LyingSolver())
        if made is None or law in case.laws:
            continue
        with pytest.raises(CertificateError):
            check_theorem(made, fill=True)
