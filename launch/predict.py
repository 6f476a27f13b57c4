"""Predict nodes with a trained model: `python launch/predict.py --run RUN ...`."""

from gpn_scale.cli.predict import start

if __name__ == "__main__":
    start()
