"""List what to review and what to label next: `python launch/triage.py --run RUN ...`."""

from gpn_scale.cli.triage import start

if __name__ == "__main__":
    start()
