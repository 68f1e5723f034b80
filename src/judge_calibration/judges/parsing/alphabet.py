"""The labels that a judge may answer with, and what each means for the pair as shown."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum


class Meaning(Enum):
    """What a label says about the two candidates as they were shown."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"
    ABSTAIN = "abstain"
    NONE = "none"


@dataclass(frozen=True)
class Alphabet:
    """The label of each meaning; a meaning without one is not in the alphabet.

    Examples
    --------
    >>> Alphabet(tie="TIE").read("tie")
    <Meaning.TIE: 'tie'>
    >>> Alphabet().read("tie") is None
    True
    """

    first: str = "A"
    second: str = "B"
    tie: str | None = None
    abstain: str | None = None
    none: str | None = None

    @property
    def labels(self) -> dict[str, Meaning]:
        """Label to meaning, in the order first, second, tie, abstain, none."""
        named = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        return {label: Meaning(name) for name, label in named.items() if label is not None}

    def read(self, text: str) -> Meaning | None:
        """Return the meaning of a label, case and outer white space ignored; None if it is not one.

        Case is ignored for ASCII letters only: the dotless i of ``tıe`` is another letter.
        """
        return {_folded(label): meaning for label, meaning in self.labels.items()}.get(_folded(text.strip()))

    def in_words(self) -> str:
        """Return the labels as a sentence would list them.

        Examples
        --------
        >>> Alphabet(tie="TIE").in_words()
        'A, B or TIE'
        """
        labels = list(self.labels)
        return ", ".join(labels[:-1]) + f" or {labels[-1]}"


def _folded(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


FORCED = Alphabet()
LAB = Alphabet(tie="TIE", abstain="ABSTAIN")
PROBE = Alphabet(none="NONE")
