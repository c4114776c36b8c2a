"""Scripts without orderproof that show a violation, and the text of an issue about it."""

from orderproof.reproduction.reproduction import Reproduction as Reproduction
from orderproof.reproduction.reproduction import reproduce as reproduce
from orderproof.reproduction.reproduction import with_scripts as with_scripts
