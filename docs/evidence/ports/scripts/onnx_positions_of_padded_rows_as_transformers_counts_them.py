"""onnx and transformers compute other logits from the same checkpoint and tokens.

positions of padded rows: as without pads in the model, as transformers counts them in the port.
"""

from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import torch
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "roformer": {
        "bos_token_id": 1,
        "embedding_size": 32,
        "eos_token_id": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "vocab_size": 99,
    },
    "trocr": {
        "bos_token_id": 1,
        "d_model": 64,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 128,
        "decoder_layers": 2,
        "is_decoder": True,
        "max_position_embeddings": 128,
        "pad_token_id": 0,
        "vocab_size": 99,
    },
}


PADS = 5


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, mask):
        return self.model(tokens, attention_mask=mask, use_cache=False).logits


torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 20))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        axes = {0: torch.export.Dim("row"), 1: torch.export.Dim("token")}
        ones = torch.ones(2, 5, dtype=torch.long)
        options = {"dynamo": True, "verbose": False, "dynamic_shapes": (axes, axes)}
        torch.onnx.export(Logits(model), (ones, ones), f"{folder}/port.onnx", **options)
        port = onnxruntime.InferenceSession(f"{folder}/port.onnx")
        row = np.array([[0] * PADS + tokens[0].tolist()])
        mask = np.array([[0] * PADS + [1] * tokens.shape[1]])
        names = [entry.name for entry in port.get_inputs()]
        actual = port.run(None, dict(zip(names, (row, mask), strict=True)))[0][0, PADS:]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
