"""Certificates for every number of layers are accepted only of layers that show which a further one may be."""

from __future__ import annotations

import pytest

from orderproof.logic.solver import Solver
from orderproof.theorems.walks import layers
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.pairs import one_in
from tests.recheck.theorems.examples import recorded_module, unchecked
from tests.theorems.stacks import STACKS

NOT_IN_CERTIFICATES = {"more and more operators"}  # the classes of modules, by which the prover knows that these differ


@pytest.mark.parametrize("name", one_in(3, STACKS))
def test_a_prover_that_takes_all_layers_for_repeated_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, every_depth = STACKS[name]
    monkeypatch.setattr(layers, "_are_kinds", lambda *_: True)
    made = unchecked(*recorded_module(make()), "causal", Solver())
    assert made is not None
    if every_depth or name in NOT_IN_CERTIFICATES:
        assert "every number of layers" in check_theorem(made, fill=True).theorem
    else:
        with pytest.raises(CertificateError, match="only one layer reads|do not alternate"):
            check_theorem(made, fill=True)
