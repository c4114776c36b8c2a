from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orderproof import encodings
from orderproof.encodings import Sinusoidal, Spectrum, _cos_sin_table, kernels
from orderproof.encodings._frequencies import cos_sin
from orderproof.encodings.schedules import geometric_frequencies
from orderproof.errors import EncodingError, PositionError

MILLION = 1 << 20
HALF_A_UNIT = 3.0e-8  # of float32 just under 1
PATHS = pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(True, marks=pytest.mark.skipif(not kernels.kernels_available(), reason="built without kernels")),
        False,
    ],
    ids=["kernel", "torch"],
)


@pytest.fixture
def path(kernel: bool, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With the kernel, or as if there were none."""
    if not kernel:
        monkeypatch.setattr(kernels, "cos_sin_table", lambda *_: None)
    return kernel


def exact(positions: torch.Tensor, spectrum: Spectrum) -> torch.Tensor:
    """Cosines and sines in float64, by the formula."""
    angles = positions.double().unsqueeze(-1) * torch.tensor(spectrum.frequencies, dtype=torch.float64)
    return torch.stack([angles.cos(), angles.sin()]) * spectrum.attention_scaling


@PATHS
@pytest.mark.usefixtures("path")
def test_a_table_of_a_million_rows_is_off_by_half_a_unit() -> None:
    spectrum = geometric_frequencies(width=128, base=500_000.0)
    found = torch.stack(encodings.cos_sin_table(spectrum, MILLION))
    assert found.shape == (2, MILLION, 64)
    generator = torch.Generator().manual_seed(0)
    # Powers of two hide rounding: every residue of 1024 and of 1009, the last rows, and the neighbours of powers.
    powers = 2 ** torch.arange(1, 20)
    some = torch.randint(MILLION, (20_000,), generator=generator)
    rows = torch.cat([some, torch.arange(0, MILLION, 1009), torch.arange(MILLION - 2048, MILLION), powers - 1, powers])
    assert (found[:, rows].double() - exact(rows, spectrum)).abs().max() < HALF_A_UNIT


@PATHS
@pytest.mark.usefixtures("path")
@given(
    places=st.lists(st.integers(0, 2**21) | st.sampled_from([2**20 - 1, 2**20, 2**20 + 1, 2**40 + 1]), max_size=9),
    gain=st.sampled_from([1.0, 1.25]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_rows_are_the_formula_at_any_position(places: list[int], gain: float, dtype: torch.dtype) -> None:
    spectrum = Spectrum(frequencies=(1.0, 0.3, 0.01), attention_scaling=gain)
    positions = torch.tensor(places, dtype=torch.int64)
    found = torch.stack(_cos_sin_table.cos_sin_rows(positions, spectrum, dtype=dtype))
    assert found.dtype == dtype
    wanted = exact(positions, spectrum)
    bound = torch.finfo(dtype).eps * gain / 2 + 2e-15 * positions.double().clamp(min=1, max=2**20)[:, None]
    assert ((found.double() - wanted).abs() <= bound).all()


@PATHS
@pytest.mark.usefixtures("path")
def test_a_row_does_not_depend_on_the_others_asked_for() -> None:
    spectrum = geometric_frequencies(width=6, base=10_000.0)
    positions = torch.cat([torch.arange(0, 3 * 10**6, 997), torch.arange(70_000)]).view(2, -1)
    for whole, alone in zip(
        _cos_sin_table.cos_sin_rows(positions, spectrum, dtype=torch.float32),
        _cos_sin_table.cos_sin_rows(positions[1, ::503], spectrum, dtype=torch.float32),
        strict=True,
    ):
        assert torch.equal(whole[1, ::503], alone)


def test_threads_and_strides_change_nothing() -> None:
    spectrum = geometric_frequencies(width=64, base=10_000.0)
    once = encodings.cos_sin_table(spectrum, 70_000)
    torch.set_num_threads(2)
    try:
        assert all(torch.equal(a, b) for a, b in zip(encodings.cos_sin_table(spectrum, 70_000), once, strict=True))
    finally:
        torch.set_num_threads(1)
    strided = torch.arange(20).view(10, 2).T[1]
    for a, b in zip(_cos_sin_table.cos_sin_rows(strided, spectrum, dtype=torch.float32), once, strict=True):
        assert torch.equal(a, b[1:20:2])


def test_where_nothing_can_be_read_the_cosines_are_worked_out_one_by_one() -> None:
    spectrum = geometric_frequencies(width=8, base=10_000.0)
    assert encodings.cos_sin_table(spectrum, 5, device="meta")[0].shape == (5, 4)
    compiled = torch.compile(
        lambda p: _cos_sin_table.cos_sin_rows(p, spectrum, dtype=torch.float32)[0], backend="eager", fullgraph=True
    )
    p = torch.arange(2000, 2005)
    assert torch.equal(compiled(p), cos_sin(p, spectrum, dtype=torch.float32)[0])


def test_a_default_device_and_inference_mode_do_not_spoil_later_tables() -> None:
    spectrum = Spectrum(frequencies=(0.77, 0.011))
    with torch.inference_mode(), torch.device("meta"):
        assert (
            _cos_sin_table.cos_sin_rows(torch.arange(3, device="cpu"), spectrum, dtype=torch.float64)[0].device.type
            == "cpu"
        )
    x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    (x * _cos_sin_table.cos_sin_rows(torch.arange(3), spectrum, dtype=torch.float64)[0]).sum().backward()
    assert x.grad is not None


@PATHS
@pytest.mark.usefixtures("path")
def test_the_sinusoidal_encoding_reads_the_same_table() -> None:
    places = torch.tensor([0, 1, 70_001, 999_983, 1_048_575, 1_048_577])
    encoding = Sinusoidal(8)
    found = encoding.encoding_table(places)
    wanted = exact(places, encoding.spectrum)
    assert (found[:, 0::2].double() - wanted[1]).abs().max() < HALF_A_UNIT
    assert (found[:, 1::2].double() - wanted[0]).abs().max() < HALF_A_UNIT


def test_invalid_arguments_are_rejected() -> None:
    spectrum = geometric_frequencies(width=8, base=10_000.0)
    with pytest.raises(
        EncodingError, match=r"cos_sin_table: dtype must be floating, such as torch\.float32, got torch\.int64"
    ):
        encodings.cos_sin_table(spectrum, 5, dtype=torch.int64)
    with pytest.raises(PositionError, match="n: expected an integer, 0 or more, got -1"):
        encodings.cos_sin_table(spectrum, -1)
