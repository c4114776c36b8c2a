"""SeamlessM4T, both versions: the text encoder counts positions from the token ids instead of the attention mask."""

import torch
from transformers import SeamlessM4TConfig, SeamlessM4TForTextToText, SeamlessM4Tv2Config, SeamlessM4Tv2ForTextToText

sizes = {"encoder_layers": 2, "decoder_layers": 2, "hidden_size": 64, "encoder_attention_heads": 4, "vocab_size": 99}
ids, mask = torch.tensor([[0, 0, 11, 12, 13, 14]]), torch.tensor([[0, 0, 1, 1, 1, 1]])
for chosen, config in (
    (SeamlessM4TForTextToText, SeamlessM4TConfig),
    (SeamlessM4Tv2ForTextToText, SeamlessM4Tv2Config),
):
    torch.manual_seed(0)
    encoder = chosen(config(**sizes, encoder_ffn_dim=128, decoder_attention_heads=4)).eval().get_encoder()
    with torch.no_grad():
        padded = encoder(ids, attention_mask=mask).last_hidden_state[mask == 1]
        other = encoder(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[mask == 1]
    change = (padded - other).abs().amax(-1) / padded.abs().max()
    print(chosen.__name__, "relative change when the pads change:", [round(x, 6) for x in change.tolist()])
