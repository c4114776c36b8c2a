"""arch:prophetnet: context_length (OP304), 254 tokens, with 127 and 128 exchanged."""

import torch
from transformers import ProphetNetConfig, ProphetNetModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "encoder_ffn_dim": 128, "num_encoder_attention_heads": 4}
sizes |= {"decoder_ffn_dim": 128, "num_decoder_layers": 2, "max_position_embeddings": 128, "num_buckets": 6}
sizes |= {"relative_max_distance": 5}
model = ProphetNetModel(ProphetNetConfig(**sizes)).eval()
for parameter in model.parameters():
    parameter.data += 0.1 * torch.randn_like(parameter)
encoder = model.get_encoder()
ids = torch.randint(8, 99, (1, 254), generator=torch.Generator().manual_seed(0))
ids2 = ids.clone()
ids2[[0, 0], [127, 128]] = torch.tensor([57, 41])
with torch.no_grad():
    expected = encoder(input_ids=ids).last_hidden_state[0, 85]
    actual = encoder(input_ids=ids2).last_hidden_state[0, 85]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference <= 0.0001)
