"""The arguments about token order that people make, each as something that can be run."""

from orderproof.claims.claim import Claim as Claim
from orderproof.claims.claim import Ground as Ground
from orderproof.claims.claim import run_claims as run_claims
from orderproof.claims.registry import claims as claims
from orderproof.claims.registry import numbered as numbered
