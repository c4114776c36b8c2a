"""ctranslate2 and transformers compute other logits from the same checkpoint and tokens.

rope_parameters.rope_type: yarn in the model, no scaling in the port.
"""

from tempfile import TemporaryDirectory

import ctranslate2
import numpy as np
import torch
from ctranslate2.converters import TransformersConverter
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CONFIGS = {
    "falcon": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "ffn_hidden_size": 128,
        "hidden_size": 64,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_kv_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "rope_theta": 10000.0,
            "rope_type": "yarn",
        },
        "vocab_size": 99,
    },
    "gemma": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "rope_parameters": {
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "rope_theta": 10000.0,
            "rope_type": "yarn",
        },
        "vocab_size": 99,
    },
}

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 30))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(config.vocab_size)}, unk_token="t0"))
        special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"}
        PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
        TransformersConverter(folder).convert(f"{folder}/port")
        port = ctranslate2.Generator(f"{folder}/port", compute_type="float32")
        actual = np.array(port.forward_batch([[f"t{k}" for k in tokens[0].tolist()]]))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
