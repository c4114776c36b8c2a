"""Laws of ports: an engine computes what the reference computes; found by listing this folder."""

from orderproof.laws.ports.port_law import PortCall as PortCall
from orderproof.laws.ports.port_law import PortLaw as PortLaw
from orderproof.laws.ports.port_law import PortModel as PortModel
