"""The parts of `hostile_trials.py`: what is tried, how it is run, and how it is judged."""
