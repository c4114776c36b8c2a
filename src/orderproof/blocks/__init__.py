"""A readable reference transformer: each part in its own file, under its formula."""

from orderproof.blocks.add_norm import AddNorm as AddNorm
from orderproof.blocks.attention import SelfAttention as SelfAttention
from orderproof.blocks.attention_inputs import AttentionInputs as AttentionInputs
from orderproof.blocks.feed_forward import FeedForward as FeedForward
from orderproof.blocks.fingerprint import fingerprint_model as fingerprint_model
from orderproof.blocks.fingerprint import raster_positions as raster_positions
from orderproof.blocks.kv_cache import KeyValueCache as KeyValueCache
from orderproof.blocks.layer import TransformerLayer as TransformerLayer
from orderproof.blocks.norm import LayerNorm as LayerNorm
from orderproof.blocks.norm import RMSNorm as RMSNorm
from orderproof.blocks.stack import Decoder as Decoder
from orderproof.blocks.stack import Encoder as Encoder
from orderproof.blocks.stack import TransformerStack as TransformerStack
from orderproof.blocks.transformer import Transformer as Transformer
