"""Audio models: a waveform or a spectrogram in; the model computes its tokens by convolutions.

Laws of tokens therefore do not apply to the input. Laws of whole rows of the batch, state, backends and loading do.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from orderproof.models.input_spec import InputSpec, NoTokenInputError
from orderproof.models.sample import BATCH_SIZE, Sample, seeded_generator, token_labels

AUDIO_ARGUMENTS = ("input_values", "input_features", "audio_mel")
WHOLE_ROWS_REASON = "it reads audio and computes its tokens inside, so only laws of whole rows of the batch apply"
_MELS = ("num_mel_bins", "feature_size", "input_feat_per_channel", "input_dim", "n_mels", "feat_dim", "in_channels")
_FRAMES = ("max_length", "max_source_positions", "max_position_embeddings")
_DEFAULT_MELS = (80, 128)


def is_audio_model(chosen: Any) -> bool:
    """True if the main input of a class or a model is audio."""
    return audio_argument(chosen) is not None


def audio_argument(model: Any) -> str | None:
    """The argument that takes the audio; None if the main input is something else."""
    accepted = inspect.signature(model.forward).parameters
    return next((name for name in AUDIO_ARGUMENTS if name in accepted and name == model.main_input_name), None)


def audio_input(name: str, model: Any, argument: str) -> InputSpec:
    """Random audio in the first shape that the model takes. Raises `NoTokenInputError`."""
    failed: Exception | None = None
    for shape in candidate_audio_shapes(model.config, argument):
        try:
            with torch.no_grad():
                model(**{argument: sample_audio(shape, 0)})
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come, and another shape may do
            failed = failed or error
        else:
            return InputSpec(argument, partial(_audio_sample, shape), summary=f", audio {list(shape[1:])}")
    raise NoTokenInputError(
        f"{name}: {type(model).__name__} reads audio, but takes none of the candidate shapes"
    ) from failed


def candidate_audio_shapes(config: Any, argument: str) -> Iterator[tuple[int, ...]]:
    """Shapes to try: [batch, sample], then [batch, frequency, frame] and [batch, frame, frequency]."""
    parts = [config, *(p for n in ("encoder", "audio_config", "encoder_config") if (p := getattr(config, n, None)))]
    counts = [v for part in parts for n in _MELS if isinstance(v := getattr(part, n, None), int) and v > 1]
    mels = list(dict.fromkeys([*counts, *_DEFAULT_MELS]))
    frames = [v for part in parts for n in _FRAMES if isinstance(v := getattr(part, n, None), int) and v <= 3000]
    lengths = list(dict.fromkeys([64, 100, *frames, *(2 * v for v in frames), *(4 * v for v in frames)]))
    if argument == "input_values":
        for samples in (1600, 3200, 16000):
            yield (BATCH_SIZE, samples)
            yield (BATCH_SIZE, 1, samples)
    for length in lengths:
        for mel in mels:
            yield (BATCH_SIZE, mel, length)
            yield (BATCH_SIZE, length, mel)


def sample_audio(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """White noise of unit variance."""
    return torch.randn(shape, generator=seeded_generator(seed))


def _audio_sample(shape: tuple[int, ...], _length: int, seed: int) -> Sample:
    return Sample((sample_audio(shape, seed),), token_labels(shape[1]))
