"""The counts of `bank_truth.py`, on tables small enough to count by hand."""

import csv
import sys

import pytest

from tests.examples import example

TRUTH = {"1": "private", "2": "fraud", "3": "ring", "4": "ring", "5": "merchant"}


@pytest.fixture
def bank(tmp_path):
    with (tmp_path / "truth.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("account_no", "kind"), *TRUTH.items()])
    rows = [("account_no", "verdict"), ("1", "private"), ("2", ""), ("3", ""), ("5", "")]
    with (tmp_path / "accounts_october.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return tmp_path


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["bank_truth.py", *map(str, arguments)])
    example("bank_truth").main()


def test_review_counts_the_unlabelled_kind_and_wrong_answers(bank, monkeypatch, capsys):
    listed = bank / "review.csv"
    listed.write_text("id,predicted_class\n1,private\n2,private\n3,fraud\n")
    run(monkeypatch, "review", "--bank", bank, "--list", listed)
    text = capsys.readouterr().out
    assert "of 3 listed accounts, 1 are of the unlabelled kind and 1 others are wrong" in text


def test_listed_accounts_get_their_verdict_and_others_keep_theirs(bank, monkeypatch):
    listed, out = bank / "label_next.csv", bank / "accounts.csv"
    listed.write_text("id\n3\n")
    run(monkeypatch, "label", "--bank", bank, "--list", listed, "--out", out)
    assert out.read_text() == "account_no,verdict\n1,private\n2,\n3,ring\n5,\n"


def test_random_accounts_have_had_no_verdict(bank, monkeypatch):
    out = bank / "accounts.csv"
    run(monkeypatch, "label", "--bank", bank, "--random", "3", "--out", out)
    assert out.read_text() == "account_no,verdict\n1,private\n2,fraud\n3,ring\n5,merchant\n"


def test_answers_are_counted_with_and_without_abstention(bank, monkeypatch, capsys):
    predictions = bank / "october.csv"
    lines = ["1,private,false", "2,private,true", "3,fraud,false", "5,merchant,false"]
    predictions.write_text("\n".join(["node_name,predicted_class_name,abstain", *lines]))
    run(monkeypatch, "answers", "--bank", bank, "--predictions", predictions)
    assert capsys.readouterr().out.splitlines() == [
        "all accounts: 2 of 4 are right (50.0%)",
        "accounts of kinds other than ring: 2 of 3 are right (66.7%)",
        "answered accounts: 2 of 3 are right (66.7%)",
        "answered accounts of kinds other than ring: 2 of 2 are right (100.0%)",
    ]
