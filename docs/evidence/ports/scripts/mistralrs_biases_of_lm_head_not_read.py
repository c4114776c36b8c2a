"""phi, mistralrs 0.9.5: biases of lm_head: in the checkpoint in transformers, not read here."""

import torch
from mistralrs import ChatCompletionRequest, ModelDType, Runner, Which
from tokenizers import Tokenizer, decoders, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 70, "hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 2, "pad_token_id": 0}
values |= {"intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
older = {"rope_theta": 10000.0, "rope_scaling": None, "partial_rotary_factor": 0.5, "rotary_pct": 0.5, "rope_pct": 0.5}
older |= {"rotary_emb_base": 10000.0, "head_dim": 16}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("phi", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 12))
vars(model.config).update(older)  # as transformers wrote it before version 5
model.save_pretrained("checkpoint")
ids = Tokenizer(models.BPE({chr(300 + k): k for k in range(model.config.vocab_size)}, []))
ids.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
PreTrainedTokenizerFast(tokenizer_object=ids, chat_template="{{ messages[0].content }}").save_pretrained("checkpoint")
port = Runner(Which.Plain("checkpoint", dtype=ModelDType.F32))
request = ChatCompletionRequest("".join(map(chr, tokens[0] + 300)), "default", True, top_logprobs=20, max_tokens=1)
best = port.send_chat_completion_request(request).choices[0].logprobs.content[0].top_logprobs
print([e.logprob - model(tokens).logits[0, -1].log_softmax(-1)[int(e.token)].item() for e in best])
