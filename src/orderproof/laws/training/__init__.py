"""Laws of training steps: what the loss sees and how it weighs it; found by listing this folder."""

from orderproof.laws.training.collation import Collation as Collation
from orderproof.laws.training.training_batch import TrainingBatch as TrainingBatch
from orderproof.laws.training.training_law import Blame as Blame
from orderproof.laws.training.training_law import TermComparison as TermComparison
from orderproof.laws.training.training_law import TokenOfBatch as TokenOfBatch
from orderproof.laws.training.training_law import TrainingLaw as TrainingLaw
from orderproof.laws.training.training_step import TrainingStep as TrainingStep
