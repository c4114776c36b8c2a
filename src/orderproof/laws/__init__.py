"""The laws: one file per law."""

from orderproof.laws.proved.proved_law import EquivarianceLaw as EquivarianceLaw
from orderproof.laws.proved.proved_law import IndependenceLaw as IndependenceLaw
from orderproof.laws.proved.proved_law import InputChange as InputChange
from orderproof.laws.proved.proved_law import ProvedLaw as ProvedLaw
from orderproof.laws.proved.proved_law import TokenAxis as TokenAxis
from orderproof.laws.proved.proved_law import TokenDim as TokenDim
from orderproof.laws.registry import entry_map_law as entry_map_law
from orderproof.laws.registry import find_law as find_law
from orderproof.laws.registry import find_model_law as find_model_law
from orderproof.laws.registry import find_port_law as find_port_law
from orderproof.laws.registry import find_proved_law as find_proved_law
from orderproof.laws.registry import find_training_law as find_training_law
from orderproof.laws.registry import measured_laws as measured_laws
from orderproof.laws.registry import port_laws as port_laws
from orderproof.laws.registry import proved_laws as proved_laws
from orderproof.laws.registry import training_laws as training_laws
