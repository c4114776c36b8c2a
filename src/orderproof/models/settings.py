"""Call settings of a subject: its tokens with an attention mask or position ids.

    padded      with an attention mask that marks some tokens as pads, alternately left and right; the other layouts of
                `batch_layout.PadLayout` are settings too
    packed      two packed documents in each row: with position ids that restart, or with document ids, a mask or
                boundaries, if the subject takes them
    blocked     the same with a mask that lets each document see only itself
    labelled    with position ids as an input (and, for a causal model, its mask)

Masks and restarting position ids are computed inside the module from the shape of the tokens, so that they are
constants of the graph at every length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from orderproof import batch_layout
from orderproof.errors import first_line
from orderproof.models.own_errors import raise_own_error
from orderproof.models.roles.named_arguments import KeywordInputs
from orderproof.models.sample import Sample
from orderproof.models.subject import Axis, Subject
from orderproof.recording.low_rank import call_for_shapes

DEFAULT_SETTING = "plain"
SETTING_INPUT_NAMES: dict[str, str] = {
    **dict.fromkeys(batch_layout.PAD_LAYOUTS, "attention mask"),
    "packed": "position ids, document ids or boundaries of documents",
    "blocked": "position ids and a mask [token, token]",
    "labelled": "position ids",
}


class ShapeDerivedInputs(nn.Module):
    """A module called with inputs that follow from the shape of its tokens [batch, token, ...]."""

    def __init__(self, module: nn.Module, input_builder: _SettingInputs, place: int) -> None:
        super().__init__()
        self.module = module
        self.input_builder = input_builder
        self.place = place  # of the input with tokens

    def forward(self, *inputs: Tensor) -> object:
        """Call the module with its inputs and those of the builder."""
        tokens = inputs[self.place]
        return self.module(*inputs, *self.input_builder(tokens, mask_dtype(self.module, tokens)))


def mask_dtype(module: nn.Module, tokens: Tensor) -> torch.dtype:
    """The dtype of an additive mask: that of the tokens, or of the weights if tokens are ids."""
    if tokens.is_floating_point():
        return tokens.dtype
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


def apply_setting(subject: Subject, setting: str) -> Subject | str:
    """The subject called in a setting, or the reason why it cannot be."""
    if setting == DEFAULT_SETTING:
        return subject
    if subject.packs_documents and setting in ("packed", "labelled"):
        return subject if setting == "packed" else "where its documents are is held"
    missing = f"it takes no {SETTING_INPUT_NAMES[setting]}"
    if subject.patch_embedding_path is not None:
        return f"{missing}: its tokens are the patches of an image"
    if subject.token_axes[subject.token_input] != 1:
        return f"{missing}: its tokens do not run along axis 1"
    if subject.bind_inputs is None:
        return missing
    for names in candidate_inputs(subject, setting):
        bound = subject.bind_inputs(names, setting)
        if bound is None:
            continue
        module, export_context = bound
        in_setting = _bind_setting(replace(subject, export_context=export_context), setting, names, module.eval())
        refusal = "" if subject.device == "meta" else _call_error(in_setting)
        if not refusal:
            return in_setting
        missing = f"{missing.partition(' (')[0]} ({refusal})"
    return missing


def candidate_inputs(subject: Subject, setting: str) -> list[tuple[str, ...]]:
    """The inputs to try, the larger set first."""
    if setting == "labelled" and subject.model_kind == "causal_lm":
        return [("position_ids", "block_mask"), ("position_ids",)]
    if setting == "packed" and subject.packed_names:
        return [subject.packed_names]
    return (
        [("attention_mask",)]
        if setting in batch_layout.PAD_LAYOUTS
        else [("position_ids", *["block_mask"] * (setting == "blocked"))]
    )


def _bind_setting(subject: Subject, setting: str, names: tuple[str, ...], module: nn.Module) -> Subject:
    twin = None if subject.build_tiny_twin is None else _twin_in_setting(subject.build_tiny_twin, setting)
    if setting != "labelled":
        values = {f"module.{name}": value for name, value in subject.buffer_values.items()}
        path = _inner_path("module" + (".model" if isinstance(module, KeywordInputs) else ""), subject)
        derived = ShapeDerivedInputs(module, _SettingInputs(names, setting, subject), subject.token_input).eval()
        return replace(
            subject, module=derived, buffer_values=values, build_tiny_twin=twin, bind_inputs=None, wrapped_path=path
        )
    axes: tuple[Axis, ...] = (*subject.token_axes, *((2, 3) if name == "block_mask" else 1 for name in names))
    input_builder = _SettingInputs(names, DEFAULT_SETTING, subject)

    def draw(length: int, seed: int) -> Sample:
        sample = subject.draw(length, seed)
        tokens = sample.inputs[subject.token_input]
        extras = input_builder(tokens, mask_dtype(module, tokens))
        return Sample((*sample.inputs, *(x.clone() for x in extras)), sample.labels)

    path = _inner_path("model" if isinstance(module, KeywordInputs) else "", subject)
    rows = None if subject.row_inputs is None else (*subject.row_inputs, *(True for _ in names))
    return replace(
        subject, module=module, token_axes=axes, draw=draw, build_tiny_twin=twin, bind_inputs=None, wrapped_path=path,
        row_inputs=rows,
    )  # fmt: skip


def _inner_path(path: str, subject: Subject) -> str:
    """The path of the model in a wrapper around the module of a subject, which may be a wrapper itself."""
    return ".".join(part for part in (path, subject.wrapped_path) if part)


def _twin_in_setting(build_twin: Callable[[], Subject], setting: str) -> Callable[[], Subject]:
    def build() -> Subject:
        twin = apply_setting(build_twin(), setting)
        assert isinstance(twin, Subject), twin
        return twin

    return build


class _SettingInputs:
    """The additional inputs of a setting, from the shape of the tokens."""

    def __init__(self, names: tuple[str, ...], setting: str, subject: Subject) -> None:
        self.names, self.setting = names, setting
        self.pad_layout: batch_layout.PadLayout = next((x for x in batch_layout.PAD_LAYOUTS if x == setting), "padded")
        self.causal, self.first_position = subject.model_kind == "causal_lm", subject.first_position

    def __call__(self, inputs: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
        rows, tokens, device = inputs.shape[0], inputs.shape[1], inputs.device
        values = []
        for name in self.names:
            if name == "attention_mask":
                values.append((~batch_layout.padding_slots(rows, tokens, device, self.pad_layout)).long())
            elif name == "document_ids":
                starts = torch.arange(tokens, device=device) >= batch_layout.second_document_start(tokens)
                values.append((starts & (self.setting != DEFAULT_SETTING)).long().expand(rows, tokens))
            elif name == "position_ids":
                values.append(self.first_position + self._positions(rows, tokens, device))
            else:
                values.append(self._attention_bias(tokens, device, dtype).expand(rows, 1, tokens, tokens))
        return tuple(values)

    def _positions(self, rows: int, tokens: int, device: torch.device) -> Tensor:
        if self.setting == DEFAULT_SETTING:
            return torch.arange(tokens, device=device).unsqueeze(0).expand(rows, tokens)
        return batch_layout.restarting_position_ids(rows, tokens, device)

    def _attention_bias(self, tokens: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """The additive mask [token, token]: 0 at visible keys, the least finite number elsewhere."""
        index = torch.arange(tokens, device=device)
        visible = index.unsqueeze(-1) >= index if self.causal else index.unsqueeze(-1) >= 0 * index
        if self.setting != DEFAULT_SETTING:
            visible = visible & batch_layout.same_document_mask(tokens, device)
        return torch.zeros(tokens, tokens, dtype=dtype, device=device).masked_fill(~visible, torch.finfo(dtype).min)


def _call_error(subject: Subject) -> str:
    """The error of one call, as text; empty if it succeeds. Errors of this package are raised."""
    try:
        call_for_shapes(subject.module, subject.sample(subject.default_length, 0).inputs)
    except SystemExit as stop:
        return f"a call of it raised SystemExit: {stop.code}"
    except Exception as error:  # noqa: BLE001 - the model may refuse the call in any way
        raise_own_error(error)
        return first_line(error)
    return ""
