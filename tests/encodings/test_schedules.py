from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from orderproof.encodings import LengthSchedule, Rotary, Schedule, schedules
from orderproof.errors import EncodingError

WIDTHS = pytest.mark.parametrize(("width", "base"), [(8, 10_000.0), (64, 10_000.0), (128, 500_000.0), (128, 1e6)])


def theirs(
    kind: str, *, width: int, base: float, maximum: int = 4096, length: int | None = None, **parameters: object
) -> tuple[torch.Tensor, float]:
    """The frequencies and the attention scaling of transformers."""
    config = LlamaConfig(
        hidden_size=4 * width,
        num_attention_heads=4,
        head_dim=width,
        max_position_embeddings=maximum,
        rope_parameters={"rope_type": kind, "rope_theta": base, **parameters},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)


def assert_same(schedule: Schedule, found: tuple[torch.Tensor, float], *, width: int, base: float) -> None:
    spectrum = schedule(width=width, base=base)
    ours = torch.tensor(spectrum.frequencies, dtype=torch.float64)
    # Theirs are float32, some after a power and a blend.
    assert torch.allclose(ours, found[0].double(), rtol=3e-5, atol=0)
    assert spectrum.attention_scaling == pytest.approx(found[1], rel=1e-12)


@WIDTHS
@pytest.mark.parametrize("factor", [1.0, 2.0, 7.5])
def test_linear_is_that_of_transformers(width: int, base: float, factor: float) -> None:
    found = theirs("linear", width=width, base=base, factor=factor)
    assert_same(schedules.LinearScaling(factor), found, width=width, base=base)


@WIDTHS
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.25, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("factor", [1.0, 8.0])
def test_proportional_is_that_of_transformers(width: int, base: float, fraction: float, factor: float) -> None:
    found = theirs("proportional", width=width, base=base, partial_rotary_factor=fraction, factor=factor)
    assert_same(schedules.Proportional(fraction, factor=factor), found, width=width, base=base)


@WIDTHS
@pytest.mark.parametrize(
    "options",
    [
        {"factor": 4.0},
        {"factor": 40.0, "beta_fast": 16.0, "beta_slow": 2.0},
        {"factor": 32.0, "truncate": False},
        {"factor": 40.0, "mscale": 0.707, "mscale_all_dim": 0.707},
        {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.5},
        {"factor": 1.0},
    ],
)
@pytest.mark.parametrize("original", [64, 4096, 1_000_000])
def test_yarn_is_that_of_transformers(width: int, base: float, options: dict[str, float], original: int) -> None:
    found = theirs("yarn", width=width, base=base, original_max_position_embeddings=original, **options)
    assert_same(schedules.Yarn(original=original, **options), found, width=width, base=base)


def test_yarn_takes_its_attention_scaling_from_transformers_attention_factor() -> None:
    found = theirs("yarn", width=64, base=1e4, factor=4.0, attention_factor=1.25, original_max_position_embeddings=4096)
    assert_same(schedules.Yarn(4.0, 4096, attention_scaling=1.25), found, width=64, base=1e4)


@WIDTHS
@pytest.mark.parametrize(("slow", "fast"), [(1.0, 32.0), (2.0, 2.0), (0.5, 7.0)])
def test_the_yarn_of_the_paper_is_linear_in_the_periods(width: int, base: float, slow: float, fast: float) -> None:
    found = schedules.Yarn(8.0, 4096, beta_fast=fast, beta_slow=slow, ramp="periods")(width=width, base=base)
    for i, frequency in enumerate(found.frequencies):
        plain = base ** (-2 * i / width)
        r = 4096 / (2 * math.pi / plain)  # the original length in wavelengths
        gamma = 0.0 if r < slow else 1.0 if r >= fast else (r - slow) / (fast - slow)
        assert frequency == pytest.approx((1 - gamma) * plain / 8 + gamma * plain, rel=1e-12)
    assert found.attention_scaling == schedules.Yarn(8.0, 4096)(width=width, base=base).attention_scaling


@pytest.mark.parametrize(("factor", "times"), [(1.0, 1.0), (4.0, 1.7), (32.0, 4.0)])
def test_the_two_yarns_differ_as_the_documentation_says(factor: float, times: float) -> None:
    code, paper = (schedules.Yarn(factor, 4096, ramp=ramp)(width=128, base=1e4) for ramp in ("pairs", "periods"))  # type: ignore[arg-type]
    ratios = [a / b for a, b in zip(code.frequencies, paper.frequencies, strict=True)]
    assert round(max(ratios), 1) == times
    assert ratios[0] == 1.0
    assert min(ratios) > 0.97  # the rounding of the ends of the code's ramp
    assert ratios[-1] == pytest.approx(1.0, rel=1e-12)


def test_the_ramp_of_yarn_is_checked() -> None:
    with pytest.raises(EncodingError, match="Yarn: ramp must be 'pairs' or 'periods', got 'paper'"):
        schedules.Yarn(4.0, 4096, ramp="paper")  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match="Yarn: truncate=False .* leave it out"):
        schedules.Yarn(4.0, 4096, ramp="periods", truncate=False)


