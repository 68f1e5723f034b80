"""The attribute probe: which of two answers has more of one stated property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge_calibration.judges.parsing.alphabet import PROBE, Alphabet
from judge_calibration.judges.parsing.fields import LabelField, UnitField
from judge_calibration.judges.parsing.forms import Form, JsonForm, LikelihoodForm
from judge_calibration.judges.prompts import load_prompts
from judge_calibration.judges.protocols.base import Protocol, Step
from judge_calibration.judges.protocols.pairwise import show_examples, system_prompt
from judge_calibration.options.judging import Example

STEP = "attribute"
# The name of "neither" has to be one token for its log-probability to be seen.
_ONE_TOKEN = Alphabet(none="N")


def attribute(
    variant: str = "stated",
    examples: Sequence[Example] = (),
    label_bias: Mapping[str, float] | None = None,
) -> Protocol:
    """Return the probe.

    Parameters
    ----------
    variant : {"stated", "likelihood"}
        ``stated``: a JSON object with direction, confidence and magnitude. ``likelihood``: the first token's
        log-probabilities over A, B and N (neither); no magnitude.
    examples : sequence of Example
        Solved reads, shown first.
    label_bias : mapping of str to float, optional
        Natural-log units taken off each shown label's log-probability before they are compared.
    """
    form: Form
    if variant == "stated":
        form = JsonForm(
            (
                LabelField(
                    "direction", PROBE, "the answer that has more of the property, NONE if neither has"
                ),
                UnitField("confidence", "how sure you are"),
                UnitField("magnitude", "how large the difference is"),
            )
        )
    else:
        form = LikelihoodForm(_ONE_TOKEN, dict(label_bias or {}))
    step = Step(
        STEP,
        load_prompts("probe")[variant],
        form,
        max_tokens=64 if variant == "stated" else 1,
        texts=(("examples", show_examples(examples)),),
        top_logprobs=0 if variant == "stated" else 5,
    )
    rubric = {"variant": variant}
    return Protocol("attribute", PROBE, system_prompt("probe", "system"), (step,), rubric, True, "direction")
