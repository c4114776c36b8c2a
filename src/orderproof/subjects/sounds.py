"""Models of sound: a waveform, or a picture of its frequencies, in; their tokens are made inside.

What a token is depends on convolutions over the sound, so laws of tokens are not asked about. Rows of the batch, the
state that calls leave behind, backends and storage are.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from orderproof.subjects.images import NoTokens, Reading
from orderproof.subjects.subject import Sample, labels, seeded

ARGUMENTS = ("input_values", "input_features", "audio_mel")
ROWS_ONLY = "it reads sound, and makes its tokens inside: only whole rows of the batch are asked about"
BATCH = 2
_MELS = ("num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "n_mels", "feat_dim", "in_channels")
_FRAMES = ("max_length", "max_source_positions", "max_position_embeddings")
_USUAL_MELS = (80, 128)


def reads_sound(chosen: Any) -> bool:
    """Whether a class, or a model, takes a sound first."""
    return argument_of(chosen) is not None


def argument_of(model: Any) -> str | None:
    """The argument that takes the sound; None where a model reads something else."""
    accepted = inspect.signature(model.forward).parameters
    return next((name for name in ARGUMENTS if name in accepted and name == model.main_input_name), None)


def read_sound(name: str, model: Any, argument: str) -> Reading:
    """Draw sounds in the first shape that the model takes. Raises `NoTokens`."""
    failed: Exception | None = None
    for shape in shapes(model.config, argument):
        try:
            with torch.no_grad():
                model(**{argument: drawn(shape, 0)})
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
            failed = failed or error
        else:
            return Reading(argument, partial(_sample, shape), words=f", sounds {list(shape[1:])}")
    raise NoTokens(f"{name}: {type(model).__name__} reads sound, and takes it in none of the usual shapes") from failed


def shapes(config: Any, argument: str) -> Iterator[tuple[int, ...]]:
    """Shapes to try: samples in a row, then frequencies by frames and frames by frequencies."""
    parts = [config, *(p for n in ("encoder", "audio_config", "encoder_config") if (p := getattr(config, n, None)))]
    counts = [v for part in parts for n in _MELS if isinstance(v := getattr(part, n, None), int) and v > 1]
    mels = list(dict.fromkeys([*counts, *_USUAL_MELS]))
    frames = [v for part in parts for n in _FRAMES if isinstance(v := getattr(part, n, None), int) and v <= 3000]
    lengths = list(dict.fromkeys([64, 100, *frames, *(2 * v for v in frames), *(4 * v for v in frames)]))
    if argument == "input_values":
        for samples in (1600, 3200, 16000):
            yield (BATCH, samples)
            yield (BATCH, 1, samples)
    for length in lengths:
        for mel in mels:
            yield (BATCH, mel, length)
            yield (BATCH, length, mel)


def drawn(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Noise, as loud as speech."""
    return torch.randn(shape, generator=seeded(seed))


def _sample(shape: tuple[int, ...], _length: int, seed: int) -> Sample:
    return Sample((drawn(shape, seed),), labels(shape[1]))
