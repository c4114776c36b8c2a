"""Encodings from the configurations of other libraries: exact, or an error."""

from orderproof.encodings.configs._drop_in import DropInReport as DropInReport
from orderproof.encodings.configs._drop_in import drop_in as drop_in
from orderproof.encodings.configs.hugging_face import from_hf_config as from_hf_config
