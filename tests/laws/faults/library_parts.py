"""Parts of installed libraries, called as a small model, in which a public report says that there was a defect."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.adapter import AttentionPattern, ModelAdapter, ModelOutput

WIDTH, WORDS = 32, 30


def seeded(make: Any) -> Any:
    """What is made, the same every time, with every parameter moved off its initial value."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        made = make()
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return made.eval()


class Vectors(ModelAdapter):
    """A part that takes vectors [row, token, feature]."""

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn((rows, tokens, WIDTH), generator=torch.Generator().manual_seed(seed))

    def attention_pattern(self, tokens: int) -> AttentionPattern:
        everything = torch.ones(tokens, tokens, dtype=torch.bool)
        return AttentionPattern(everything, everything)


class CrossAttention(Vectors):
    """The attention of Mllama to an image: every text token sees every patch. What is replaced is patches."""

    def __init__(self) -> None:
        from transformers.models.mllama import modeling_mllama as library
        from transformers.models.mllama.configuration_mllama import MllamaTextConfig

        config = MllamaTextConfig(
            hidden_size=WIDTH, num_attention_heads=2, num_key_value_heads=2, attn_implementation="sdpa"
        )
        self.module = seeded(lambda: library.MllamaTextCrossAttention(config, layer_idx=0))

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        text = self.sample_tokens(1, tokens.shape[1], 7).to(tokens.dtype).expand_as(tokens)
        return ModelOutput(self.module(text, cross_attention_states=tokens, attention_mask=None)[0])


class DiffusionAttention(Vectors):
    """The attention of the speech decoder of Qwen2.5-Omni, with its rotation."""

    supported_inputs = frozenset({"positions"})

    def __init__(self) -> None:
        from transformers.models.qwen2_5_omni import configuration_qwen2_5_omni as configuration
        from transformers.models.qwen2_5_omni import modeling_qwen2_5_omni as library

        config = configuration.Qwen2_5OmniDiTConfig(
            hidden_size=WIDTH, num_attention_heads=2, head_dim=WIDTH // 2, attn_implementation="sdpa"
        )
        self.module = seeded(lambda: library.DiTAttention(config))
        self.module.turn = library.Qwen2_5OmniDiTRotaryEmbedding(config=config)

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return ModelOutput(self.module(tokens, position_embeddings=self.module.turn(tokens, positions)))


class TorchEncoder(Vectors):
    """`torch.nn.TransformerEncoder`: its fast path for evaluation, and the path of training."""

    supported_inputs = frozenset({"mask"})
    has_positions = False

    def __init__(self) -> None:
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 64, dropout=0.0, batch_first=True)
        self.module = seeded(lambda: nn.TransformerEncoder(layer, 2))

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        return ModelOutput(self.module(tokens, src_key_padding_mask=None if mask is None else ~mask))

    def attention_backends(self) -> Iterator[tuple[str, Self]]:
        yield "the path of training", self.with_module(copy.deepcopy(self.module).train())


class RotaryEmbeddingTorch(Vectors):
    """Causal attention with the rotation of rotary-embedding-torch, on from a cache by its `offset`."""

    supported_inputs = frozenset({"cache"})
    causal = True

    def __init__(self) -> None:
        from rotary_embedding_torch import RotaryEmbedding

        self.module = seeded(lambda: nn.Linear(WIDTH, 3 * WIDTH))
        self.module.turn = RotaryEmbedding(dim=WIDTH)

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        q, k, v = self.module(tokens).chunk(3, dim=-1)
        offset = 0 if past is None else past[0].shape[1]
        q, k = (self.module.turn.rotate_queries_or_keys(x, offset=offset) for x in (q, k))
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        count, keys = tokens.shape[1], k.shape[1]
        seen = torch.ones(count, keys, dtype=torch.bool).tril(keys - count)
        return ModelOutput(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen), (k, v))

    def attention_pattern(self, tokens: int) -> AttentionPattern | None:
        return ModelAdapter.attention_pattern(self, tokens)


class XDecoder(ModelAdapter):
    """A decoder of x-transformers, on from its cache."""

    supported_inputs = frozenset({"cache"})
    causal = True

    def __init__(self, **options: Any) -> None:
        from loguru import logger

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it scripts a function when it is imported
            from x_transformers import Decoder, TransformerWrapper

        logger.disable("x_transformers")
        self.module = seeded(
            lambda: TransformerWrapper(
                num_tokens=WORDS, max_seq_len=64, max_mem_len=64, use_abs_pos_emb=False,
                attn_layers=Decoder(dim=WIDTH, depth=2, heads=2, attn_dim_head=16, **options),
            )
        )  # fmt: skip

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randint(0, WORDS, (rows, tokens), generator=torch.Generator().manual_seed(seed))

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        if not keep:
            return ModelOutput(self.module(tokens))
        sequence = tokens if past is None else torch.cat([past[0], tokens], dim=1)
        cache = None if past is None else past[1]
        output, cache = self.module(sequence, cache=cache, return_intermediates=True)
        return ModelOutput(output[:, -tokens.shape[1] :], (sequence, cache))


class XMemories(XDecoder):
    """The same, on from its memories, as Transformer-XL does."""

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        if not keep:
            return ModelOutput(self.module(tokens))
        output, memories = self.module(tokens, mems=past, return_mems=True)
        return ModelOutput(output, memories)


class LlamaForBothSides(ModelAdapter):
    """A Llama whose configuration says that it is not causal."""

    causal = False

    def __init__(self, attention: str) -> None:
        from transformers import LlamaConfig, LlamaModel

        config = LlamaConfig(
            vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
            attn_implementation=attention,
        )  # fmt: skip
        config.is_causal = False
        self.module = seeded(lambda: LlamaModel(config))

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randint(0, WORDS, (rows, tokens), generator=torch.Generator().manual_seed(seed))

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        mask = torch.ones_like(tokens)
        return ModelOutput(self.module(input_ids=tokens, attention_mask=mask, use_cache=False).last_hidden_state)

    def attention_pattern(self, tokens: int) -> AttentionPattern:
        everything = torch.ones(tokens, tokens, dtype=torch.bool)
        return AttentionPattern(everything, everything)


def llama_that_is_cast() -> ModelAdapter:
    """A Llama that is cast to bfloat16 by `.to`, and not loaded in it."""
    from orderproof.models import load

    driver = load("arch:llama", tiny=True).build_adapter()

    class Cast(type(driver)):  # type: ignore[misc]
        def loaded_in(self, dtype: torch.dtype) -> Self:
            return self.with_module(copy.deepcopy(self.module).to(dtype))

    driver.__class__ = Cast
    return driver  # type: ignore[no-any-return]


def bamba_with_positions() -> ModelAdapter:
    """A Bamba that gets position ids in every call: its own restart on a cache."""
    from orderproof.models import load

    driver = load("arch:bamba?attn_layer_indices=[1]", tiny=True).build_adapter()

    class Placed(type(driver)):  # type: ignore[misc]
        def call(
            self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **kwargs: Any
        ) -> ModelOutput:
            if positions is None:
                before = 0 if past is None else past.get_seq_length(1)
                positions = (before + torch.arange(tokens.shape[1])).expand(tokens.shape[:2])
            return super().call(tokens, positions=positions, past=past, **kwargs)  # type: ignore[no-any-return]

    driver.__class__ = Placed
    return driver  # type: ignore[no-any-return]
