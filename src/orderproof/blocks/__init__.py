"""A transformer to read: every part in a file of its own, its formula above it."""

from orderproof.blocks.add_norm import AddNorm as AddNorm
from orderproof.blocks.attention import SelfAttention as SelfAttention
from orderproof.blocks.cache import KeyValueCache as KeyValueCache
from orderproof.blocks.feed_forward import FeedForward as FeedForward
from orderproof.blocks.fingerprint import fingerprint_block as fingerprint_block
from orderproof.blocks.fingerprint import row_by_row as row_by_row
from orderproof.blocks.layer import Layer as Layer
from orderproof.blocks.norm import LayerNorm as LayerNorm
from orderproof.blocks.norm import RMSNorm as RMSNorm
from orderproof.blocks.stack import Decoder as Decoder
from orderproof.blocks.stack import Encoder as Encoder
from orderproof.blocks.stack import Stack as Stack
from orderproof.blocks.transformer import Transformer as Transformer
