"""vllm and transformers compute other logits from the same checkpoint and tokens.

rope_parameters.llama_4_scaling_beta: 0.1 in the model, 0.0 in the port.
"""

import os
from tempfile import TemporaryDirectory

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from vllm import LLM, SamplingParams

CONFIGS = {
    "ministral3": {
        "head_dim": 32,
        "hidden_size": 128,
        "intermediate_size": 128,
        "max_position_embeddings": 70,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "factor": 16.0,
            "llama_4_scaling_beta": 0.1,
            "max_position_embeddings": 262144,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 16,
            "rope_theta": 1000000.0,
            "rope_type": "yarn",
            "type": "yarn",
        },
        "sliding_window": 6,
        "vocab_size": 99,
    },
}


os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 30))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].log_softmax(-1).numpy()
        model.save_pretrained(folder)
        options = {"dtype": "float32", "skip_tokenizer_init": True, "enforce_eager": True, "block_size": 32}
        port = LLM(folder, max_logprobs=config.vocab_size, kv_cache_memory_bytes=1 << 26, **options)
        params = SamplingParams(max_tokens=1, prompt_logprobs=config.vocab_size, detokenize=False)
        prompt = [{"prompt_token_ids": [*tokens[0].tolist(), 0]}]  # the scores of a token are at the next one
        answer = port.generate(prompt, params)[0].prompt_logprobs[1:]
        words = range(config.vocab_size)
        actual = np.array([[each[word].logprob for word in words] for each in answer])
        del port, answer  # before another engine is made: the end of one ends the groups of its process
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
