"""OP601 loads_checkpoint: the engine loads the checkpoint folder that transformers saves.

    save(f) -> config.json, *.safetensors -> E

If it refuses the folder, the keys of earlier versions of transformers are added to config.json (`rope_theta` and
`rope_scaling` next to `rope_parameters`). If it loads that, the law fails for the version of the configuration, the
other laws are measured with these keys, and what to do names them. If it refuses both, nothing else can be measured.
Source: elementary; broken by engines that require keys of another version of the configuration.
"""

from __future__ import annotations

from orderproof.laws.ports.port_law import PortCall, PortLaw, PortModel


class LoadsCheckpoint(PortLaw):
    """The law of this module: it needs no call."""

    def call(self, model: PortModel) -> PortCall | None:
        return None


LAW = LoadsCheckpoint(
    code="OP601",
    name="loads_checkpoint",
    statement="An engine loads the checkpoint that transformers saves.",
    trait="is loaded from the checkpoint that transformers saves",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Read the keys that transformers writes to config.json, and refuse a configuration that lacks one.",
)
