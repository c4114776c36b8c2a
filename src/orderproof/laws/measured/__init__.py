"""Laws that are arithmetic or need several calls: one file each."""

from orderproof.laws.measured.bench import Bench as Bench
from orderproof.laws.measured.law import MeasuredLaw as MeasuredLaw
from orderproof.laws.measured.law import Noted as Noted
from orderproof.laws.measured.law import Sides as Sides
from orderproof.laws.measured.law import Trial as Trial
from orderproof.laws.measured.registry import find as find
from orderproof.laws.measured.registry import measured_laws as measured_laws
