"""Write the page of a run again: `python launch/report.py --run RUN`."""

from gpn_scale.cli.report import start

if __name__ == "__main__":
    start()
