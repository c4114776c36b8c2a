"""Encodings from the configurations of other libraries: exactly what they say, or an error."""

from orderproof.encodings.configs.hugging_face import from_hf_config as from_hf_config
