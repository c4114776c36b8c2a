from __future__ import annotations

import pytest

from orderproof import encodings
from orderproof.encodings import ModelSizes, NoEncoding
from orderproof.errors import EncodingError, UsageError


def test_a_registered_class_is_found_by_its_name() -> None:
    assert encodings.get("rotary") is encodings.Rotary
    assert encodings.names() == tuple(sorted(encodings.names()))


def test_a_name_is_registered_once() -> None:
    with pytest.raises(UsageError, match="encoding name 'rotary' belongs to Rotary; choose another"):
        encodings.register("rotary")(NoEncoding)
    assert encodings.get("rotary") is encodings.Rotary
    assert NoEncoding.name == "none"


def test_an_unknown_name_is_rejected_with_the_nearest_and_all_names() -> None:
    with pytest.raises(UsageError, match=r"expected an encoding; got 'rotory'; did you mean 'rotary'\?"):
        encodings.get("rotory")
    with pytest.raises(UsageError, match=r"did you mean 't5'\?"):
        encodings.get("T5")
    for alias, name in {
        "rope": "rotary",
        "RoPE": "rotary",
        "fox": "forgetting",
        "T5Bias": "t5",
        "NoPE": "none",
    }.items():
        with pytest.raises(UsageError, match=rf"got '{alias}'; did you mean '{name}'\?"):
            encodings.get(alias)
    with pytest.raises(UsageError, match=r"expected an encoding, one of alibi, .*, xpos; got 'xyz'$"):
        encodings.get("xyz")


def test_a_width_that_heads_do_not_divide_has_no_head_width() -> None:
    with pytest.raises(EncodingError, match="ModelSizes: heads must divide width=65, got 4"):
        ModelSizes(width=65, heads=4, causal=True).head_width  # noqa: B018
