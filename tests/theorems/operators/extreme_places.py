"""Programs that read the first or the last real token of each row; and some that may read a pad."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program


def _at(m: Program, x: Tensor, place: Tensor) -> Tensor:
    return m.first(x)[torch.arange(x.shape[0]), place]


def _gathered(m: Program, x: Tensor, place: Tensor) -> Tensor:
    return m.first(x).gather(1, place[:, None, None].expand(-1, 1, x.shape[2])).squeeze(1)


def _places(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1])


def _last(x: Tensor, mask: Tensor) -> Tensor:
    return x.shape[1] - 1 - mask.flip(1).argmax(1)


def _before_a_pad(x: Tensor, mask: Tensor) -> Tensor:
    """The place before the first pad; that of the first real token if there is none."""
    pad = (mask == 0).long().argmax(1)
    return torch.where(pad > 0, pad - 1, mask.argmax(1))


def _rolled(m: Program, x: Tensor, by: Tensor, place: int = 0) -> Tensor:
    """A token of rows each of which is rolled to the left."""
    index = (_places(x) + by[:, None]) % x.shape[1]
    return m.first(x).gather(1, index[..., None].expand_as(x))[:, place]


def _token_after(m: Program, x: Tensor) -> Tensor:
    """Each token reads the next one: the remainder of a number that is less than minus the size."""
    index = (_places(x) + 1 - 2 * x.shape[1]) % x.shape[1]
    return m.first(x).gather(1, index[:, None].expand(x.shape))


def _case(name: str, function: object, *laws: str) -> Case:
    return Case(name, function, frozenset(laws), masked=True, pooled=True)  # type: ignore[arg-type]


PROGRAMS = [
    _case("first real token", lambda m, x, mask: _at(m, x, mask.argmax(1)), "padding", "batch"),
    _case("first real token, gathered", lambda m, x, mask: _gathered(m, x, mask.argmax(-1)), "padding", "batch"),
    _case(
        "first real token by max", lambda m, x, mask: _at(m, x, mask.max(1, keepdim=True)[1][:, 0]), "padding", "batch"
    ),
    _case("last real token, from the end", lambda m, x, mask: _at(m, x, _last(x, mask)), "padding", "batch"),
    _case("last real token by places", lambda m, x, mask: _at(m, x, (mask * _places(x)).argmax(1)), "padding", "batch"),
    _case(
        "last real token by places in floats",
        lambda m, x, mask: _at(m, x, (mask.float() * _places(x)).argmax(1)),
        "padding",
        "batch",
    ),
    _case(
        "smallest place of a real token",
        lambda m, x, mask: _gathered(m, x, torch.where(mask.bool(), _places(x), x.shape[1] - 1).amin(1)),
        "padding",
        "batch",
    ),
    _case(
        "largest place of a real token",
        lambda m, x, mask: _at(m, x, torch.where(mask.bool(), _places(x), 0).max(1).values.clamp(min=0)),
        "padding",
        "batch",
    ),
    _case(
        "largest place of a real token, or none",
        lambda m, x, mask: _at(m, x, torch.where(mask.bool(), _places(x), -1).amax(1)),
        "padding",
        "batch",
    ),
    _case("token before the first pad", lambda m, x, mask: _at(m, x, _before_a_pad(x, mask)), "padding", "batch"),
    _case("token at the first pad", lambda m, x, mask: _at(m, x, (_before_a_pad(x, mask) + 1) % x.shape[1]), "batch"),
    _case("rolled to the first real token", lambda m, x, mask: _rolled(m, x, mask.argmax(1)), "padding", "batch"),
    _case(
        "rolled to the last real token, at the end",
        lambda m, x, mask: _rolled(m, x, _last(x, mask) + 1, -1),
        "padding",
        "batch",
    ),
    Case("token after, less two sizes", _token_after, frozenset({"batch"})),
    _case("rolled to the token after it", lambda m, x, mask: _rolled(m, x, mask.argmax(1) + 1), "batch"),
    _case("rolled to the token before it", lambda m, x, mask: _rolled(m, x, mask.argmax(1) - 1), "batch"),
    _case("rolled by twice its place", lambda m, x, mask: _rolled(m, x, 2 * mask.argmax(1)), "batch"),
    _case("first pad", lambda m, x, mask: _at(m, x, mask.argmin(1)), "batch"),
    _case("token after the last real one", lambda m, x, mask: _at(m, x, (_last(x, mask) + 1) % x.shape[1]), "batch"),
    _case("last real token counted from the start", lambda m, x, mask: _at(m, x, mask.flip(1).argmax(1)), "batch"),
    _case(
        "first real token by places from the end",
        lambda m, x, mask: _at(m, x, (mask * _places(x).flip(0)).argmax(1)),
        "batch",
    ),
    _case("first real token of another row", lambda m, x, mask: _at(m, x, mask.flip(0).argmax(1)), "batch"),
    _case(
        "smallest place, and none of pads",
        lambda m, x, mask: _at(m, x, torch.where(mask.bool(), _places(x), -1).amin(1)),
        "batch",
    ),
]
MUTANTS = [
    *mutants_of(
        "theorems.facts.extreme_places",
        M(
            "last_of_equal_numbers",
            "implication(less($one, $place), less($number, $extreme))",
            "implication(less($place, $one), less($number, $extreme))",
            program="first real token by places from the end",
        ),
        M(
            "no_equal_numbers",
            "conjunction(at_most($number, $extreme), $first)",
            "less($number, $extreme)",
            program="first real token by places from the end",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.pointwise.known_values",
        M(
            "no_size_is_left_out",
            "conditional(less(number, size), number, number - size)",
            "number",
            program="rolled to the last real token, at the end",
        ),
        M(
            "sizes_left_out_often",
            "at_most(-size, number)",
            "TRUE",
            program="token after, less two sizes",
        ),
    ),
    *mutants_of(
        "theorems.walks.extreme_places",
        M("smallest_for_largest", "SIGNS[$call.name]", "abs(SIGNS[$call.name])", program="first pad"),
    ),
]
