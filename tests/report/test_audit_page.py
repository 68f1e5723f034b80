"""The queue as a page and as blinded packets: nothing runs, nothing is told."""

import base64
import gzip
import json
import re

import pandas as pd

from judge_calibration.labelling.identity import RoundKey
from judge_calibration.metrics.audit_queue import audit_queue
from judge_calibration.report.audit_packets import audit_files, audit_key
from judge_calibration.report.audit_page import audit_page
from judge_calibration.schemas import ANSWERS, CALLS, LABELS, PAIRS, VERDICT_ROWS, conform, empty

EVIL = "</script><script>alert(1)</script>"


def make_tables():
    """Two pairs: the first contradicts, the second gives no verdict; every text tries to run."""
    pairs = pd.DataFrame(
        {
            "pair_id": ["p0", "p1"],
            "base_id": ["t0", "t1"],
            "source": EVIL,
            "domain": EVIL,
            "stakes": "ordinary",
            "question": f"Q {EVIL}",
            "response_a": ["first answer", f"one {EVIL}"],
            "response_b": ["second answer", "=HYPERLINK()"],
            "sentinel": False,
            "content_hash": "0",
        }
    )
    cell = {"judge_id": f"judge {EVIL}", "instrument_id": "i", "protocol": "direct", "constraint": "none"}
    rows = []
    for pair_id, said in (("p0", ("A", "B")), ("p1", (None, None))):
        for order, verdict in zip(("AB", "BA"), said, strict=True):
            rows.append(
                cell
                | {
                    "pair_id": pair_id,
                    "order": order,
                    "temperature": 0.0,
                    "repetition": 0,
                    "verdict": verdict,
                }
                | {"outcome": "valid" if verdict else "malformed"}
            )
    verdicts = conform(pd.DataFrame(rows), VERDICT_ROWS)
    calls = verdicts[["pair_id", "judge_id", "instrument_id", "protocol", "constraint", "order"]].assign(
        temperature=0.0, repetition=0, step="verdict", call_id=[f"c{i}" for i in range(4)], request="{}"
    )
    answers = pd.DataFrame(
        {
            "call_id": [f"c{i}" for i in range(4)],
            "request": json.dumps({"messages": [{"role": "user", "content": EVIL}]}),
            "text": [f"reply {i} {EVIL}" for i in range(4)],
        }
    )
    return conform(pairs, PAIRS), verdicts, conform(calls, CALLS), conform(answers, ANSWERS)


def make_page():
    pairs, verdicts, calls, answers = make_tables()
    return audit_page(audit_queue(verdicts, pairs), verdicts, pairs, calls, answers, empty(LABELS))


class TestPage:
    def test_planted_scripts_do_not_run(self):
        page = make_page()
        assert "<script>alert" not in page
        assert len(re.findall(r"<script>", page)) == 1
        assert "innerHTML" not in page

    def test_every_raw_request_and_reply_is_inside(self):
        packed = re.search(r'id="items-gzip">([^<]+)<', make_page())
        items = json.loads(gzip.decompress(base64.b64decode(packed.group(1))))
        calls = [call for item in items for one in item["judgments"] for call in one["calls"]]
        assert sorted(call["reply"] for call in calls) == [f"reply {i} {EVIL}" for i in range(4)]
        assert all(EVIL in call["request"] for call in calls)

    def test_nothing_is_asked_of_a_network(self):
        page = re.sub(r'(?s)<script type="text/plain".*?</script>', "", make_page())
        assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", page)
        assert "default-src 'none'" in page

    def test_an_empty_queue_says_so(self):
        pairs, verdicts, calls, answers = make_tables()
        queue = audit_queue(verdicts, pairs).head(0)
        page = audit_page(queue, verdicts, pairs, calls, answers, empty(LABELS))
        assert "Nothing here has a reason" in page


class TestPackets:
    def files(self):
        pairs, verdicts, *_ = make_tables()
        queue = audit_queue(verdicts, pairs)
        key = audit_key(queue, pairs, RoundKey(None, "audit"))
        return key, audit_files(pairs, key)

    def test_nothing_tells_a_verdict_a_reason_or_a_judge(self):
        key, files = self.files()
        assert len(key) == 2
        tables = [content for name, content in files.items() if name.endswith(("csv", "json"))]
        text = "".join(c.decode("utf-8-sig") if isinstance(c, bytes) else c for c in tables)
        assert "first answer" in text
        for told in ("contradiction", "failed", "malformed", "judge", "p0", "t0", "reply", "priority"):
            assert told not in text.replace("Abstain: I cannot judge this pair", "").replace(
                "cannot judge", ""
            )

    def test_the_sequence_follows_the_ids_not_the_urgency(self):
        key, _ = self.files()
        assert key.sort_values("sequence")["packet_id"].is_monotonic_increasing

    def test_pairs_without_texts_get_no_packet(self):
        pairs, verdicts, *_ = make_tables()
        bare = pairs.assign(response_a=None)
        assert audit_key(audit_queue(verdicts, pairs), bare, RoundKey(None, "audit")).empty
