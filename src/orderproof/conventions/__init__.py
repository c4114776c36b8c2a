"""The meaning of a mask, a window or a position to attention and rotary functions, measured by exact questions."""

from orderproof.conventions.measure import measure as measure
from orderproof.conventions.named import find_functions as find_functions
from orderproof.conventions.named import function_names as function_names
from orderproof.conventions.named import libraries_elsewhere as libraries_elsewhere
from orderproof.conventions.named import questions_of as questions_of
from orderproof.conventions.own_function import own_function as own_function
