"""The service: predictions, explanations and decisions of a trained run over HTTP."""
