"""The roles of a module's inputs: tokens, masks, position ids, documents, caches and what accompanies the tokens."""
