"""The atlas: every architecture of transformers, audited tiny, one process each."""
