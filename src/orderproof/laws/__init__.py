"""The laws of order: one file each."""

from orderproof.laws.law import Axis as Axis
from orderproof.laws.law import Change as Change
from orderproof.laws.law import InfluenceLaw as InfluenceLaw
from orderproof.laws.law import Law as Law
from orderproof.laws.law import PermutationLaw as PermutationLaw
from orderproof.laws.law import TokenDim as TokenDim
from orderproof.laws.registry import get as get
from orderproof.laws.registry import laws as laws
