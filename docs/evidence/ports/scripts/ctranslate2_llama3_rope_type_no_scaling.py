"""llama, ctranslate2 4.8.5: rope_parameters.rope_type: llama3 in transformers, no scaling here."""

import ctranslate2
import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
rope_parameters = {"rope_type": "llama3", "rope_theta": 10000.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0}
rope_parameters |= {"factor": 4.0, "original_max_position_embeddings": 16}
values = {"rope_parameters": rope_parameters, "intermediate_size": 128, "max_position_embeddings": 64, "head_dim": 16}
values |= {"hidden_size": 64, "vocab_size": 99, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
values |= {"num_hidden_layers": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 30))
model.save_pretrained("checkpoint")
words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(model.config.vocab_size)}, unk_token="t0"))
PreTrainedTokenizerFast(tokenizer_object=words, pad_token="t0", unk_token="t0").save_pretrained("checkpoint")
ctranslate2.converters.TransformersConverter("checkpoint").convert("port", force=True)
port = ctranslate2.Generator("port", compute_type="float32")
actual = np.array(port.forward_batch([[f"t{k}" for k in tokens[0].tolist()]]))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
