"""Attention over a sequence that is spread over ranks: two ways, one argument."""

from orderproof.blocks.spread.attending import Spread as Spread
from orderproof.blocks.spread.gather import Gather as Gather
from orderproof.blocks.spread.places import Split as Split
from orderproof.blocks.spread.places import own_places as own_places
from orderproof.blocks.spread.ranks import Ranks as Ranks
from orderproof.blocks.spread.ulysses import Ulysses as Ulysses
