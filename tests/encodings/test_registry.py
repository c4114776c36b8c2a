from __future__ import annotations

import pytest

from orderproof import encodings
from orderproof.encodings import NoEncoding, Sizes
from orderproof.errors import EncodingError, UsageError


def test_a_registered_class_is_found_by_its_name() -> None:
    assert encodings.get("rotary") is encodings.Rotary
    assert encodings.names() == tuple(sorted(encodings.names()))


def test_a_name_is_given_once() -> None:
    with pytest.raises(UsageError, match="encoding name 'rotary' belongs to Rotary; choose another"):
        encodings.register("rotary")(NoEncoding)
    assert encodings.get("rotary") is encodings.Rotary
    assert NoEncoding.name == "none"


def test_an_unknown_name_gets_the_nearest_and_all() -> None:
    with pytest.raises(UsageError, match=r"no encoding is named 'rotory'; did you mean 'rotary'\? known: alibi, "):
        encodings.get("rotory")
    with pytest.raises(UsageError, match=r"did you mean 't5'\?"):
        encodings.get("T5")
    for asked, meant in {
        "rope": "rotary",
        "RoPE": "rotary",
        "fox": "forgetting",
        "T5Bias": "t5",
        "NoPE": "none",
    }.items():
        with pytest.raises(UsageError, match=rf"no encoding is named '{asked}'; did you mean '{meant}'\?"):
            encodings.get(asked)
    with pytest.raises(UsageError, match="no encoding is named 'xyz'; known: alibi, "):
        encodings.get("xyz")


def test_a_width_that_heads_do_not_divide_has_no_head_width() -> None:
    with pytest.raises(EncodingError, match="Sizes: heads must divide width=65, got 4"):
        Sizes(width=65, heads=4, causal=True).head_width  # noqa: B018
