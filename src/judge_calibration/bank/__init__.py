"""The authored pair bank: base tasks, controlled mutations and the design check.

The three steps, on a bank's folder::

    bank = load_bank("data/01_raw/pair_bank")
    pairs = build_pairs(bank)
    table = check_design(bank, pairs).table
"""

from judge_calibration.bank.build import build_pairs, published
from judge_calibration.bank.design import DesignCheck, check_design
from judge_calibration.bank.tasks import Bank, BankError, load_bank

__all__ = ["Bank", "BankError", "DesignCheck", "build_pairs", "check_design", "load_bank", "published"]
