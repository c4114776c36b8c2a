"""ctranslate2 and transformers generate other tokens from the same checkpoint and prompt.

sliding_window: 6 in the model, in a prompt, from the start of the chunk of 6 before in the port.
"""

from tempfile import TemporaryDirectory

import ctranslate2
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CONFIGS = {
    "gemma3_text": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "layer_types": [
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ],
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 6,
        "num_key_value_heads": 2,
        "query_pre_attn_scalar": 16,
        "sliding_window": 6,
        "vocab_size": 99,
    },
    "mistral": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "sliding_window": 6,
        "vocab_size": 99,
    },
}

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 20))
    with torch.no_grad(), TemporaryDirectory() as folder:
        row = tokens
        for _ in range(12):
            row = torch.cat([row, model(row).logits[:, -1:].argmax(-1)], 1)
        expected = row[0, tokens.shape[1] :].tolist()
        model.save_pretrained(folder)
        words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(config.vocab_size)}, unk_token="t0"))
        special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"}
        PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
        TransformersConverter(folder).convert(f"{folder}/port")
        port = ctranslate2.Generator(f"{folder}/port", compute_type="float32")
        prompt = [f"t{k}" for k in tokens[0].tolist()]
        options = {"sampling_topk": 1, "include_prompt_in_result": False, "return_end_token": True}
        actual = port.generate_batch([prompt], max_length=12, **options)[0].sequences_ids[0]
    print(f"{name}: transformers generates {expected}, the port {actual}")
