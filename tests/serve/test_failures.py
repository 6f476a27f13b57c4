"""Failures of requests are sentences of limited length."""

from gpn_scale.serve.failures import RequestFailure, shown, too_many, unknown_ids
from gpn_scale.serve.ids import PositionIds


def test_a_failure_has_status_sentence_and_fields():
    failure = RequestFailure(404, "no such node", nearest=["a"])
    assert (failure.status, failure.sentence, failure.fields) == (
        404,
        "no such node",
        {"nearest": ["a"]},
    )


def test_unknown_ids_are_named():
    one = unknown_ids(["12"], PositionIds(10))
    assert one.sentence == "there is no node '12'; similar ids are '8', '7', '9'"
    many = unknown_ids([f"x{number}" for number in range(2000)], PositionIds(10))
    assert many.sentence.startswith("2,000 ids are not nodes of the graph, the first is 'x0'")
    assert len(many.fields["unknown"]) == 10


def test_long_and_odd_ids_are_shortened_and_escaped():
    assert len(shown("x" * 100_000)) < 100
    assert shown("\u202e\n\0") == "'\\u202e\\n\\x00'"


def test_too_many_says_what_to_do():
    failure = too_many("ids", 20_000, 10_000)
    assert failure.status == 413
    assert failure.sentence == "ids holds 20,000, expected at most 10,000: send several requests"
