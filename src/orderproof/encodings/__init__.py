"""Positional encodings: how a model gets the order of its tokens."""

from typing import TYPE_CHECKING

from orderproof.encodings import layer_patterns as layer_patterns
from orderproof.encodings import rotary_layout as rotary_layout
from orderproof.encodings import schedules as schedules
from orderproof.encodings._attention import attention as attention
from orderproof.encodings._content_bias import ContentBias as ContentBias
from orderproof.encodings._cos_sin_table import cos_sin_table as cos_sin_table
from orderproof.encodings._encoding import AttentionContent as AttentionContent
from orderproof.encodings._encoding import Claims as Claims
from orderproof.encodings._encoding import ModelSizes as ModelSizes
from orderproof.encodings._encoding import PositionalEncoding as PositionalEncoding
from orderproof.encodings._encoding import ScoreMod as ScoreMod
from orderproof.encodings._frequencies import LengthSchedule as LengthSchedule
from orderproof.encodings._frequencies import PerRowSpectrum as PerRowSpectrum
from orderproof.encodings._frequencies import Schedule as Schedule
from orderproof.encodings._frequencies import Spectrum as Spectrum
from orderproof.encodings._own_file import full_name as full_name
from orderproof.encodings._registry import build as build
from orderproof.encodings._registry import get as get
from orderproof.encodings._registry import names as names
from orderproof.encodings._registry import register as register
from orderproof.encodings._relative_bias import RelativeBias as RelativeBias
from orderproof.encodings.alibi import ALiBi as ALiBi
from orderproof.encodings.attention_arguments import AttentionBackend as AttentionBackend
from orderproof.encodings.axial_rotary import AxialRotary as AxialRotary
from orderproof.encodings.cayley_string import CayleyString as CayleyString
from orderproof.encodings.configs import DropInReport as DropInReport
from orderproof.encodings.configs import drop_in as drop_in
from orderproof.encodings.configs import from_hf_config as from_hf_config
from orderproof.encodings.cope import CoPE as CoPE
from orderproof.encodings.dape import DAPE as DAPE
from orderproof.encodings.deberta import DeBERTa as DeBERTa
from orderproof.encodings.dino_v3 import DinoV3Rope as DinoV3Rope
from orderproof.encodings.fire import FIRE as FIRE
from orderproof.encodings.forget_gate import ForgetGate as ForgetGate
from orderproof.encodings.grape import GRAPE as GRAPE
from orderproof.encodings.kerple import KERPLE as KERPLE
from orderproof.encodings.learned_absolute import LearnedAbsolute as LearnedAbsolute
from orderproof.encodings.liere import LieRE as LieRE
from orderproof.encodings.mrope import MRope as MRope
from orderproof.encodings.none import NoEncoding as NoEncoding
from orderproof.encodings.path_attention import PaTHAttention as PaTHAttention
from orderproof.encodings.pope import PoPE as PoPE
from orderproof.encodings.rope_mixed import RopeMixed as RopeMixed
from orderproof.encodings.rotary import Rotary as Rotary
from orderproof.encodings.sandwich import Sandwich as Sandwich
from orderproof.encodings.shaw import Shaw as Shaw
from orderproof.encodings.sinusoidal import Sinusoidal as Sinusoidal
from orderproof.encodings.sinusoidal_grid import SinusoidalGrid as SinusoidalGrid
from orderproof.encodings.swin import SwinBias as SwinBias
from orderproof.encodings.swin_v2 import SwinV2Bias as SwinV2Bias
from orderproof.encodings.t5 import T5Bias as T5Bias
from orderproof.encodings.transformer_xl import TransformerXL as TransformerXL
from orderproof.encodings.xpos import XPos as XPos

if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[PositionalEncoding]:
        """The class of an encoding that is not listed above: every registered class is an attribute of this package."""
        if name[:1].isupper():
            for registered in names():
                if get(registered).__name__ == name:
                    return get(registered)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
