"""The rules: one lemma a file, each covering a family of operators."""
