"""What estimators share: input, progress, history, checkpoints of fits, model files."""
