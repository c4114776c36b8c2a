"""Sequence-parallel attention: each rank holds a part of the tokens of every row."""

from orderproof.blocks.sequence_parallel.all_gather_kv import AllGatherKV as AllGatherKV
from orderproof.blocks.sequence_parallel.rank_group import RankGroup as RankGroup
from orderproof.blocks.sequence_parallel.strategy import SequenceParallel as SequenceParallel
from orderproof.blocks.sequence_parallel.token_split import TokenSplit as TokenSplit
from orderproof.blocks.sequence_parallel.token_split import local_token_indices as local_token_indices
from orderproof.blocks.sequence_parallel.ulysses import Ulysses as Ulysses
