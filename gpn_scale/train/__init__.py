"""Training: tasks that supply losses, the training loop, checkpoints, and the files of a run."""
