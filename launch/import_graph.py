"""Import a graph from two tables: `python launch/import_graph.py --nodes FILE --edges FILE ...`."""

from gpn_scale.cli.import_graph import start

if __name__ == "__main__":
    start()
