"""Programs that pad the tokens with tokens, or take every second window of them; and some that so read later tokens."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program


def _windows(m: Program, x: Tensor, mode: str, *, after: bool = False) -> Tensor:
    return m.depthwise(F.pad(x.mT, (0, 2) if after else (2, 0), mode=mode)).mT


def _halved(m: Program, x: Tensor, *, ahead: int) -> Tensor:
    """Windows of three tokens at every second one, each given to two tokens."""
    taken = F.conv1d(F.pad(x.mT, (2 - ahead, ahead)), m.depthwise.weight, stride=2, groups=x.shape[2])
    return taken.repeat_interleave(2, -1)[..., : x.shape[1]].mT


def _in_windows(m: Program, x: Tensor, *, causal: bool) -> Tensor:
    """Attention within windows of four tokens, which are merged with the rows."""
    b, n, width = x.shape
    windows = F.pad(x, (0, 0, 0, -n % 4)).view(-1, 4, width)
    found = F.scaled_dot_product_attention(m.first(windows), m.second(windows), windows, is_causal=causal)
    return found.view(b, -1, width)[:, :n]


def _real_in_windows(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """Attention to the real tokens of windows of four."""
    b, n, width = x.shape
    windows = F.pad(x, (0, 0, 0, -n % 4)).view(-1, 4, width)
    real = F.pad(mask, (0, -n % 4)).view(-1, 1, 4)
    scores = (m.first(windows) @ m.second(windows).mT).masked_fill(real == 0, -1e9)
    return (scores.softmax(-1) @ m.third(windows)).view(b, -1, width)[:, :n]


def _case(name: str, function: object, *laws: str, least: int = 2) -> Case:
    return Case(name, function, frozenset(laws), least=least)  # type: ignore[arg-type]


PROGRAMS = [
    Case("real tokens of windows", _real_in_windows, frozenset({"padding", "batch"}), masked=True, least=5),
    Case("pads of windows", lambda m, x, a: _real_in_windows(m, x, 1 - a), frozenset({"batch"}), masked=True, least=5),
    Case(
        "real tokens of windows from the end",
        lambda m, x, a: _real_in_windows(m, x, a.flip(1)),
        frozenset({"batch"}),
        masked=True,
        least=5,
    ),
    _case("first token repeated in front", lambda m, x: _windows(m, x, "replicate"), "causal", "batch"),
    _case("last token repeated at the end", lambda m, x: _windows(m, x, "replicate", after=True), "batch"),
    _case(
        "the last token, repeated after it",
        lambda m, x: x + F.pad(x.mT, (0, 1), mode="replicate")[..., -1:].mT,
        "batch",
    ),
    _case("reflected in front", lambda m, x: _windows(m, x, "reflect"), "batch", least=3),
    _case("circular in front", lambda m, x: _windows(m, x, "circular"), "batch"),
    _case("every second token and those before it", lambda m, x: _halved(m, x, ahead=0), "causal", "batch", least=3),
    _case("windows merged with the rows", lambda m, x: _in_windows(m, x, causal=True), "causal", "batch", least=5),
    _case("windows merged with the rows, unmasked", lambda m, x: _in_windows(m, x, causal=False), "batch", least=5),
    _case("every second token and the next", lambda m, x: _halved(m, x, ahead=1), "batch", least=3),
    _case(
        "pairs, the last one alone",
        lambda m, x: x + F.avg_pool1d(x, 4, ceil_mode=True).mean(-1)[..., None],
        "causal",
        "batch",
    ),
    _case(
        "pairs of tokens, the last one alone",
        lambda m, x: x + F.avg_pool1d(x.mT, 2, ceil_mode=True).repeat_interleave(2, -1)[..., : x.shape[1]].mT,
        "batch",
        least=3,
    ),
]
MUTANTS = mutants_of(
    "theorems.operators.composition.padding",
    M("zeros_for_copies", "$mode in ('constant', None)", "True", program="circular in front", quick=True),
    M(
        "replicated_first_for_last",
        "(as_term(0), $size - 1)",
        "(as_term(0), as_term(0))",
        program="the last token, repeated after it",
        quick=True,
    ),
    M(
        "reflected_to_the_first",
        "(-$at, ($size - 1) * 2 - $at)",
        "(as_term(0), $size - 1)",
        program="reflected in front",
    ),
    M("circular_to_the_first", "($at + $size, $at - $size)", "(as_term(0), $size - 1)", program="circular in front"),
)
