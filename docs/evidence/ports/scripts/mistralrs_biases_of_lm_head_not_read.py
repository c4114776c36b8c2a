"""phi, mistralrs 0.9.5: biases of lm_head: in the checkpoint in transformers, not read here."""

import json
from pathlib import Path

import torch
from mistralrs import ChatCompletionRequest, ModelDType, Runner, Which
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 70, "hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 2, "pad_token_id": 0}
values |= {"intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
older = {"rope_theta": 10000.0, "rope_scaling": None, "partial_rotary_factor": 0.5, "rotary_pct": 0.5, "rope_pct": 0.5}
older |= {"rotary_emb_base": 10000.0, "head_dim": 16}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("phi", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 12))
model.save_pretrained("checkpoint")
Path("checkpoint/config.json").write_text(json.dumps({**json.loads(model.config.to_json_string()), **older}))
vocabulary = {f"t{k}": k for k in range(model.config.vocab_size)}
words = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "t0"}
decoder = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}
parts = {"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": decoder, "model": words}
Path("checkpoint/tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], **parts}))
Path("template.json").write_text('{"chat_template": "{{ messages[0].content }}"}')
which = Which.Plain(model_id="checkpoint", dtype=ModelDType.F32)
port = Runner(which=which, chat_template="template.json", prefix_cache_n=0)
prompt = [{"role": "user", "content": " ".join(f"t{k}" for k in tokens[0].tolist())}]
options = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1, "temperature": 0.0}
request = ChatCompletionRequest(messages=prompt, model="default", **options)
answer = port.send_chat_completion_request(request).choices[0].logprobs.content[0].top_logprobs
expected = model(tokens).logits[0, -1].log_softmax(-1).tolist()
gaps = [abs(expected[int(each.token)] - each.logprob) for each in answer]
print(gaps)  # of log-probabilities after the prompt
