"""trocr, onnxruntime 1.32.0: positions of padded rows: as without pads; here as transformers counts them."""

import numpy as np
import onnxruntime
import torch
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"is_decoder": True, "decoder_ffn_dim": 128, "vocab_size": 99, "decoder_attention_heads": 4, "bos_token_id": 1}
values |= {"max_position_embeddings": 128, "d_model": 64, "decoder_layers": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("trocr", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 20))
model.save_pretrained("checkpoint")
axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}
ones = torch.ones(2, 5, dtype=torch.long)
given = {"input_ids": ones, "attention_mask": ones, "use_cache": False}
shapes = {"input_ids": axes, "attention_mask": axes, "use_cache": None}
torch.onnx.export(model, (), "port.onnx", kwargs=given, dynamic_shapes=shapes, dynamo=True)
row, mask = (np.pad(each, ((0, 0), (5, 0))) for each in (tokens, np.ones_like(tokens)))
port = onnxruntime.InferenceSession("port.onnx")
actual = port.run(None, {"input_ids": row, "attention_mask": mask})[0][0, 5:]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
