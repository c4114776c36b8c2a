"""Lists of the laws, encodings, rules, questions and claims, read from their source files without importing them.

Importing torch takes more than a second. `orderproof list`, and the check of a name on the command line, must not wait
for it. Each list is that of the registry of its kind, which the tests compare.
"""
