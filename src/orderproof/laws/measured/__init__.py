"""The laws that are measured by calling the model: one file per law."""

from orderproof.laws.measured.cached_calls import CachedCalls as CachedCalls
from orderproof.laws.measured.measured_law import Comparison as Comparison
from orderproof.laws.measured.measured_law import MeasuredLaw as MeasuredLaw
from orderproof.laws.measured.measured_law import NotedOutputs as NotedOutputs
from orderproof.laws.measured.measured_law import OutputPair as OutputPair
