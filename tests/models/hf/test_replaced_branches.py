"""Parts of transformers that a recording replaces: a model that depends on what they would have done is not proved."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove
from orderproof.models.hf.export_patches import patch_attribute
from orderproof.models.hf.library_code import is_of_a_library
from tests.pairs import first_soon

transformers = pytest.importorskip("transformers")
FEW = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "pad_token_id": 0,
}  # fmt: skip
END = 3  # an id that ends a document


def ends_at_the_last_token(ids: Tensor) -> Tensor:
    return 5 * (ids[:, -1:] == END)


def ends_in_any_row(ids: Tensor) -> Tensor:
    return (5 * (ids == END).sum()).expand_as(ids[:, -1:])


def ends_at_each_end(ids: Tensor) -> Tensor:
    return 5 * (ids == END).flip(1).cumsum(1).flip(1)


JUMPS = {f.__name__: f for f in (ends_at_the_last_token, ends_in_any_row, ends_at_each_end)}
DIVIDED = [("ends_at_the_last_token", "causal"), ("ends_at_each_end", "causal"), ("ends_in_any_row", "batch")]


class WithoutRotation(nn.Module):
    """Angles of zero, so that position ids count in masks only."""

    def forward(self, _: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        shape = (*position_ids.shape, 8)
        return torch.ones(shape), torch.zeros(shape)


def with_documents(name: str, kind: str, backend: str) -> Any:
    """A model whose position ids jump where its token ids say so: it takes the jumps for limits of documents."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**FEW, attn_implementation=backend)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    model.model.rotary_emb = WithoutRotation()

    def positions(_: nn.Module, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        ids = options["input_ids"]
        place = torch.arange(ids.shape[1]).expand_as(ids)
        return given, {**options, "position_ids": place + JUMPS[name](ids) * (place > 0)}

    model.register_forward_pre_hook(positions, with_kwargs=True)
    return model


def difference(model: Any, law: str) -> float:
    """By how much a run changes that the law says stays."""
    ids = torch.randint(8, 50, (2, 6), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[-1, -1] = END
    with torch.no_grad():
        before, after = (model(input_ids=x, use_cache=False).logits for x in (ids, changed))
    kept = (before - after)[:, :-1] if law == "causal" else (before - after)[:1]
    return float(kept.abs().max())


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", first_soon(["Llama", "Qwen2", "Mistral"]))
@pytest.mark.parametrize(
    ("name", "law"),
    [("ends_at_the_last_token", "causal"), ("ends_at_each_end", "causal"), ("ends_in_any_row", "batch")],
)
def test_documents_that_token_ids_divide_are_not_left_out(name: str, law: str, kind: str, backend: str) -> None:
    model = with_documents(name, kind, backend)
    assert difference(model, law) > 1e-3
    assert prove(model, law).verdict != "proved"


def windowed_without_a_mask(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Any, **options: Any) -> Any:
    """Attention that sees the last 40 tokens if it gets no mask, and all of them under a mask."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    place = torch.arange(q.shape[2])
    if mask is None and len(place) > 40:
        mask = (place <= place[:, None]) & (place > place[:, None] - 40)
    return sdpa_attention_forward(module, q, k, v, mask, **options)


def test_a_mask_that_an_eager_call_drops_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "windowed", windowed_without_a_mask)
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, "windowed", sdpa_mask)

    class HidesPads(transformers.LlamaModel):  # type: ignore[misc]
        def forward(self, input_ids: Tensor, **options: Any) -> Any:
            return super().forward(input_ids=input_ids, attention_mask=(input_ids != END).long(), **options)

    torch.manual_seed(0)
    model = HidesPads(transformers.LlamaConfig(**FEW)).eval()
    model.config._attn_implementation = "windowed"
    ids = torch.randint(8, 50, (2, 60), generator=torch.Generator().manual_seed(0))
    padded = ids.clone()
    padded[1, 2] = END
    with torch.no_grad():
        before, after = (model(x, use_cache=False).last_hidden_state[0] for x in (ids, padded))
    assert float((before - after).abs().max()) > 1e-3
    assert prove(model, "batch").verdict != "proved"


CHECK = transformers.PreTrainedModel.warn_if_padding_and_no_attention_mask


def swap_rows(_model: Any, ids: Tensor, _mask: Any) -> None:
    """Row 0 is exchanged for the last one if that has a rare id."""
    ids.copy_(torch.where((ids[-1:] == END).any(), ids.roll(1, 0), ids))


class SwapsRows:
    def __call__(self, *given: Any) -> None:
        swap_rows(*given)


class SwapsRowsAsAModule(nn.Module):
    def forward(self, *given: Any) -> None:
        swap_rows(*given)


def with_wraps() -> Any:
    return functools.wraps(CHECK)(swap_rows)


def in_a_closure_of_torch() -> Any:
    changed = torch.no_grad()(swap_rows)
    del changed.__wrapped__
    return changed


def by_other_globals() -> Any:
    def is_tracing(ids: Tensor | None = None) -> bool:
        if ids is not None:
            swap_rows(None, ids, None)
        return False

    return types.FunctionType(CHECK.__code__, {**CHECK.__globals__, "is_tracing": is_tracing})


def with_the_file_of_the_library() -> Any:
    space: dict[str, Any] = {"swap_rows": swap_rows}
    text = "def warn(model, ids, mask): swap_rows(model, ids, mask)"
    exec(compile(text, CHECK.__code__.co_filename, "exec"), space)
    return space["warn"]


OTHERS: dict[str, Callable[[], Any]] = {
    "a function": lambda: swap_rows,
    "with wraps": with_wraps,
    "with a decorator of torch": lambda: torch.no_grad()(with_wraps()),
    "in a closure of torch": in_a_closure_of_torch,
    "an object": lambda: torch.no_grad()(SwapsRows()),
    "a module": lambda: torch.no_grad()(SwapsRowsAsAModule()),
    "a partial function": lambda: torch.no_grad()(functools.partial(swap_rows)),
    "a cached function": lambda: torch.no_grad()(functools.lru_cache(0)(swap_rows)),
    "by other global variables": by_other_globals,
    "with the file of the library": with_the_file_of_the_library,
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_function_in_the_place_of_one_of_the_library_is_not_replaced(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = OTHERS[name]()
    assert not is_of_a_library(other)
    monkeypatch.setattr(transformers.PreTrainedModel, CHECK.__name__, other)
    torch.manual_seed(0)
    few = {key: FEW[key] for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")}
    config = transformers.RoFormerConfig(**few, num_attention_heads=2, pad_token_id=0)
    assert prove(transformers.RoFormerModel(config).eval(), "batch").verdict != "proved"


def test_a_condition_that_a_check_computes_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama import modeling_llama
    from transformers.utils.import_utils import torch_compilable_check

    monkeypatch.setattr(modeling_llama, "torch_compilable_check", torch_compilable_check, raising=False)

    class Checks(transformers.LlamaModel):  # type: ignore[misc]
        def forward(self, input_ids: Tensor, **options: Any) -> Any:
            self.warn_if_padding_and_no_attention_mask(input_ids, options.get("attention_mask"))
            ids = input_ids.clone()

            def condition() -> bool:
                swap_rows(self, ids, None)
                return True

            modeling_llama.torch_compilable_check(condition, "it changes the ids")
            return super().forward(input_ids=ids, **options)

    torch.manual_seed(0)
    assert prove(Checks(transformers.LlamaConfig(**FEW)).eval(), "batch").verdict != "proved"


def test_global_variables_of_the_library_that_were_changed_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import modeling_utils

    assert is_of_a_library(CHECK)
    with monkeypatch.context() as patch:
        patch.setattr(modeling_utils, "is_tracing", lambda *_: False)
        assert not is_of_a_library(CHECK)
    with monkeypatch.context() as patch:
        patch.setattr(modeling_utils, "logger", SwapsRows())
        assert not is_of_a_library(CHECK)
    assert is_of_a_library(CHECK)


@pytest.mark.parametrize("name", ["find_packed_sequence_indices", "_ignore_causal_mask_sdpa", "is_tracing"])
def test_functions_of_the_library_are_its_own(name: str) -> None:
    from transformers import masking_utils

    assert is_of_a_library(getattr(masking_utils, name))


def test_position_ids_of_a_shape_are_read() -> None:
    class Counted(transformers.LlamaModel):  # type: ignore[misc]
        def forward(self, input_ids: Tensor, **options: Any) -> Any:
            self.warn_if_padding_and_no_attention_mask(input_ids, options.get("attention_mask"))
            places = torch.arange(input_ids.shape[1]).unsqueeze(0)
            return super().forward(input_ids=input_ids, position_ids=places, **options)

    torch.manual_seed(0)
    finding = prove(Counted(transformers.LlamaConfig(**FEW)).eval(), "causal")
    assert finding.verdict == "proved", finding.reason
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert any("parts of the model were replaced" in text for text in finding.scope.assumptions)


def test_a_leak_under_a_mask_that_hides_nothing_is_refuted() -> None:
    class Mistaken(transformers.LlamaModel):  # type: ignore[misc]
        """Attention that is not causal with a mask, which sdpa drops where it has no pads."""

        def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Any:
            self.warn_if_padding_and_no_attention_mask(input_ids, None)
            for layer in self.layers:
                layer.self_attn.is_causal = attention_mask is None
            return super().forward(input_ids=input_ids, attention_mask=attention_mask, **options)

    torch.manual_seed(0)
    report = audit(Mistaken(transformers.LlamaConfig(**FEW, attn_implementation="sdpa")).eval(), laws=["causal"])
    plain, padded = report.findings
    assert plain.verdict == "proved"
    assert padded.call_mode == "no pads"
    assert padded.verdict == "refuted"


def test_what_stood_in_a_class_is_put_back() -> None:
    class Owner:
        @staticmethod
        def static() -> int:
            return 1

    class Child(Owner):
        pass

    for owner in (Owner, Child):
        before = dict(vars(owner))
        with patch_attribute(owner, "static", lambda: 2):
            assert owner.static() == 2
        assert dict(vars(owner)) == before


def test_a_class_that_names_a_module_of_transformers_that_is_not_loaded() -> None:
    torch.manual_seed(0)
    model = transformers.LlamaModel(transformers.LlamaConfig(**FEW)).eval()
    model.part = type("Part", (nn.Module,), {"__module__": "transformers.models.mine.modeling_mine"})()
    assert prove(model, "causal").verdict == "proved"
