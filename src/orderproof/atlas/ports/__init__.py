"""The atlas of ports: every architecture that transformers and an engine both know."""
