"""One room for each family of operators: the lemma, the rule where two runs agree, the rule of moved axes."""
