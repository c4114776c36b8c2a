"""Models under audit: checkpoints, architectures by name, Python objects and the bundled model."""

from orderproof.models.bundled import bundled as bundled
from orderproof.models.load import load as load
from orderproof.models.plain_adapter import from_adapter as from_adapter
from orderproof.models.plain_module import from_module as from_module
from orderproof.models.sample import Sample as Sample
from orderproof.models.subject import Subject as Subject
from orderproof.models.subject import prime_length as prime_length
