"""The questions, one per file; `orderproof.lab.registry` lists this folder."""
