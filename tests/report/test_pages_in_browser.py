"""Every page in a headless browser: nothing planted runs, nothing is asked of a network, nothing fails."""

import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.audit_queue import audit_queue
from judge_calibration.metrics.run_comparison import compare_verdicts
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.report.audit_page import audit_page
from judge_calibration.report.comparison_page import comparison_page
from judge_calibration.report.full_report import build_report
from judge_calibration.schemas import ANSWERS, CALLS, LABELS, PAIRS, VERDICT_ROWS, conform, empty

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
EVIL = "</script><script>document.title='planted'</script><img src=x onerror=\"document.title='planted'\">"


def make_pairs(n=12):
    index = np.arange(n)
    frame = pd.DataFrame({"pair_id": [f"p{i}" for i in index], "base_id": [f"t{i}" for i in index]})
    frame = frame.assign(
        source=EVIL, domain=EVIL, stakes="ordinary", question=EVIL, sentinel=False, content_hash="0"
    )
    frame["response_a"] = [f"a{i} {EVIL}" for i in index]
    frame["response_b"] = [f"b{i} {EVIL}" for i in index]
    return conform(frame.assign(reference_label="A", reference_kind="human", manipulation="length"), PAIRS)


def make_verdicts(pairs, said="A"):
    parts = [
        pd.DataFrame({"pair_id": pairs["pair_id"], "order": o, "verdict": v})
        for o, v in (("AB", said), ("BA", "B"))
    ]
    about = {"judge_id": f"j {EVIL}", "instrument_id": "i", "protocol": "direct", "constraint": "none"}
    frame = pd.concat(parts, ignore_index=True)
    return conform(frame.assign(outcome="valid", temperature=0.0, repetition=0, **about), VERDICT_ROWS)


def report():
    from judge_calibration.metrics.outcomes import outcome_table
    from judge_calibration.metrics.positions import position_table
    from judge_calibration.metrics.trust_table import trust_intervals, widen_intervals

    pairs = make_pairs()
    verdicts = make_verdicts(pairs)
    options = ReportingOptions()
    tables = {
        "trust_table": widen_intervals(trust_intervals(verdicts, pairs, options)),
        "outcome_table": outcome_table(verdicts, pairs, options),
        "position_table": position_table(verdicts, pairs, options),
        "audit_queue": audit_queue(verdicts, pairs),
        "pairs": pairs,
        "judged_pairs": pairs,
    }
    return build_report(tables, {"i": {"identity": {"system_prompt": EVIL}}}, options)


def queue():
    pairs = make_pairs()
    verdicts = make_verdicts(pairs)
    calls = verdicts.assign(step="verdict", request="{}", call_id=[f"c{i}" for i in range(len(verdicts))])
    answers = pd.DataFrame({"call_id": calls["call_id"], "request": "{}", "text": EVIL})
    return audit_page(
        audit_queue(verdicts, pairs),
        verdicts,
        pairs,
        conform(calls[[c for c in CALLS.column_names if c in calls.columns]], CALLS),
        conform(answers, ANSWERS),
        empty(LABELS),
        # Opened from the start, so that the texts are put in.
    ).replace('<details class="item"', '<details open class="item"')


def comparison():
    pairs = make_pairs()
    result = compare_verdicts(make_verdicts(pairs), make_verdicts(pairs, "B"), pairs, pairs)
    return comparison_page(result, EVIL, EVIL)


def open_page(html, folder):
    """Return the DOM after the scripts ran, what was logged, and the addresses the page asked for."""
    page, log = folder / "page.html", folder / "net.json"
    page.write_text(html, encoding="utf-8")
    done = subprocess.run(
        [
            *(
                BROWSER,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
                "--enable-logging=stderr",
            ),
            # The browser's own errands find nobody.
            *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"),
            *("--virtual-time-budget=20000", f"--log-net-log={log}", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    about = [event.get("params", {}) for event in json.loads(log.read_text(encoding="utf-8"))["events"]]
    asked = {
        one["url"]
        for one in about
        if one.get("initiator", "not an origin") != "not an origin" and "url" in one
    }
    return done.stdout, done.stderr, {url for url in asked if url.startswith("http")}


@pytest.mark.parametrize(
    ("make", "shown"),
    [(report, 'data-drawn="yes"'), (queue, "Raw reply"), (comparison, "Changed verdicts")],
)
def test_page(make, shown, tmp_path):
    dom, logged, asked = open_page(make(), tmp_path)
    assert shown in dom
    assert "<title>planted" not in dom
    assert "CONSOLE" not in logged, logged
    assert asked == set()


def test_a_page_that_runs_and_asks_is_noticed(tmp_path):
    html = f'<title>x</title><p>{EVIL}</p><img src="http://example.invalid/a.png">'
    dom, _, asked = open_page(html, tmp_path)
    assert "<title>planted" in dom
    assert asked == {"http://example.invalid/a.png"}
