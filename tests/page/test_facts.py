from dataclasses import replace

import pytest

from tests.page.samples import contributor_facts, explained_node


@pytest.mark.parametrize(("shares", "rest"), [((), 1.0), ((0.5, 0.25), 0.25), ((0.75, 0.5), 0.0)])
def test_other_nodes_supply_the_rest(shares, rest):
    contributors = tuple(contributor_facts("8", share=share) for share in shares)
    assert replace(explained_node(), contributors=contributors).rest_share == rest