@WIDTHS
@pytest.mark.parametrize(("factor", "low", "high", "original"), [(8.0, 1.0, 4.0, 8192), (32.0, 0.5, 3.0, 100)])
def test_llama3_is_that_of_transformers(
    width: int, base: float, factor: float, low: float, high: float, original: int
) -> None:
    options = {"low_freq_factor": low, "high_freq_factor": high, "original_max_position_embeddings": original}
    found = theirs("llama3", width=width, base=base, factor=factor, **options)
    assert_same(schedules.Llama3(factor, low, high, original), found, width=width, base=base)


@WIDTHS
@pytest.mark.parametrize("length", [1, 63, 64, 65, 100, 4096])
def test_long_rope_is_that_of_transformers(width: int, base: float, length: int) -> None:
    short = tuple(1 + i / 10 for i in range(width // 2))
    long = tuple(2 + i * i for i in range(width // 2))
    found = theirs(
        "longrope",
        width=width,
        base=base,
        length=length,
        maximum=2048,
        short_factor=short,
        long_factor=long,
        factor=2048 / 64,
        original_max_position_embeddings=64,
    )
    schedule = schedules.LongRope(short, long, 64, 2048)
    rows = schedule.spectrum_at(torch.tensor([length]), width=width, base=base)
    assert torch.allclose(rows.frequencies[0], found[0].double(), rtol=3e-6)
    assert rows.attention_scaling.tolist() == pytest.approx([found[1]], rel=1e-12)
    frozen = schedules.LongRope(short, long, 64, max(length, 2))
    assert torch.equal(
        torch.tensor(frozen(width=width, base=base).frequencies, dtype=torch.float64), rows.frequencies[0]
    )


@WIDTHS
@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 10_000, 65_536])
@pytest.mark.parametrize("factor", [1.0, 2.0, 8.0])
def test_dynamic_ntk_is_that_of_transformers(width: int, base: float, length: int, factor: float) -> None:
    found = theirs("dynamic", width=width, base=base, length=length, factor=factor)
    assert_same(schedules.DynamicNTK(factor, 4096, maximum=length), found, width=width, base=base)
    rows = schedules.DynamicNTK(factor, 4096).spectrum_at(torch.tensor([length, 1]), width=width, base=base)
    assert torch.allclose(rows.frequencies[0], found[0].double(), rtol=3e-5)
    plain = schedules.geometric_frequencies(width=width, base=base).frequencies
    assert rows.frequencies[1].tolist() == list(plain)
    assert rows.attention_scaling.tolist() == [1.0, 1.0]


@WIDTHS
def test_ntk_aware_divides_the_lowest_frequency_by_the_factor_and_keeps_the_highest(width: int, base: float) -> None:
    plain = schedules.geometric_frequencies(width=width, base=base).frequencies
    found = schedules.NTKAware(6.0)(width=width, base=base).frequencies
    raised = base * 6.0 ** (width / (width - 2))
    assert found == pytest.approx([raised ** (-2 * i / width) for i in range(width // 2)], rel=1e-14)
    assert found[0] == plain[0]
    assert found[-1] == pytest.approx(plain[-1] / 6.0, rel=1e-12)


@WIDTHS
def test_drop_low_frequencies_keeps_frequencies_with_a_full_period(width: int, base: float) -> None:
    plain = schedules.geometric_frequencies(width=width, base=base).frequencies
    for length in (2, 7, 100, 4096, 10**9):
        found = schedules.DropLowFrequencies(length)(width=width, base=base).frequencies
        assert found == tuple(f if 2 * math.pi / f <= length else 0.0 for f in plain)


def test_the_declared_maximum_is_the_default_length() -> None:
    schedule = schedules.DynamicNTK(2.0, 100)
    rows = schedule.spectrum_at(torch.tensor([200]), width=16, base=1e4).frequencies[0]
    assert schedule(width=16, base=1e4).frequencies == pytest.approx(rows.tolist(), rel=1e-14)
    assert schedule(width=16, base=1e4) != schedules.DynamicNTK(2.0, 100, maximum=400)(width=16, base=1e4)


def test_each_set_of_divisors_has_its_own_attention_scaling() -> None:
    schedule = schedules.LongRope((1.0, 1.0), (2.0, 2.0), 16, 64, short_mscale=1.1, long_mscale=1.3)
    assert schedule.spectrum_at(torch.tensor([16, 17]), width=4, base=1e4).attention_scaling.tolist() == [1.1, 1.3]
    assert schedule(width=4, base=1e4).attention_scaling == 1.3


def test_deepseek_moves_the_scaling_from_the_rotation_to_the_scores() -> None:
    m = 0.1 * 0.707 * math.log(40.0) + 1
    moved = Rotary(8, schedule=schedules.Yarn(40.0, 4096, mscale=0.707, mscale_all_dim=0.707))
    assert moved.spectrum.attention_scaling == 1.0
    assert moved.default_scale(8) == pytest.approx(m * m / math.sqrt(8), rel=1e-15)
    stays = Rotary(8, schedule=schedules.Yarn(40.0, 4096, mscale=0.707))
    assert stays.spectrum.attention_scaling == pytest.approx(m, rel=1e-15)
    assert stays.default_scale(8) == 1 / math.sqrt(8)


ALL: list[Schedule] = [
    schedules.geometric_frequencies,
    schedules.LinearScaling(2.0),
    schedules.NTKAware(2.0),
    schedules.DynamicNTK(2.0, 8),
    schedules.Yarn(4.0, 16),
    schedules.LongRope((1.0,) * 4, (2.0,) * 4, 8, 32),
    schedules.Llama3(original=16),
    schedules.Proportional(0.5),
    schedules.DropLowFrequencies(64),
]


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: getattr(schedule, "__name__", str(schedule)))
def test_a_schedule_is_a_value_in_the_repr_of_a_rotation(schedule: Schedule) -> None:
    rotary = Rotary(8, schedule=schedule)
    assert rotary.spectrum == schedule(width=8, base=10_000.0)
    assert repr(schedule) in repr(rotary)
    assert isinstance(schedule, LengthSchedule) == (rotary.claims.decode_state == "length")
    if not isinstance(schedule, type(schedules.geometric_frequencies)):
        assert hash(schedule) == hash(eval(repr(schedule), vars(schedules)))  # noqa: S307


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: schedules.LinearScaling(0.5),
            "LinearScaling: factor must be 1 or more, the ratio of the new to the original length, got 0.5",
        ),
        (lambda: schedules.LinearScaling(True), "LinearScaling: factor must be a number above 0, got True"),
        (lambda: schedules.NTKAware(0), "NTKAware: factor must be a number above 0, got 0"),
        (lambda: schedules.NTKAware(2.0)(width=2, base=9.0), "NTKAware: width must be 4 or more"),
        (lambda: schedules.DynamicNTK(2.0, 0), "DynamicNTK: original must be an integer, 1 or more, got 0"),
        (lambda: schedules.DynamicNTK(2.0, 8, maximum=-1), "DynamicNTK: maximum must be an integer, 1 or more, got -1"),
        (lambda: schedules.DynamicNTK(2.0, 8)(width=2, base=9.0), "DynamicNTK: width must be 4 or more"),
        (lambda: schedules.Yarn(4.0, 16, beta_fast=0.5), "Yarn: beta_fast must be at least beta_slow=1.0, got 0.5"),
        (
            lambda: schedules.Yarn(4.0, 16, attention_scaling=0.0),
            "Yarn: attention_scaling must be a number above 0, got 0.0",
        ),
        (lambda: schedules.Yarn(4.0, 16)(width=8, base=1.0), "Yarn: base must be above 1"),
        (lambda: schedules.LongRope((1.0,), (1.0,), 1, 8), "LongRope: original must be 2 or more, got 1"),
        (lambda: schedules.LongRope((1.0, 0.0), (1.0,), 8, 8), "LongRope: short[1] must be a number above 0, got 0.0"),
        (
            lambda: schedules.LongRope((1.0,), (1.0,), 8, 8, long_mscale=-1),
            "LongRope: long_mscale must be a number above",
        ),
        (
            lambda: schedules.LongRope((1.0,), (1.0, 1.0), 8, 8)(width=4, base=9.0),
            "LongRope: short must have 2 divisors, one per pair, got 1",
        ),
        (lambda: schedules.Llama3(low=4.0), "Llama3: high must be above low=4.0, got 4.0"),
        (lambda: schedules.Proportional(1.5), "Proportional: fraction must be from 0 to 1, got 1.5"),
        (lambda: schedules.DropLowFrequencies(0), "DropLowFrequencies: length must be an integer, 1 or more, got 0"),
        (lambda: schedules.LinearScaling(math.inf), "LinearScaling: factor must be a number above 0, got inf"),
        (lambda: schedules.Yarn(4, 4096.5), "Yarn: original must be an integer, 1 or more, got 4096.5"),
        (lambda: schedules.Yarn(4, 4096, mscale=-1), "Yarn: mscale must be a number, 0 or more, got -1"),
        (lambda: schedules.Yarn(4, 4096, truncate="no"), "Yarn: truncate must be True or False, got 'no'"),
        (lambda: schedules.DynamicNTK(2, 8, maximum=1.5), "DynamicNTK: maximum must be an integer, 1 or more, got 1.5"),
        (lambda: schedules.LongRope(1, (1.0,), 8, 8), "LongRope: short must be divisors, one per pair, got 1"),
        (lambda: schedules.Proportional("a"), "Proportional: fraction must be a number, 0 or more, got 'a'"),
        (lambda: schedules.Proportional(-0.5), "Proportional: fraction must be a number, 0 or more, got -0.5"),
        (lambda: Rotary(8, schedule=schedules.Yarn), "Rotary: schedule must be an instance, such as schedules.Linear"),
        (
            lambda: Rotary(8, schedule="yarn"),
            "Rotary: schedule must be an instance, such as schedules.LinearScaling(4.0), got",
        ),
    ],
)
def test_invalid_arguments_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(EncodingError, match=re.escape(message)) as caught:
        make()
    assert "\n" not in str(caught.value)
