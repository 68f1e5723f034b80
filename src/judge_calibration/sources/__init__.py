"""Pairs, verdicts and labels out of other people's files: nothing is guessed, nothing imported half."""

from judge_calibration.options.layout import Layout, SourceFile
from judge_calibration.sources.layouts import layout_names, load_layout
from judge_calibration.sources.proposal import Proposal, propose_layout
from judge_calibration.sources.reading import SOURCE_FILES, read_labels, read_logs, read_pairs, read_split

__all__ = [
    "SOURCE_FILES",
    "Layout",
    "Proposal",
    "SourceFile",
    "layout_names",
    "load_layout",
    "propose_layout",
    "read_labels",
    "read_logs",
    "read_pairs",
    "read_split",
]
