"""What can be audited: a checkpoint, an architecture by its name, a Python object, the bundled model."""

from orderproof.subjects.bundled import bundled as bundled
from orderproof.subjects.modules import from_module as from_module
from orderproof.subjects.naming import load as load
from orderproof.subjects.plain import from_driver as from_driver
from orderproof.subjects.subject import Sample as Sample
from orderproof.subjects.subject import Subject as Subject
from orderproof.subjects.subject import prime_length as prime_length
