"""A second check of the findings that are newer than the atlas: other sizes and weights, in float64, by the library.

Each compares the call with a defect and the nearest call without it, so that the cause in the table is tested too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

SEEN = 1e-5  # a difference above float32 rounding: some models compute in float32 inside
SIZES = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}  # fmt: skip
ROWS, TOKENS = 2, 10


def model(name: str, **values: Any) -> Any:
    """A small model in float64; its parameters are moved off their initial values."""
    torch.manual_seed(5)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **values})
    built = getattr(transformers, f"{name}Model")(config).eval()
    for parameter in built.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return built.double()


def token_ids() -> Tensor:
    """Token ids [row, token]."""
    return torch.randint(1, 50, (ROWS, TOKENS), generator=torch.Generator().manual_seed(6))


def decoded(built: Any, sizes: Sequence[int], *, positions: bool = False) -> Tensor:
    """The outputs of calls of these sizes on one cache."""
    ids, outputs, past, start = token_ids(), [], None, 0
    for size in sizes:
        more = {"position_ids": torch.arange(start, start + size).expand(ROWS, size)} if positions else {}
        with torch.no_grad():
            answer = built(ids[:, start : start + size], past_key_values=past, use_cache=True, **more)
        outputs.append(answer.last_hidden_state)
        past, start = answer.past_key_values, start + size
    return torch.cat(outputs, 1)


def difference(built: Any, actual: Tensor) -> float:
    """The largest difference to one forward without a cache, relative to its largest output."""
    with torch.no_grad():
        expected = built(token_ids()[:, : actual.shape[1]], use_cache=False).last_hidden_state
    return float((actual - expected).abs().max() / expected.abs().max())


def difference_with_a_longer_row(built: Any) -> float:
    """The largest difference of a row of 9 tokens alone and padded on the right in a batch."""
    ids, mask = token_ids(), torch.ones(ROWS, TOKENS, dtype=torch.long)
    mask[0, 9:] = 0
    with torch.no_grad():
        alone = built(ids[:1, :9], use_cache=False).last_hidden_state[0]
        padded = built(ids, attention_mask=mask, use_cache=False).last_hidden_state[0, :9]
    return float((padded - alone).abs().max())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Bamba", {"num_hidden_layers": 3, "attn_layer_indices": [1], "mamba_n_heads": 4, "mamba_d_head": 16}),
        (
            "MiniMax",
            {
                "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"], "block_size": 4,
                "num_local_experts": 2, "head_dim": 8, "experts_implementation": "eager",
            },
        ),
    ],
)  # fmt: skip
def test_default_positions_restart_on_a_cache(name: str, values: dict[str, Any]) -> None:
    built = model(name, **values)
    assert difference(built, decoded(built, [1] * TOKENS)) > SEEN
    assert difference(built, decoded(built, [1] * TOKENS, positions=True)) < SEEN


def test_jamba_starts_the_second_chunk_from_zero() -> None:
    values = {"num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4}
    built = model("Jamba", **values, num_experts=1, num_experts_per_tok=1)
    assert difference(built, decoded(built, [5, 5])) > SEEN
    assert difference(built, decoded(built, [9, 1])) < SEEN
    assert difference(built, decoded(built, [1] * TOKENS)) < SEEN


@pytest.mark.parametrize(("least", "seen"), [(1e-3, True), (1e-30, False)])
def test_zamba2_clamps_the_time_step_in_the_scan_only(least: float, seen: bool) -> None:
    values = {"num_hidden_layers": 2, "layers_block_type": ["linear_attention", "hybrid"], "attention_head_dim": 16}
    built = model("Zamba2", **values, chunk_size=4, time_step_min=least)
    assert (difference(built, decoded(built, [1] * TOKENS)) > SEEN) is seen


@pytest.mark.parametrize(("tokens", "seen"), [(8, True), (7, False)])
def test_dynamic_frequencies_stay_for_a_text_of_the_original_length(tokens: int, seen: bool) -> None:
    rope = {"rope_theta": 1e4, "rope_type": "dynamic", "factor": 4.0}
    built = model("Llama", num_hidden_layers=2, rope_parameters=rope, max_position_embeddings=8)
    ids = token_ids()[:, :tokens]
    call: Callable[[Tensor], Tensor] = lambda x: built(x).last_hidden_state  # noqa: E731
    with torch.no_grad():
        before, _, after = call(ids), call(token_ids().repeat(1, 2)), call(ids)
    assert (float((after - before).abs().max()) > SEEN) is seen


@pytest.mark.parametrize(("removed", "seen"), [(1, True), (0, False)])
def test_a_crop_of_a_quantised_cache_leaves_its_length(removed: int, seen: bool) -> None:
    from transformers.cache_utils import Cache, QuantizedLayer

    class Exact(QuantizedLayer):
        def _quantize(self, tensor: Tensor, axis: int) -> Tensor:
            return tensor.clone()

        def _dequantize(self, q_tensor: Tensor) -> Tensor:
            return q_tensor

    built = model("Qwen2", num_hidden_layers=2)
    cache, ids = Cache(layers=[Exact(residual_length=32) for _ in range(2)]), token_ids()
    with torch.no_grad():
        for part in (ids[:, :6], *([ids[:, :1]] * removed)):
            built(part, past_key_values=cache, use_cache=True)
        cache.crop(-removed)
        actual = built(ids[:, 6:7], past_key_values=cache, use_cache=True).last_hidden_state
        expected = built(ids[:, :7]).last_hidden_state[:, 6:]
    assert (float((actual - expected).abs().max()) > SEEN) is seen


@pytest.mark.parametrize("version", ["Kosmos2", "Kosmos2_5"])
@pytest.mark.parametrize(("pads", "seen"), [(3, True), (0, False)])
def test_kosmos_generates_other_tokens_after_left_padding_with_a_cache(version: str, pads: int, seen: bool) -> None:
    text = {"vocab_size": 50, "embed_dim": 24, "layers": 3, "ffn_dim": 48, "attention_heads": 3}
    vision = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    config = getattr(transformers, f"{version}Config")(text_config=text, vision_config=vision)
    torch.manual_seed(5)
    built = getattr(transformers, f"{version}ForConditionalGeneration")(
        config
    ).text_model.eval()  # its mask overflows in float64
    ids = torch.tensor([[config.text_config.pad_token_id] * pads + [5, 6, 7, 8, 9]])
    more = {"attention_mask": (torch.arange(pads + 5) >= pads).long().unsqueeze(0), "max_new_tokens": 3}
    more |= {"do_sample": False, "output_logits": True, "return_dict_in_generate": True, "eos_token_id": None}
    expected, actual = (torch.stack(built.generate(ids, use_cache=c, **more).logits) for c in (False, True))
    change = (actual - expected).abs().amax((1, 2))
    assert float(change[0]) < 1e-4  # the prefill
    assert (float(change[1]) > 1e-2) is seen
    assert seen or float(change[1]) < 1e-4


def roberta(layers: int) -> Any:
    """RoBERTa as a decoder in float64."""
    sizes = {**SIZES, "pad_token_id": 3, "is_decoder": True, "num_hidden_layers": layers}
    sizes.pop("num_key_value_heads")
    torch.manual_seed(5)
    built = transformers.RobertaForCausalLM(transformers.RobertaConfig(**sizes)).eval()
    for parameter in built.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return built.double()


@pytest.mark.parametrize(("first", "seen"), [(None, True), (4, False)])
def test_generate_counts_the_positions_of_roberta_from_0(first: int | None, seen: bool) -> None:
    built, ids = roberta(3), token_ids().clamp(min=4)
    more = {} if first is None else {"position_ids": torch.arange(first, first + TOKENS).expand(ROWS, TOKENS)}
    made = built.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, do_sample=False, eos_token_id=None,
        output_logits=True, return_dict_in_generate=True, **more,
    )  # fmt: skip
    with torch.no_grad():
        expected = built(made.sequences[:, :-1].clamp(min=4), use_cache=False).logits[:, TOKENS - 1]
    assert (float((made.logits[0] - expected).abs().max()) > SEEN) is seen


@pytest.mark.parametrize(("pads", "seen"), [(2, True), (0, False)])
def test_the_cache_of_roberta_counts_left_padding(pads: int, seen: bool) -> None:
    built, ids = roberta(1), token_ids().clamp(min=4)
    ids[0, :pads] = 3
    mask = ids.ne(3).long()
    with torch.no_grad():
        expected = built(ids, attention_mask=mask, use_cache=False).logits[:, 7:]
        past = built(ids[:, :7], attention_mask=mask[:, :7], use_cache=True).past_key_values
        actual = built(ids[:, 7:], attention_mask=mask, past_key_values=past, use_cache=True).logits
    change = (actual - expected).abs().amax((1, 2))
    assert (float(change[0]) > SEEN) is seen
    assert float(change[1]) < SEEN  # the row without padding


@pytest.mark.parametrize(("longest", "seen"), [(8, True), (64, False)])
def test_dynamic_frequencies_differ_from_those_of_the_cache(longest: int, seen: bool) -> None:
    rope = {"rope_theta": 1e4, "rope_type": "dynamic", "factor": 4.0}
    built = model("Qwen2", num_hidden_layers=2, rope_parameters=rope, max_position_embeddings=longest)
    assert (difference(built, decoded(built, [5, 4, 1])) > SEEN) is seen


@pytest.mark.parametrize(("longest", "seen"), [(9, True), (64, False)])
def test_dynamic_frequencies_depend_on_the_longest_row_of_a_batch(longest: int, seen: bool) -> None:
    rope = {"rope_theta": 1e4, "rope_type": "dynamic", "factor": 4.0}
    built = model("Llama", num_hidden_layers=2, rope_parameters=rope, max_position_embeddings=longest)
    assert (difference_with_a_longer_row(built) > SEEN) is seen


LONG_ROPE = {
    "rope_theta": 1e4, "rope_type": "longrope", "factor": 4.0, "short_factor": [1.0] * 4,
    "long_factor": [1.0, 2.0, 3.0, 4.0],
}  # fmt: skip


@pytest.mark.parametrize("name", ["Mistral", "Qwen3"])
@pytest.mark.parametrize(("original", "seen"), [(8, True), (10, False), (4, False)])
def test_longrope_factors_differ_from_those_of_the_cache(name: str, original: int, seen: bool) -> None:
    rope = {**LONG_ROPE, "original_max_position_embeddings": original}
    built = model(name, num_hidden_layers=2, rope_parameters=rope, head_dim=8)
    assert (difference(built, decoded(built, [5, 4, 1])) > SEEN) is seen


@pytest.mark.parametrize(("original", "seen"), [(9, True), (10, False), (8, False)])
def test_longrope_factors_depend_on_the_longest_row_of_a_batch(original: int, seen: bool) -> None:
    rope = {**LONG_ROPE, "original_max_position_embeddings": original}
    built = model("Llama", num_hidden_layers=2, rope_parameters=rope)
    assert (difference_with_a_longer_row(built) > SEEN) is seen


@pytest.mark.parametrize("name", ["GPTJ", "CodeGen"])
@pytest.mark.parametrize(("dtype", "seen"), [(torch.bfloat16, True), (torch.float32, False)])
def test_a_loaded_model_has_other_positions_than_one_built_in_bfloat16(
    name: str, dtype: torch.dtype, seen: bool, tmp_path: Path
) -> None:
    torch.manual_seed(5)
    sizes = {"vocab_size": 50, "n_embd": 32, "n_head": 4, "n_layer": 1, "rotary_dim": 8, "n_positions": 128}
    config = getattr(transformers, f"{name}Config")(**sizes, bos_token_id=0, eos_token_id=0)
    built = transformers.AutoModel.from_config(config, dtype=dtype).eval()
    built.save_pretrained(tmp_path)
    loaded = transformers.AutoModel.from_pretrained(tmp_path, dtype=dtype).eval()
    assert all(map(torch.equal, built.parameters(), loaded.parameters()))
    for one in (built, loaded):  # in float64: only the tables differ
        one.double()
        for parameter in one.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(6))
    ids = token_ids().repeat(1, 12)
    with torch.no_grad():
        outputs = [one(ids).last_hidden_state for one in (built, loaded)]
    assert (float((outputs[0] - outputs[1]).abs().max()) > SEEN) is seen


@pytest.mark.parametrize("relative", [True, False])
def test_deberta_reads_position_ids_only_if_they_are_added_to_its_input(relative: bool) -> None:
    changes = []
    for biased in (True, False):
        built = model("DebertaV2", relative_attention=relative, position_biased_input=biased, num_hidden_layers=2)
        ids = token_ids()
        shuffled = torch.randperm(TOKENS, generator=torch.Generator().manual_seed(7)).expand(ROWS, TOKENS)
        with torch.no_grad():
            usual, other = (built(input_ids=ids, position_ids=p).last_hidden_state for p in (None, shuffled))
        changes.append(float((usual - other).abs().max()))
    assert changes[0] > SEEN
    assert changes[1] == 0


@pytest.mark.parametrize(("name", "kept"), [("Youtu", False), ("Llama", True), ("Bert", True)])
def test_only_youtu_loads_the_pad_row_of_an_embedding_as_zero(name: str, kept: bool, tmp_path: Path) -> None:
    built = model(name, num_hidden_layers=2, pad_token_id=3, bos_token_id=1, eos_token_id=2)
    built.save_pretrained(tmp_path)
    loaded = type(built).from_pretrained(tmp_path, dtype=torch.float64)
    before, after = built.get_input_embeddings().weight, loaded.get_input_embeddings().weight
    assert bool((before[3] != 0).all())
    assert torch.equal(before[3], after[3]) == kept
    others = torch.arange(50) != 3
    assert torch.equal(before[others], after[others])
