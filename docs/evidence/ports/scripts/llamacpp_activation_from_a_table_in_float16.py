"""llamacpp and transformers compute other logits from the same checkpoint and tokens.

activation: in float32 in the model, from a table in float16 in the port.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory

import numpy as np
import torch
from llama_cpp import Llama
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CONFIGS = {
    "bloom": {
        "n_head": 4,
        "pad_token_id": 0,
        "vocab_size": 99,
    },
    "gemma": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "vocab_size": 99,
    },
    "gemma2": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "layer_types": ["sliding_attention", "full_attention"],
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "query_pre_attn_scalar": 16,
        "sliding_window": 6,
        "vocab_size": 99,
    },
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
}


CONVERTER = sys.argv[1]  # convert_hf_to_gguf.py of llama.cpp
WITHOUT_VOCABULARY = """
import pathlib, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
import convert_hf_to_gguf as converter
choose = converter.get_model_class
def set_vocab(model):
    model._set_vocab_none()
    model.gguf_writer.add_vocab_size(model.hparams["vocab_size"])
def without_vocabulary(*arguments, **options):
    chosen = choose(*arguments, **options)
    chosen.set_vocab = set_vocab
    return chosen
converter.get_model_class = without_vocabulary
converter.main()
"""

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 142))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(config.vocab_size)}, unk_token="t0"))
        special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"}
        PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
        command = [sys.executable, "-c", WITHOUT_VOCABULARY, CONVERTER, folder, "--outtype", "f32"]
        subprocess.run([*command, "--outfile", f"{folder}/port.gguf"], check=True, capture_output=True)
        lengths = {"n_ctx": 8192, "n_batch": 8192, "n_ubatch": 8192}
        options = {"logits_all": True, "type_k": 0, "type_v": 0, "verbose": False, **lengths}
        port = Llama(f"{folder}/port.gguf", **options)
        port.eval(tokens[0].tolist())
        actual = np.array(port.scores[: tokens.shape[1]])
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
