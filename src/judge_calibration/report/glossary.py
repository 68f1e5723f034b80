"""What the words of the page mean: one definition each, with an anchor, so that the page needs no other."""

from __future__ import annotations

from typing import NamedTuple

from judge_calibration.report.blocks import Section, Terms


class Term(NamedTuple):
    """A definition.

    Attributes
    ----------
    id : str
        Anchor on the page, after ``define-``.
    short : str
        How links to it are called.
    name, text : str
    formula : str
        In plain characters; empty where the text says it all.
    """

    id: str
    short: str
    name: str
    text: str
    formula: str = ""


_TERMS = (
    Term(
        "judgment",
        "outcome",
        "Judgment, outcome, view",
        "One pair, judge, prompt, order, temperature and repetition. Its outcome is valid only if every "
        "call of it is; a malformed, truncated, empty, refused, timed-out or otherwise failed one carries"
        " no verdict. In the strict view (the default) a failed judgment is not repeated, not order-proof"
        " and not right; a TIE against a decisive reference is wrong. Resolved leaves pairs with a "
        "failure out; policy sends ties, abstentions and failures to people; the two bounds take all "
        "failures as wrong or right.",
    ),
    Term(
        "consistency",
        "C",
        "C and C2: repeats itself",
        "C: share of (pair, order) whose repetitions all give the same verdict; it falls as repetitions "
        "are added. C2: chance that two repetitions agree; it does not depend on their number. Undefined "
        "with one repetition.",
        "C = Pr(all R verdicts equal); C2 = mean share of equal pairs of repetitions",
    ),
    Term(
        "position",
        "phi",
        "phi, order excess, first position: fair between orders",
        "phi: share of pairs whose two orders give different verdicts. Order excess: how much more often "
        "two reads of different order differ than two reads of the same order. Picks the first: share of "
        "decisive verdicts for whatever was shown first; 1/2 without a preference. Orders contradict: the"
        " two orders name opposite answers.",
        "phi = Pr(verdict AB differs from verdict BA), after mapping back to the answers",
    ),
    Term(
        "accuracy",
        "A",
        "A, q and the ceiling: right",
        "A: share of (pair, order) whose verdict equals a decisive reference. q: that share among pairs "
        "whose orders differ. The ceiling is the highest A that the order flips allow; the capability gap"
        " is what is missing to it.",
        "A = (1 - phi) A_dec + phi q; ceiling = 1 - phi (1 - q)",
    ),
    Term(
        "trust",
        "T",
        "T: trustworthy",
        "Share of (pair, order) that is repeated, the same in both orders, and right, counted (T direct)."
        " T by product is the same if the three were independent; T by pair counts pairs whose two orders"
        " are all three. A - phi q is the share of pairs right in both orders.",
        "T_direct = mean of N P R; T_product = C (A - phi q)",
    ),
    Term(
        "regions",
        "region",
        "Regions and remedies",
        "Trustworthy: C high, phi low. Noisy but fair: repeat and vote. Confidently biased: ask in both "
        "orders and average. Chaos: both. A remedy's gain is predicted by resampling the same data, with "
        "the calls it costs, and verified on repetitions that were held out, where there are enough.",
    ),
    Term(
        "manipulation",
        "controlled change",
        "Controlled changes",
        "One answer of a pair was changed in one declared way. Length and style: neither side should win;"
        " read the share of pairs in which the modified side wins in both orders, the original side "
        "likewise, and their difference. Errors, citations, polish and injected instructions: the better "
        "side should win in both orders. Identity: the same answer twice; any winner is false.",
    ),
    Term(
        "paired",
        "twin",
        "Pairs beside their twins",
        "A polished or injected wrong answer and the same error without it, judged by the same cell: the "
        "share in which the better side wins in both orders, twin less own. Above 0: the polish or the "
        "injection saves wrong answers.",
    ),
    Term(
        "formats",
        "dispersion",
        "Format dispersion and its null",
        "Highest less lowest T over a fixed set of prompt formats of one judge. A range of several equal "
        "things is above 0 by chance: the null exchanges formats within each pair; its mean and its 95 % "
        "point are given, and the share of exchanges with at least the observed range is the p-value.",
        "dispersion = max T - min T over formats",
    ),
    Term(
        "paradigms",
        "equal calls",
        "Paradigms at equal calls",
        "Direct, per-criterion and checklist judging cost different numbers of calls a verdict. At equal "
        "calls the cheaper one repeats and votes as often as the dearer one's calls pay for.",
    ),
    Term(
        "confidence",
        "confidence",
        "Confidence",
        "Stated confidence, the probability of the chosen label, and agreement of repetitions, each "
        "compared with being right: Brier score, expected calibration error (biased upwards with few "
        "items), area under the ROC curve, risk by coverage. It never enters T.",
    ),
    Term(
        "selective",
        "threshold",
        "Selective judging",
        "Verdicts whose confidence lies below a threshold go to people. The threshold is chosen on one "
        "half of the base tasks so that an exact binomial bound holds the error rate, and tried on the "
        "other half.",
    ),
    Term(
        "agreement",
        "agreement",
        "Agreement, kappa, AC1, alpha, ceiling",
        "Raw agreement: equal labels. Cohen's kappa and Krippendorff's alpha take out agreement by chance"
        " from the labels' shares; Gwet's AC1 is steadier where one label is rare. Undefined where only "
        "one category occurs. A judge's agreement with people is read beside people's with one another: "
        "the human ceiling.",
        "kappa = (observed - expected) / (1 - expected)",
    ),
    Term(
        "labelling",
        "labels",
        "People's labels: agreement, drift, errors",
        "Agreement of people is over every two who labelled the same pair independently; an adjudicator is "
        "called only where two differ, and does not count. Drift: a person's last block of labels in time "
        "less the first. Likely errors: Dawid and Skene's model, which takes a likely true label from all "
        "labels at once. Settled: one label a pair by the declared rule; each single label is kept.",
    ),
    Term(
        "powered",
        "win rate",
        "Win rates by people and judge together",
        "The judge's verdicts on all pairs, corrected by its bias on the pairs that people labelled (PPI++). "
        "Only where those were drawn at random with known probabilities.",
    ),
    Term(
        "variance",
        "component",
        "Variance components",
        "The verdict's direction is split into parts: pair (what one wants), judge, format, order, their "
        "combinations, and the rest; estimated by REML. The D-study says which design (pairs, orders, "
        "formats, repetitions) would reach a wanted generalizability, and its price.",
    ),
    Term(
        "authority",
        "earned",
        "Earned authority",
        "A judge may influence a decision in a slice only if every criterion's lower bound lies above the"
        " floor that a declared rule sets, with enough base tasks. Not settled: the bounds hold the "
        "floor; the number of base tasks at which they would leave it, if the rate stayed, is given.",
    ),
    Term(
        "attributes",
        "read",
        "Attribute reads",
        "A read says which answer has more of an attribute, or neither; in both orders. Stable: both "
        "orders agree. Coverage: share of stable reads. Agreement of two judges: over what both resolved,"
        " never read without that joint coverage.",
    ),
    Term(
        "adaptation",
        "gain",
        "Adaptation",
        "Accuracy or T of the adapted judge less the unadapted one, on held-out pairs, in percentage points, "
        "with a paired interval by base task. An unparsed verdict is wrong.",
    ),
    Term(
        "audit",
        "audit queue",
        "Audit queue",
        "Judgments that a person should look at first: why each is there is its reason; judgments with "
        "several reasons, and rarer reasons, come first. The number is capped, spread over reasons and "
        "slices.",
    ),
    Term(
        "cost",
        "cost",
        "Costs",
        "Tokens as the answers report them, times the price table of the parameters. A call that several "
        "pairs share is counted once.",
    ),
    Term(
        "interval",
        "interval",
        "Interval, n, base task",
        "Intervals are at 95 %: whole base tasks are resampled 10,000 times (their pairs are not "
        "independent). A share of 0 or 1 gets Wilson's. Below 10 base tasks there is none; below 30 read "
        "it with care. n is the number of pairs unless said otherwise.",
    ),
    Term(
        "instrument",
        "cell",
        "Instrument and cell",
        "Everything that makes a verdict: model as served, prompts, output rule, decoding, parser. Its id is "
        "the SHA-256 of all of it. A cell is an instrument at a temperature.",
    ),
)
GLOSSARY = {term.id: term for term in _TERMS}

