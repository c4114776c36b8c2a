"""Caches of plain modules: found by calls, left out of the audited graph, and given in calls of measured laws."""
