"""An image model with the image as its input, for laws of whole rows of the batch.

Proofs from the patch embedding on keep everything before it fixed. A law that replaces a whole row needs no tokens: its
input is the image, and a row is replaced in every plane. The planes (channels, or frames of a video) take the place of
tokens.
"""

from __future__ import annotations

from dataclasses import replace

from orderproof.models.sample import Sample
from orderproof.models.subject import Subject


def with_image_input(subject: Subject) -> Subject:
    """The same model with the image as its input and the planes of the image as its tokens."""
    image = subject.sample(subject.default_length).inputs[0]
    planes, build_twin = int(image.shape[1]), subject.build_tiny_twin

    def draw(_length: int, seed: int) -> Sample:
        return Sample(subject.sample(subject.default_length, seed).inputs, tuple(f"plane {k}" for k in range(planes)))

    return replace(
        subject, patch_embedding_path=None, token_axes=(1,), default_length=planes, max_length=planes, draw=draw,
        bind_inputs=None, build_tiny_twin=None if build_twin is None else lambda: with_image_input(build_twin()),
    )  # fmt: skip
