"""Comparison models of GPN behind one base class: `gpn_scale.baselines.baseline`."""
