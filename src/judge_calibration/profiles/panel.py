"""What the analysis of a panel rests on: reads, items, overall choices, and who is in the reduced panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judge_calibration.profiles.cube import ReadCube
from judge_calibration.profiles.item_tables import judge_pairs

_SIGNS = {"A": 1, "B": -1}
CHOICE_RULES = ("first_order", "order_stable")


@dataclass(frozen=True)
class Panel:
    """Reads of a panel with all that is known of its items.

    Attributes
    ----------
    cube : ReadCube
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        Overall choices by the declared rule: +1 for A, -1 for B, 0 unresolved.
    items : pandas.DataFrame
        A row an item of the cube, in its order: pair_id, base_id, source, reference_label, simulated.
    reduced : numpy.ndarray of bool, shape (n_judges,)
        Judges of the reduced panel: those that the declared rule does not drop for position bias.
    """

    cube: ReadCube
    verdicts: np.ndarray
    items: pd.DataFrame
    reduced: np.ndarray

    @property
    def panels(self) -> dict[str, np.ndarray]:
        """The judges of each panel: ``full``, and ``reduced`` where the rule drops a judge."""
        everyone = {"full": np.ones(len(self.reduced), dtype=bool)}
        return everyone if self.reduced.all() else everyone | {"reduced": self.reduced}

    @property
    def main(self) -> np.ndarray:
        """The judges of the reduced panel, or all: what the core set and main profiles rest on, as in [P]."""
        return self.reduced

    def pairs_of(self, judges: np.ndarray) -> np.ndarray:
        """Return which judge pairs are among some judges, as a mask over all judge pairs."""
        first, second = judge_pairs(len(self.reduced))
        return np.asarray(judges[first] & judges[second])

    @property
    def reference(self) -> np.ndarray | None:
        """Reference labels: +1 for A, -1 for B, 0 for a tie or none; None where none is decisive."""
        labels = self.items["reference_label"].map(_SIGNS).fillna(0).to_numpy(dtype=np.int8)
        return labels if labels.any() else None

    @property
    def cluster(self) -> np.ndarray | None:
        """Cluster of each item (its base task); None where each item stands alone."""
        codes, names = pd.factorize(self.items["base_id"])
        return None if len(names) == len(codes) else codes


def choice_matrix(
    choices: pd.DataFrame, judges: Sequence[str], items: Sequence[str], column: str
) -> np.ndarray:
    """Return choices as an array of shape (n_judges, n_items): +1 for A, -1 for B, 0 for none.

    Examples
    --------
    >>> choices = pd.DataFrame({"judge_id": ["j"], "pair_id": ["p"], "first_order": ["B"]})
    >>> choice_matrix(choices, ["j"], ["p", "q"], "first_order").tolist()
    [[-1, 0]]
    """
    matrix = np.zeros((len(judges), len(items)), dtype=np.int8)
    rows = pd.Index(judges).get_indexer(pd.Index(choices["judge_id"]))
    columns = pd.Index(items).get_indexer(pd.Index(choices["pair_id"]))
    signs = choices[column].map(_SIGNS).fillna(0).to_numpy(dtype=np.int8)
    known = (rows >= 0) & (columns >= 0)
    matrix[rows[known], columns[known]] = signs[known]
    return matrix


def choice_rows(matrices: dict[str, np.ndarray], judges: Sequence[str], items: Sequence[str]) -> pd.DataFrame:
    """Return choices in long form: judge_id, pair_id and a column of A, B or null for each matrix."""
    frame = pd.DataFrame(
        {
            "judge_id": np.repeat(np.array(list(judges), dtype=object), len(items)),
            "pair_id": np.tile(np.array(list(items), dtype=object), len(judges)),
        }
    ).astype("str")
    labels = np.array(["B", None, "A"], dtype=object)
    for name, matrix in matrices.items():
        frame[name] = pd.Series(labels[matrix.ravel().astype(np.int64) + 1], dtype="str")
    return frame
