"""mistral, onnxruntime-genai 0.18.0: sliding_window: 6 in transformers, no window here."""

import onnxruntime_genai as og
import torch
from onnxruntime_genai.models.builder import create_model, parse_extra_options
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 128, "max_position_embeddings": 70, "vocab_size": 99, "head_dim": 32}
values |= {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "sliding_window": 6}
values |= {"pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("mistral", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 20))
model.save_pretrained("checkpoint")
PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"": 0}, ""))).save_pretrained("checkpoint")
where = (None, "checkpoint", "port", "fp32", "cpu", "port")
create_model(*where, **parse_extra_options(*where, ["hf_token=false"]))
generator = og.Generator(port := og.Model("port"), og.GeneratorParams(port))
generator.append_tokens(tokens[0].int().numpy())
actual = generator.get_output("logits")[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
