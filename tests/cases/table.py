"""Small modules after public reports, and the result of the plain command for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "modules"


@dataclass(frozen=True)
class Case:
    """A subject, how it is audited, and the result.

    Attributes:
        file: The file in `modules` without its suffix.
        name: The function in it.
        kind: As after `--as`; empty for none.
        law: As after `--law`; empty for all laws.
        fails: A law that fails; empty if the command ends with exit code 0.
        line: A part of the line that the failure names.
        mode: As after `--mode`.

    """

    file: str
    name: str
    kind: str = ""
    law: str = ""
    fails: str = ""
    line: str = ""
    mode: str = "eval"

    @property
    def spec(self) -> str:
        """The subject as on the command line."""
        return f"{MODULES / self.file}.py:{self.name}"

    @property
    def options(self) -> list[str]:
        """The options of `orderproof audit`."""
        given = {"--as": self.kind, "--law": self.law, "--mode": "" if self.mode == "eval" else self.mode}
        return [part for option, value in given.items() if value for part in (option, value)]

    @property
    def title(self) -> str:
        """The case in a few words."""
        return " ".join([f"{self.file}:{self.name}", *self.options])


CASES = (
    Case("mask_among_inputs", "bad", "encoder", fails="padding", line="q @ k.mT"),
    Case("mask_among_inputs", "good", "encoder"),
    Case("last_token_pool", "bad", "encoder", fails="padding"),
    Case("last_token_pool", "good", "encoder"),
    Case("packed_delta_row", "bad", law="packing", fails="packing", line="@ v"),
    Case("packed_delta_row", "good", law="packing"),
    Case("packed_delta_rule", "bad", law="packing", fails="packing"),
    Case("packed_delta_rule", "good", law="packing"),
    Case("packed_image_rope", "bad", "encoder", fails="packed_alone"),
    Case("packed_image_rope", "good", "encoder"),
    Case("stale_eos_mask", "bad", "decoder", fails="stateless", line="self."),
    Case("stale_eos_mask", "good", "decoder"),
    Case("eos_mask_only", "bad", "decoder", fails="causal"),
    Case("eos_mask_only", "good", "decoder"),
    Case("flex_documents", "bad", "decoder", fails="causal", line=">="),
    Case("flex_documents", "good", "decoder"),
    Case("chunk_positions", "bad", "decoder", fails="chunked_prefill", line="start ="),
    Case("chunk_positions", "good", "decoder"),
    Case("chunk_positions", "bad_plain", "decoder", fails="chunked_prefill", line="start ="),
    Case("chunk_positions", "good_plain", "decoder"),
    Case("images_see_later_images", "bad_adapter", fails="attention_pattern"),
    Case("images_see_later_images", "good_adapter"),
    Case("moe_capacity_pads", "bad", "encoder", fails="padding", line="cumsum"),
    Case("moe_capacity_pads", "good", "encoder"),
    Case("batchnorm_in_train_mode", "build", law="batch", mode="train", fails="batch"),
    Case("batchnorm_in_train_mode", "build"),
    Case("padding_mask_polarity", "build", "encoder", law="padding"),
    Case("missed_at_compared_lengths", "build", "decoder", law="causal", fails="causal"),
)
