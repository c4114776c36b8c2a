"""The walks over an open graph: operators with the facts about their operands, loops, layers and their induction."""
