"""Run the experiments over graphs, models and seeds: `python launch/evaluate.py ...`."""

from gpn_scale.cli.evaluate import start

if __name__ == "__main__":
    start()
