"""mistral, ctranslate2 4.8.5: sliding_window: in a prompt, from the start of the chunk of 6 before."""

# In transformers: 6
import ctranslate2
import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 128, "intermediate_size": 128, "hidden_size": 64, "vocab_size": 99}
values |= {"head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
values |= {"sliding_window": 6, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("mistral", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 20))
model.save_pretrained("checkpoint")
words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(model.config.vocab_size)}, unk_token="t0"))
PreTrainedTokenizerFast(tokenizer_object=words, pad_token="t0", unk_token="t0").save_pretrained("checkpoint")
ctranslate2.converters.TransformersConverter("checkpoint").convert("port", force=True)
port = ctranslate2.Generator("port", compute_type="float32")
prompt = [f"t{k}" for k in tokens[0].tolist()]
options = {"sampling_topk": 1, "include_prompt_in_result": False, "return_end_token": True}
actual = port.generate_batch([prompt], max_length=12, **options)[0].sequences_ids[0]
row = tokens
for _ in range(12):
    row = torch.cat([row, model(row).logits[:, -1:].argmax(-1)], 1)
print("transformers:", row[0, tokens.shape[1] :].tolist(), "port:", actual)
