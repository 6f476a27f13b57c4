"""Compare lists and answers with the hidden truth of the invented bank of `bank.py`.

    python examples/bank_truth.py review --bank FOLDER --list review.csv
    python examples/bank_truth.py label --bank FOLDER --list label_next.csv --out accounts.csv
    python examples/bank_truth.py label --bank FOLDER --random 50 --seed 1 --out accounts.csv
    python examples/bank_truth.py answers --bank FOLDER --predictions predictions.csv

`review` counts how many accounts of a list are misclassified or of the unlabelled kind.
`label` plays the analyst who looks at the listed accounts, or at random ones: it writes October's
accounts with their verdicts. `answers` counts how many predictions are right, and, where there is
a column `abstain`, how many of those that are answered.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

RING = "ring"
"""The kind that nobody has labelled."""
Row = Mapping[str, str]


def read_table(path: Path) -> list[Row]:
    """Return the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_truth(bank: Path) -> dict[str, str]:
    """Return the kind of every account."""
    return {row["account_no"]: row["kind"] for row in read_table(bank / "truth.csv")}


def review_text(truth: Mapping[str, str], listed: Sequence[Row]) -> str:
    """Return how many listed accounts are of an unlabelled kind, or wrong."""
    ring = sum(truth[row["id"]] == RING for row in listed)
    wrong = sum(truth[row["id"]] not in (RING, row["predicted_class"]) for row in listed)
    return (
        f"of {len(listed)} listed accounts, {ring} are of the unlabelled kind and {wrong} others "
        f"are wrong: {ring + wrong} in all"
    )


def labelled(rows: Sequence[Row], truth: Mapping[str, str], chosen: set[str]) -> list[Row]:
    """Return the accounts, where those that were chosen have their kind as verdict."""
    return [
        {**row, "verdict": truth[row["account_no"]]} if row["account_no"] in chosen else row
        for row in rows
    ]


def random_accounts(rows: Sequence[Row], count: int, rng_seed: int) -> set[str]:
    """Return accounts without a verdict, drawn at random."""
    open_accounts = [row["account_no"] for row in rows if not row["verdict"]]
    drawn = np.random.default_rng(rng_seed).choice(open_accounts, count, replace=False)
    return {str(account) for account in drawn}


def write_accounts(path: Path, rows: Sequence[Row]) -> None:
    """Write a table of accounts."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def answers_text(truth: Mapping[str, str], predictions: Sequence[Row]) -> str:
    """Return how many predictions are right, of all and of those that are answered."""
    lines = [_right_line("all accounts", truth, predictions)]
    known = [row for row in predictions if truth[row["node_name"]] != RING]
    lines.append(_right_line("accounts of kinds other than ring", truth, known))
    if "abstain" in predictions[0]:
        answered = [row for row in predictions if row["abstain"].lower() == "false"]
        lines.append(_right_line("answered accounts", truth, answered))
        of_known = [row for row in answered if truth[row["node_name"]] != RING]
        lines.append(_right_line("answered accounts of kinds other than ring", truth, of_known))
    return "\n".join(lines)


def _right_line(name: str, truth: Mapping[str, str], rows: Sequence[Row]) -> str:
    right = sum(row["predicted_class_name"] == truth[row["node_name"]] for row in rows)
    share = right / len(rows) if rows else float("nan")
    return f"{name}: {right:,} of {len(rows):,} are right ({share:.1%})"


def main() -> None:
    """Parse the command line and print what the truth says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("review", "label", "answers"))
    parser.add_argument("--bank", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--list", type=Path, metavar="FILE", help="list of gpn-triage")
    parser.add_argument("--random", type=int, metavar="N", help="label N random accounts instead")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="(default: 1)")
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="CSV of gpn-predict")
    parser.add_argument("--out", type=Path, metavar="FILE", help="table to write")
    options = parser.parse_args()
    truth = read_truth(options.bank)
    if options.what == "review":
        print(review_text(truth, read_table(options.list)))
    elif options.what == "answers":
        print(answers_text(truth, read_table(options.predictions)))
    else:
        rows = read_table(options.bank / "accounts_october.csv")
        if options.random is not None:
            chosen = random_accounts(rows, options.random, options.seed)
        else:
            chosen = {row["id"] for row in read_table(options.list)}
        write_accounts(options.out, labelled(rows, truth, chosen))
        print(f"written: {options.out}, with verdicts for {len(chosen)} more accounts")


if __name__ == "__main__":
    main()
