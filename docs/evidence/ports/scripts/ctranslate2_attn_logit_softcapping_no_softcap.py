"""gemma2, ctranslate2 4.8.5: attn_logit_softcapping: 50 in transformers, no softcap here."""

import ctranslate2
import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
values = {"layer_types": ["sliding_attention", "full_attention"], "intermediate_size": 128, "query_pre_attn_scalar": 16}
values |= {"vocab_size": 99, "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
values |= {"max_position_embeddings": 128, "hidden_size": 64, "sliding_window": 6, "bos_token_id": 1, "eos_token_id": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma2", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
model.save_pretrained("checkpoint")
ids = Tokenizer(models.WordLevel({str(k): k for k in range(model.config.vocab_size)}, unk_token="0"))
PreTrainedTokenizerFast(tokenizer_object=ids, bos_token="1", eos_token="2", unk_token="0").save_pretrained("checkpoint")
ctranslate2.converters.TransformersConverter("checkpoint").convert("port", force=True)
port = ctranslate2.Generator("port", compute_type="float32")
actual = np.array(port.forward_batch([[str(k) for k in tokens[0].tolist()]]))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
