"""Write raw tables of an invented bank: accounts and payments of two months.

    python examples/bank.py --out FOLDER [--accounts 10000] [--seed 1]

writes

    accounts_october.csv, payments_october.csv     to train on
    accounts_november.csv, payments_november.csv   to score: columns in another order, one class
                                                   renamed, one new country, new accounts
    truth.csv                                      the true kind of every account

Accounts are of the kinds private, merchant, fraud and ring. About 3 % have a label, a verdict by
someone who looked at them, but nobody has ever looked at a ring: accounts that mostly pay each
other. Tables have the faults of real ones: missing values, payments that are listed twice, payments
of an account to itself and payments to accounts of other banks.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("private", "merchant", "fraud", "ring")
KIND_FREQUENCIES = (0.70, 0.20, 0.08, 0.02)
LABELLED = (0.02, 0.03, 0.12, 0.0)
"""Fraction of the accounts of each kind that someone has looked at; about 3 % of all."""
HONEST = (1.0, 0.6, 0.5, 0.6)
"""Fraction of the accounts of each kind that state their real purpose, not a private one."""
MISSING = 0.05
COUNTRIES = ("DE", "FR", "NL", "PL", "ES")
PURPOSES = {
    "private": (
        "salary rent groceries",
        "rent and savings",
        "family allowance",
        "groceries holiday",
    ),
    "merchant": ("shop card sales", "online shop sales", "restaurant sales", "wholesale invoices"),
    "fraud": ("gift card refund", "urgent transfer refund", "crypto exchange", "lottery refund"),
    "ring": ("token swap batch", "batch settlement node", "token settlement", "swap batch relay"),
}
COLUMNS = (
    "account_no",
    "opened",
    "country",
    "monthly_volume",
    "owner_age",
    "is_company",
    "purpose",
    "verdict",
)
RENAMED = {"merchant": "shop"}
NEW_COUNTRY = "XK"


@dataclass(frozen=True)
class Bank:
    """All accounts that ever exist, with their kinds."""

    kind: np.ndarray
    """Index into `KINDS` of every account."""
    columns: dict[str, list[Any]]
    """Raw columns of every account; None where a value is missing."""


def account_number(index: int) -> str:
    """Return the number of an account; leading zeros matter."""
    return f"{(index * 7919) % 1_000_003:07d}"


def make_bank(count: int, rng: np.random.Generator) -> Bank:
    """Draw accounts whose columns depend on their kind."""
    kind = rng.choice(len(KINDS), count, p=KIND_FREQUENCIES)
    is_new = np.isin(kind, (2, 3))
    age_days = rng.gamma(2.0, np.where(is_new, 150.0, 1200.0)).astype(int)
    log_volume = rng.normal(
        np.array([7.5, 9.5, 8.2, 12.0])[kind], np.array([0.8, 1.0, 1.0, 0.3])[kind]
    )
    shares = np.array([[5, 3, 2, 2, 2], [4, 4, 3, 1, 2], [1, 2, 2, 6, 4], [1, 1, 8, 1, 1]], float)
    shares /= shares.sum(1, keepdims=True)
    stated = np.where(rng.random(count) < np.array(HONEST)[kind], kind, 0)
    looked_at = rng.random(count) < np.array(LABELLED)[kind]
    is_company = rng.random(count) < np.array([0.02, 0.95, 0.25, 0.5])[kind]
    columns: dict[str, list[Any]] = {
        "account_no": [account_number(index) for index in range(count)],
        "opened": [
            (date(2026, 10, 1) - timedelta(days=int(days))).isoformat() for days in age_days
        ],
        "country": [str(rng.choice(COUNTRIES, p=shares[each])) for each in kind],
        "monthly_volume": [f"{np.exp(value):.2f}" for value in log_volume],
        "owner_age": [int(value) for value in rng.normal(45, 14, count).clip(18, 95)],
        "is_company": ["yes" if each else "no" for each in is_company],
        "purpose": [str(rng.choice(PURPOSES[KINDS[each]])) for each in stated],
        "verdict": [
            KINDS[each] if looked else None for each, looked in zip(kind, looked_at, strict=True)
        ],
    }
    for name in ("country", "monthly_volume", "owner_age", "purpose"):
        for row in np.flatnonzero(rng.random(count) < MISSING):
            columns[name][row] = None
    return Bank(kind, columns)


def make_payments(
    bank: Bank, accounts: int, rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    """Draw a month's payments among the first accounts, with the faults of real tables."""
    kind = bank.kind[:accounts]
    members = [np.flatnonzero(kind == each) for each in range(len(KINDS))]
    partners = np.array([[5, 4, 0.6, 0], [4, 3, 0.4, 0], [2, 1, 5, 0], [0.2, 0.1, 0.1, 8]])
    partners = partners / partners.sum(1, keepdims=True)
    pairs = []
    for payer in range(accounts):
        for _ in range(1 + rng.poisson(3.0)):
            group = members[rng.choice(len(KINDS), p=partners[kind[payer]])]
            pairs.append((payer, int(rng.choice(group)) if len(group) else payer))
    pairs += [pairs[index] for index in rng.integers(len(pairs), size=len(pairs) // 20)]
    pairs += [(int(index), int(index)) for index in rng.integers(accounts, size=accounts // 50)]
    payments = [
        (account_number(payer), account_number(payee), f"{np.exp(rng.normal(4, 1)):.2f}")
        for payer, payee in pairs
    ]
    elsewhere = [f"OTHER-{number}" for number in range(accounts // 40)]
    payments += [
        (account_number(int(rng.integers(accounts))), other, "10.00") for other in elsewhere
    ]
    return [payments[index] for index in rng.permutation(len(payments))]


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a CSV file; None becomes an empty cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def write_bank(folder: Path, count: int = 10_000, rng_seed: int = 1) -> None:
    """Write all tables of the two months into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(rng_seed)
    bank = make_bank(count + count // 20, rng)
    payments = ("payer", "payee", "amount")
    rows = list(zip(*(bank.columns[name] for name in COLUMNS), strict=True))
    write_table(folder / "accounts_october.csv", COLUMNS, rows[:count])
    write_table(folder / "payments_october.csv", payments, make_payments(bank, count, rng))
    later = {name: list(values) for name, values in bank.columns.items()}
    later["verdict"] = [RENAMED.get(value, value) for value in later["verdict"]]
    for row in rng.choice(len(rows), max(1, len(rows) // 100), replace=False):
        later["country"][row] = NEW_COUNTRY
    reverse = COLUMNS[::-1]
    later_rows = list(zip(*(later[name] for name in reverse), strict=True))
    write_table(folder / "accounts_november.csv", reverse, later_rows)
    write_table(folder / "payments_november.csv", payments, make_payments(bank, len(rows), rng))
    kinds = [KINDS[each] for each in bank.kind]
    truth = list(zip(bank.columns["account_no"], kinds, strict=True))
    write_table(folder / "truth.csv", ("account_no", "kind"), truth)


def main() -> None:
    """Parse the command line and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")
    parser.add_argument(
        "--accounts", type=int, default=10_000, metavar="N", help="(default: 10,000)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="(default: 1)")
    options = parser.parse_args()
    write_bank(options.out, options.accounts, options.seed)
    for path in sorted(options.out.glob("*.csv")):
        print(f"written: {path}")


if __name__ == "__main__":
    main()
