"""Options of an update."""

import pytest

from precompute.update import TOLERANCE
from precompute.update_arguments import update_parser


def test_defaults():
    options = update_parser().parse_args(["store", "--dataset", "CoraML"])
    assert (str(options.store), options.tolerance, options.roots) == ("store", TOLERANCE, None)
    assert (options.plan_only, options.threads) == (False, None)


@pytest.mark.parametrize("arguments", [[], ["store"], ["store", "--dataset", "X", "--k", "3"]])
def test_a_store_and_a_graph_are_required_and_rows_keep_their_settings(arguments):
    with pytest.raises(SystemExit):
        update_parser().parse_args(arguments)
