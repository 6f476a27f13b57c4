"""Train a model: `python launch/train.py ...` or `torchrun ... launch/train.py ...`."""

from gpn_scale.cli.train import start

if __name__ == "__main__":
    start()
