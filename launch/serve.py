"""Answer questions about a run over HTTP: `python launch/serve.py --run RUN ...`."""

from gpn_scale.cli.serve import start

if __name__ == "__main__":
    start()
