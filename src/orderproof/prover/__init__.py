"""The prover: capture a graph, walk it with facts, certify, refute. It knows no law, encoding or block."""
