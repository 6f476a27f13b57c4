from tests.page.samples import node_rows


def test_nodes_without_a_label_are_known_by_their_class():
    rows = node_rows(count=8)
    assert rows.is_unlabelled.tolist() == [True, False, False, False] * 2