_OF_SECTION = {
    "trust": ("trust", "consistency", "position", "accuracy"),
    "authority": ("authority",),
    "position": ("position",),
    "manipulation": ("manipulation",),
    "paired": ("paired",),
    "slices": ("trust", "consistency", "position", "accuracy"),
    "people": ("agreement", "powered"),
    "labelling": ("labelling", "agreement"),
    "formats": ("formats", "trust"),
    "paradigms": ("paradigms", "trust"),
    "temperature": ("consistency", "trust"),
    "remedies": ("regions",),
    "selective": ("selective",),
    "confidence": ("confidence",),
    "variance": ("variance",),
    "outcomes": ("judgment",),
    "costs": ("cost",),
    "attributes": ("attributes",),
    "adaptation": ("adaptation", "trust"),
    "audit": ("audit",),
    "selftest": ("interval",),
    "instrument": ("instrument",),
    "comparisons": ("trust", "interval"),
    "keys-section": ("position",),
    "sentinel": ("instrument", "judgment"),
    "shift": ("authority",),
    "differences": ("trust", "consistency", "position", "accuracy"),
    "changes": ("judgment",),
    "counts": ("judgment",),
}


def terms_of(section: str) -> tuple[str, ...]:
    """Return the ids of the definitions that a section's figures and tables link to, "interval" last."""
    named = _OF_SECTION.get(section)
    return () if named is None else tuple(dict.fromkeys((*named, "interval")))


def definitions_section() -> Section:
    """Return the section with all definitions."""
    lead = "Longer, with their sources and edge cases, in the documentation under Definitions."
    return Section("definitions", "Definitions", lead, [Terms(_TERMS)])
