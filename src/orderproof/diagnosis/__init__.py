"""The prover: record a graph, propagate facts through it, certify, refute. It knows no law, encoding or block."""
