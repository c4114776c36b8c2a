"""Common claims about attention and token order, as executable checks."""

from orderproof.claims.claim import Claim as Claim
from orderproof.claims.claim import ClaimCheck as ClaimCheck
from orderproof.claims.claim import run_claims as run_claims
from orderproof.claims.registry import claims as claims
from orderproof.claims.registry import select_claims as select_claims
