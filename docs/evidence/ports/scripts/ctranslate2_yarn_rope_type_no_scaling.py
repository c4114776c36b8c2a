"""falcon, ctranslate2 4.8.5: rope_parameters.rope_type: yarn in transformers, no scaling here."""

import ctranslate2
import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
rope = {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
values = {"ffn_hidden_size": 128, "hidden_size": 64, "vocab_size": 99, "num_attention_heads": 4, "num_hidden_layers": 2}
values |= {"max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "num_kv_heads": 2, "pad_token_id": 0}
values |= {"rope_parameters": rope}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("falcon", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 30))
model.save_pretrained("checkpoint")
ids = Tokenizer(models.WordLevel({str(k): k for k in range(model.config.vocab_size)}, unk_token="0"))
PreTrainedTokenizerFast(tokenizer_object=ids, bos_token="1", eos_token="2", unk_token="0").save_pretrained("checkpoint")
ctranslate2.converters.TransformersConverter("checkpoint").convert("port", force=True)
port = ctranslate2.Generator("port", compute_type="float32")
actual = np.array(port.forward_batch([[str(k) for k in tokens[0].tolist()]]))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
