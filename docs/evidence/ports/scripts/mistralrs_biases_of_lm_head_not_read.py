"""mistralrs and transformers compute other logits from the same checkpoint and tokens.

biases of lm_head: in the checkpoint in the model, not read in the port.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from mistralrs import ChatCompletionRequest, ModelDType, Runner, Which
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "phi": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 70,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "vocab_size": 99,
    },
}
OLDER_KEYS = {
    "phi": {
        "head_dim": 16,
        "partial_rotary_factor": 0.5,
        "rope_pct": 0.5,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
        "rotary_pct": 0.5,
    },
}  # without which the engine does not load the checkpoint

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 12))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0, -1].log_softmax(-1).numpy()
        model.save_pretrained(folder)
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | OLDER_KEYS.get(name, {})))
        words = {"type": "WordLevel", "vocab": {f"t{k}": k for k in range(config.vocab_size)}, "unk_token": "t0"}
        decoder = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}
        parts = {"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": decoder, "model": words}
        Path(f"{folder}/tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], **parts}))
        template = Path(f"{folder}/template.json")
        template.write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))
        which = Which.Plain(model_id=folder, dtype=ModelDType.F32)
        port = Runner(which=which, chat_template=str(template), prefix_cache_n=0)
        prompt = [{"role": "user", "content": " ".join(f"t{k}" for k in tokens[0].tolist())}]
        options = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1, "temperature": 0.0}
        request = ChatCompletionRequest(messages=prompt, model="default", **options)
        answer = port.send_chat_completion_request(request).choices[0].logprobs.content[0].top_logprobs
        gaps = [abs(expected[int(each.token)] - each.logprob) for each in answer]
    print(f"{name}: log-probabilities after the prompt differ by up to {max(gaps):.2g}")
