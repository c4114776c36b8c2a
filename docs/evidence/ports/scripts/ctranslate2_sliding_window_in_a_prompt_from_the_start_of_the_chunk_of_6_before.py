"""mistral, ctranslate2 4.8.5: sliding_window: 6; here in a prompt, from the start of the chunk of 6 before."""

import ctranslate2
import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 64, "num_attention_heads": 4, "sliding_window": 6, "pad_token_id": 0}
values |= {"max_position_embeddings": 128, "vocab_size": 99, "num_key_value_heads": 2, "num_hidden_layers": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("mistral", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (8, 20))
model.save_pretrained("checkpoint")
ids = Tokenizer(models.WordLevel({str(k): k for k in range(model.config.vocab_size)}, unk_token="0"))
PreTrainedTokenizerFast(tokenizer_object=ids, bos_token="1", eos_token="2", unk_token="0").save_pretrained("checkpoint")
ctranslate2.converters.TransformersConverter("checkpoint").convert("port", force=True)
port = ctranslate2.Generator("port", compute_type="float32")
options = {"sampling_topk": 1, "include_prompt_in_result": False, "return_end_token": True}
rows = [[str(k) for k in row] for row in tokens.tolist()]
actual = [e.sequences_ids[0] for e in port.generate_batch(rows, max_length=12, **options)]
model.generation_config.eos_token_id = None
tokens = model.generate(tokens, max_new_tokens=12, do_sample=False)[:, tokens.shape[1] :]
print([row[: len(port)] == port for row, port in zip(tokens.tolist(), actual, strict=True)])  # by prompt
