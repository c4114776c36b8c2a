"""Keys in the settings of a run: the question, its name, and the seed."""

NAME_KEY, SEED_KEY, QUESTION_KEY = "name", "seed", "question"
