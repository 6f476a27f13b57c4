"""The pages that people read: one for a run, and one for a matrix of trainings."""
