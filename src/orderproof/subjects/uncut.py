"""An image model seen from its image, for laws about whole rows of the batch.

Where a patch embedding is cut out, everything before it is held fixed, and the image that reaches the output beside
it with it. A law that replaces a whole row needs no tokens: its input is the image itself, of which a row is replaced
in every plane. Planes (channels, or the frames of a film) then stand where tokens would.
"""

from __future__ import annotations

from dataclasses import replace

from orderproof.subjects.subject import Sample, Subject


def from_the_image(subject: Subject) -> Subject:
    """The same model, whose input is the image and whose tokens are its planes."""
    given = subject.sample(subject.length).inputs[0]
    planes, twin = int(given.shape[1]), subject.twin

    def draw(_length: int, seed: int) -> Sample:
        return Sample(subject.sample(subject.length, seed).inputs, tuple(f"plane {k}" for k in range(planes)))

    return replace(
        subject, cut=None, token_axes=(1,), length=planes, max_length=planes, draw=draw, takes=None,
        twin=None if twin is None else lambda: from_the_image(twin()),
    )  # fmt: skip
