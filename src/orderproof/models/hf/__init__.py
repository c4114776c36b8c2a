"""Hugging Face transformers models: how they are described, built, called and recorded."""
