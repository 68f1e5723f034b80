"""A progress bar with rate, outcomes, cost and time left; silent where the error output is no terminal."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any


class Progress:
    """Counts calls as they end.

    Parameters
    ----------
    total : int or None
        Planned calls; None where the plan's length is not known.
    shown : bool or None
        Whether there is a bar; None: only on a terminal.
    """

    def __init__(self, total: int | None, shown: bool | None = None) -> None:
        self.outcomes: Counter[str] = Counter()
        self.from_store = 0
        self.asked = 0
        self.money = 0.0
        self.tokens = 0
        self._bar: Any = None
        if sys.stderr.isatty() if shown is None else shown:
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit="call", desc="judging", dynamic_ncols=True, smoothing=0.05)

    def stored(self, count: int) -> None:
        """Count calls that the store has already answered."""
        self.from_store += count
        if self._bar is not None:
            # They are no measure of the speed.
            self._bar.initial += count
            self._bar.update(count)

    def spent(self, tokens: int, money: float) -> None:
        """Count what answers cost."""
        self.tokens += tokens
        self.money += money

    def ended(self, outcome: str, tokens: int, money: float, count: int = 1) -> None:
        """Count calls that were asked: ``answered``, or their failure."""
        self.asked += count
        self.outcomes[outcome] += count
        self.spent(tokens, money)
        if self._bar is not None:
            self._bar.update(count)
            shown = ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common(4))
            self._bar.set_postfix_str(f"{shown}, cost {self.money:.4g}", refresh=False)

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
