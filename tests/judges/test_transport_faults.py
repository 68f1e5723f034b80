"""Every way in which a server can fail, over both roads: the same outcome, the same count of requests."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fault_server import Behaviour, error, running
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.failures import (
    AccountError,
    AuthenticationFailedError,
    CallFailure,
    Refused,
    StoppedError,
    of_status,
    retry_after,
)
from judge_calibration.judges.store import StoreReader
from judge_calibration.judges.transports.base import reply_of
from judge_calibration.text import from_storable

ROADS = ("litellm", "openai_http")
ATTEMPTS = 3

# What the server does with each request -> failure, text, requests that are sent.
LASTING = {
    "refused at the door": (Behaviour("close"), "unavailable", None, ATTEMPTS),
    "reset": (Behaviour("reset"), "unavailable", None, ATTEMPTS),
    "cut in the middle": (Behaviour("cut"), "unavailable", None, ATTEMPTS),
    "408": (error(408), "timeout", None, ATTEMPTS),
    "504": (error(504), "timeout", None, ATTEMPTS),
    "429": (error(429), "rate_limited", None, ATTEMPTS),
    "500": (error(500), "unavailable", None, ATTEMPTS),
    "502": (error(502), "unavailable", None, ATTEMPTS),
    "503": (error(503), "unavailable", None, ATTEMPTS),
    "529": (error(529), "unavailable", None, ATTEMPTS),
    "unknown model": (error(404, "no such model", "model_not_found"), "unavailable", None, 1),
    "bad request": (error(400, "wrong"), "error", None, 1),
    "unprocessable": (error(422, "wrong"), "error", None, 1),
    "context overflow": (
        error(400, "This model's maximum context length is 10 tokens", "context_length_exceeded"),
        "context_overflow",
        None,
        1,
    ),
    "llama.cpp overflow": (
        error(400, "request (9031 tokens) exceeds the available context size (8192 tokens)"),
        "context_overflow",
        None,
        1,
    ),
    "filtered prompt": (error(400, "blocked", "content_filter"), "refusal", None, 1),
    "broken JSON": (Behaviour("invalid_json"), "error", None, ATTEMPTS),
    "a web page": (Behaviour("raw", body=b"<html>busy</html>"), "error", None, ATTEMPTS),
    "another object": (Behaviour("raw", body=b"[1]"), "error", None, ATTEMPTS),
    "an error as a success": (
        Behaviour("raw", body=b'{"error": {"message": "busy", "code": 503}}'),
        "unavailable",
        None,
        ATTEMPTS,
    ),
    "empty choices": (Behaviour(reply={"choices": []}), None, None, 1),
    "null content": (Behaviour(text=None), None, None, 1),
    "content filter": (Behaviour(text=None, choice={"finish_reason": "content_filter"}), None, None, 1),
    "a refusal": (Behaviour(text=None, message={"refusal": "I cannot"}), "refusal", "I cannot", 1),
    "empty text": (Behaviour(text=""), None, "", 1),
    "cut off by the cap": (Behaviour(text="A", choice={"finish_reason": "length"}), None, "A", 1),
    "thinking aloud": (Behaviour(text="<think>B?</think>A"), None, "A", 1),
    "thinking apart": (Behaviour(text="A", message={"reasoning_content": "B?"}), None, "A", 1),
    "a thought in a thought": (Behaviour(text="<think>A? <think>B?</think> no</think>A"), None, "A", 1),
    "a thought in a thought without end": (
        Behaviour(text="<think>A? <think>B?</think>A"),
        None,
        "<think>A? <think>B?</think>A",
        1,
    ),
    "thinking apart, cut too early": (
        Behaviour(text=" no</think>A", message={"reasoning_content": "A? <think>B?"}),
        None,
        "A",
        1,
    ),
    "thinking without end": (Behaviour(text="<think>A"), None, "<think>A", 1),
    "odd characters": (
        Behaviour(text="A\ud800 \x00 \u202e \r\n \ufffe"),
        None,
        "A\ud800 \x00 \u202e \r\n \ufffe",
        1,
    ),
    "no usage": (Behaviour(reply={"usage": None}), None, "A", 1),
    "another model": (Behaviour(reply={"model": "m-2026"}), None, "A", 1),
    "a slow drip": (Behaviour(drip=20, seconds=0.2), None, "A", 1),
}


def options_for(asked, server, road, **transport):
    retries = {"attempts": ATTEMPTS, "first_wait_s": 0.001, "longest_wait_s": 0.01}
    return asked(transport=road, api_base=server.api_base, retries=retries, **transport)


def script_of(table):
    return lambda request, seen: table[request["messages"][0]["content"]][0]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All lasting faults, asked over both roads: answers, requests for each, and the sealed hashes."""
    from planned_calls import Asked, OneJudge, plan

    from judge_calibration.options.asking import AskingOptions, TransportOptions

    found = {}
    for road in ROADS:
        folder = tmp_path_factory.mktemp(road)
        with running(script_of(LASTING)) as server:
            transport = TransportOptions.model_validate(
                {
                    "transport": road,
                    "api_base": server.api_base,
                    "retries": {"attempts": ATTEMPTS, "first_wait_s": 0.001, "longest_wait_s": 0.01},
                }
            )
            options = Asked((OneJudge("judge", transport),), AskingOptions())
            calls = plan(list(LASTING))
            answers, attempts = ask_calls(calls, options, folder, "run")
            contents = [request["messages"][0]["content"] for request in server.requests]
        by_content = dict(zip(calls["call_id"], LASTING, strict=True))
        answers.index = [by_content[call_id] for call_id in answers["call_id"]]
        attempts["content"] = attempts["call_id"].map(by_content)
        found[road] = (answers, attempts, contents, StoreReader(folder).sealed_hashes())
    return found


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", LASTING)
def test_a_fault_has_its_class_and_its_number_of_requests(outcomes, road, name):
    _, failure, text, requests = LASTING[name]
    answers, attempts, contents, _ = outcomes[road]
    row = answers.loc[name]
    assert (None if row.isna()["failure"] else row["failure"]) == failure
    assert (None if row.isna()["text"] else from_storable(row["text"])) == text
    # While the provider answers others, being turned away by a rate limit uses up no attempt.
    assert contents.count(name) == requests or (failure == "rate_limited" and contents.count(name) > requests)
    assert (attempts["content"] == name).sum() == contents.count(name)


def test_both_roads_seal_the_same_bytes(outcomes):
    assert outcomes["litellm"][3] == outcomes["openai_http"][3]
    assert outcomes["litellm"][0].equals(outcomes["openai_http"][0])


@pytest.mark.parametrize("road", ROADS)
def test_both_roads_send_the_same_request(road, asked, make_plan, tmp_path):
    schema = {"kind": "json_schema", "schema": {"type": "object", "properties": {}}, "grammar": None}
    calls = make_plan(["x"], constraint=schema, top_logprobs=5, top_p=0.9, reasoning_effort="low")
    with running() as server:
        ask_calls(calls, options_for(asked, server, road, key_variable="K"), tmp_path, keys={"K": "sk-1"})
        sent, headers = server.requests[0], server.request_headers[0]
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 8,
        "top_p": 0.9,
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "verdict",
                "schema": {"type": "object", "properties": {}},
                "strict": True,
            },
        },
    }
    assert headers["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize("road", ROADS)
def test_log_probabilities_are_read(road, asked, make_plan, tmp_path):
    top = [{"token": "A", "logprob": -0.1, "bytes": [65]}, {"token": "B", "logprob": -2.5, "bytes": [66]}]
    logprobs = {"content": [{**top[0], "top_logprobs": top}]}
    with running(lambda request, seen: Behaviour(choice={"logprobs": logprobs})) as server:
        answers, _ = ask_calls(make_plan(["x"]), options_for(asked, server, road), tmp_path)
    [token] = json.loads(answers["logprobs"][0])
    assert token["token"] == "A"
    assert [one["logprob"] for one in token["top"]] == [-0.1, -2.5]


@pytest.mark.parametrize("road", ROADS)
def test_a_server_that_is_not_there_is_unavailable(road, asked, make_plan, tmp_path):
    with running() as server:
        address = server.api_base
    options = asked(
        transport=road,
        api_base=address,
        retries={"attempts": 2, "first_wait_s": 0.001, "longest_wait_s": 0.01},
    )
    answers, attempts = ask_calls(make_plan(["x"]), options, tmp_path)
    assert answers["failure"].tolist() == ["unavailable"]
    assert len(attempts) == 2


@pytest.mark.parametrize("road", ROADS)
def test_an_attempt_that_takes_too_long_is_a_time_out(road, asked, make_plan, tmp_path):
    slow_first = lambda request, seen: Behaviour("hang", seconds=30) if seen == 0 else Behaviour(text="A")  # noqa: E731
    with running(slow_first) as server:
        options = options_for(asked, server, road, timeout_s=0.3)
        answers, attempts = ask_calls(make_plan(["x"]), options, tmp_path)
    assert attempts["failure"].fillna("answered").tolist() == ["timeout", "answered"]
    assert answers["text"].tolist() == ["A"]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
def test_the_wait_that_a_provider_asks_for_is_kept(road, form, asked, make_plan, tmp_path):
    def script(request, seen):
        if seen:
            return Behaviour(text="A")
        if form == "milliseconds":
            return error(429, retry_after_ms="700")
        if form == "seconds":
            return error(429, retry_after="0.7")
        # HTTP dates have whole seconds: between one and two are left.
        return error(429, retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True))

    with running(script) as server:
        began = time.monotonic()
        answers, attempts = ask_calls(make_plan(["x"]), options_for(asked, server, road), tmp_path)
        took = time.monotonic() - began
    assert answers["text"].tolist() == ["A"]
    assert attempts["failure"].fillna("answered").tolist() == ["rate_limited", "answered"]
    assert took >= 0.65


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_the_run_at_once_and_is_not_named(road, status, asked, make_plan, tmp_path):
    key = "sk-planted-0123456789"
    with running(lambda request, seen: error(status, f"Incorrect API key: {key}")) as server:
        options = options_for(asked, server, road, key_variable="SOME_KEY", concurrency=1)
        with pytest.raises(AuthenticationFailedError) as stopped:
            ask_calls(make_plan([str(n) for n in range(50)]), options, tmp_path, keys={"SOME_KEY": key})
        assert server.total == 1
    message = str(stopped.value)
    assert "SOME_KEY" in message
    assert "judge judge" in message
    assert f"HTTP {status}" in message
    assert key not in message


@pytest.mark.parametrize("road", ROADS)
def test_a_key_that_is_not_set_stops_before_anything_is_sent(road, asked, make_plan, tmp_path, monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with running() as server:
        options = options_for(asked, server, road, key_variable="SOME_KEY")
        with pytest.raises(AuthenticationFailedError, match="environment variable SOME_KEY is not set"):
            ask_calls(make_plan(["x"]), options, tmp_path)
        assert server.total == 0


def test_an_empty_account_stops_the_run(asked, make_plan, tmp_path):
    with running(lambda request, seen: error(429, "quota", "insufficient_quota")) as server:
        with pytest.raises(AccountError, match="no quota left"):
            ask_calls(make_plan(["x"]), options_for(asked, server, "openai_http"), tmp_path)
        assert server.total == 1


def test_a_run_of_failures_stops_and_keeps_what_came(asked, make_plan, tmp_path):
    def script(request, seen):
        return Behaviour(text="A") if int(request["messages"][0]["content"]) < 5 else error(503)

    with running(script) as server:
        options = options_for(asked, server, "openai_http", concurrency=1)
        options = asked({"most_failures": 4}, **options.judges[0].transport.model_dump(exclude={"retries"}))
        calls = make_plan([str(n) for n in range(100)])
        with pytest.raises(
            StoppedError,
            match=r"4 calls in a row got no answer from 127\.0\.0\.1:\d+; the last one: unavailable",
        ):
            ask_calls(calls, options, tmp_path)
    assert len(StoreReader(tmp_path).answers(calls["call_id"])) == 5


def test_a_throttled_run_finishes(asked, make_plan, tmp_path):
    """A provider that lets four requests through in 50 ms turns most away, many of them many times."""
    window = {"start": 0.0, "used": 0}

    def script(request, seen):
        now = time.monotonic()
        if now - window["start"] > 0.05:
            window.update(start=now, used=0)
        window["used"] += 1
        return Behaviour(text="A") if window["used"] <= 4 else error(429, retry_after="0.05")

    with running(script) as server:
        options = options_for(asked, server, "openai_http", concurrency=32)
        answers, attempts = ask_calls(make_plan([str(n) for n in range(60)]), options, tmp_path)
    assert answers["failure"].isna().all()
    assert attempts["failure"].eq("rate_limited").any()


def test_a_failure_is_asked_again_by_the_next_run_and_an_answer_is_not(asked, make_plan, tmp_path):
    def script(request, seen):
        return (
            Behaviour(text="A")
            if request["messages"][0]["content"] == "good" or seen >= ATTEMPTS
            else error(500)
        )

    calls = make_plan(["good", "bad"])
    with running(script) as server:
        options = options_for(asked, server, "openai_http")
        first, _ = ask_calls(calls, options, tmp_path)
        assert sorted(first["failure"].fillna("answered")) == ["answered", "unavailable"]
        offline = asked({"offline": True}, **options.judges[0].transport.model_dump())
        again, _ = ask_calls(calls, offline, tmp_path)
        assert again.equals(first)
        assert server.total == 1 + ATTEMPTS
        second, attempts = ask_calls(calls, options, tmp_path)
        assert server.total == 2 + ATTEMPTS
    assert second["failure"].isna().all()
    assert len(attempts) == 2 + ATTEMPTS


def test_an_answer_of_ten_megabytes_is_kept_and_a_larger_one_than_allowed_is_not(asked, make_plan, tmp_path):
    with running(lambda request, seen: Behaviour(text="A" + " " * 10_000_000)) as server:
        options = options_for(asked, server, "openai_http")
        answers, _ = ask_calls(make_plan(["x"]), options, tmp_path / "a")
        assert len(answers["text"][0]) == 10_000_001
        small = options_for(asked, server, "openai_http", largest_answer_mb=1)
        answers, _ = ask_calls(make_plan(["x"]), small, tmp_path / "b")
        assert answers["failure"].tolist() == ["error"]


@pytest.mark.parametrize("road", ROADS)
def test_a_planted_key_is_in_nothing_that_a_run_writes(road, asked, make_plan, tmp_path, caplog, capfd):
    key = "sk-planted/0123+456789abcdef"
    leads = (b"", b"x", b"ab", b"user:")
    encoded = [base64.b64encode(lead + key.encode()).decode() for lead in leads]
    forms = [key, "sk-planted%2F0123%2B456789abcdef", key.replace("/", "\\/")]
    fragments = [*forms, *(form[8:30] for form in encoded)]
    echoes = " ".join([*forms, *encoded])

    def script(request, seen):
        headers = {"X-Echo": key, "Set-Cookie": f"k={key}", "X-Request-Id": "kept"}
        if request["messages"][0]["content"] == "error":
            return error(500, echoes, **headers)
        return Behaviour(text=f"A {echoes}", headers=headers)

    with running(script) as server:
        options = options_for(asked, server, road, key_variable="SOME_KEY")
        calls = make_plan(["answer", "error"])
        answers, attempts = ask_calls(calls, options, tmp_path / "store", "run", {"SOME_KEY": key})
    answers.to_csv(tmp_path / "answers.csv")
    attempts.to_csv(tmp_path / "attempts.csv")
    (tmp_path / "log").write_text(caplog.text + "".join(capfd.readouterr()))
    read = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for form in fragments:
        assert not any(form.encode() in content for content in read)
    assert "kept" in attempts["headers"].dropna().iloc[0]


class TestReadingStatuses:
    def test_retry_after_in_the_past_is_no_wait(self):
        assert retry_after({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0.0

    @pytest.mark.parametrize("value", ["", "soon", "nan", "inf", "-"])
    def test_retry_after_that_is_no_time_is_none(self, value):
        assert retry_after({"Retry-After": value}) is None

    def test_a_negative_wait_is_none_at_all(self):
        assert retry_after({"Retry-After": "-5"}) == 0.0

    def test_a_filtered_prompt_with_403_is_a_refusal(self):
        failed = of_status(403, '{"error": {"message": "content policy"}}', {})
        assert isinstance(failed, CallFailure)
        assert failed.failure == "refusal"


class TestLitellmsPriceList:
    """A model that one serves oneself is entered as free, so that litellm does not look for it each time."""

    def test_it_is_known_after_the_first_call_and_changes_no_request(self, asked, make_plan, tmp_path):
        import litellm

        with running(lambda request, seen: Behaviour()) as server:
            plan = make_plan(["x"], model="hosted_vllm/gpt-5-of-mine", reasoning_effort="low")
            answers, _ = ask_calls(plan, options_for(asked, server, "litellm"), tmp_path, "run")
        assert answers["text"].tolist() == ["A"]
        assert litellm.get_model_info("hosted_vllm/gpt-5-of-mine")["input_cost_per_token"] == 0
        sent = server.requests[0]
        assert (sent["model"], sent["reasoning_effort"], sent["seed"]) == ("gpt-5-of-mine", "low", 0)


ODD = {
    "endless usage": Behaviour(reply={"usage": {"prompt_tokens": float("inf"), "completion_tokens": 1}}),
    "usage that is no number": Behaviour(reply={"usage": {"prompt_tokens": float("nan")}}),
    "negative usage": Behaviour(reply={"usage": {"prompt_tokens": -5, "completion_tokens": -1}}),
    "usage of a million digits": Behaviour(
        reply={"usage": {"prompt_tokens": 10**400, "completion_tokens": 1}}
    ),
    "usage as a list": Behaviour(reply={"usage": [1, 2]}),
    "usage as a text": Behaviour(reply={"usage": "12"}),
    "details as a list": Behaviour(
        reply={"usage": {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": [7]}}
    ),
    "log-probabilities as a list": Behaviour(choice={"logprobs": [1]}),
    "log-probabilities of numbers": Behaviour(choice={"logprobs": {"content": [1, None]}}),
    "endless log-probabilities": Behaviour(
        choice={"logprobs": {"content": [{"token": "A", "logprob": -(10**400), "top_logprobs": {"B": -1}}]}}
    ),
    "fields as a list": Behaviour(message={"provider_specific_fields": ["x"]}),
    "a thought as an object": Behaviour(message={"reasoning_content": {"steps": ["B?"]}}),
    "a refusal as an object": Behaviour(message={"refusal": {"because": "x"}}),
    "an unstorable reason to finish": Behaviour(choice={"finish_reason": "st\ud800op"}),
    "an unstorable model": Behaviour(reply={"model": "m\udfff"}),
    "a reason to finish as a number": Behaviour(choice={"finish_reason": 7}),
    "an error of no status": Behaviour(
        "raw", body=b'{"error": {"message": "x", "code": 99999999999999999999999, "at": NaN}}'
    ),
}


class TestOddReplies:
    """Whatever a server puts into a reply, the run goes on, and each call has its answer or its failure."""

    def test_over_openai_http(self, asked, make_plan, tmp_path):
        with running(lambda request, seen: ODD[request["messages"][0]["content"]]) as server:
            options = options_for(asked, server, "openai_http")
            calls = make_plan(list(ODD))
            answers, _ = ask_calls(calls, options, tmp_path)
        answers.index = [dict(zip(calls["call_id"], ODD, strict=True))[name] for name in answers["call_id"]]
        assert answers.loc["an error of no status", "failure"] == "error"
        said = answers.drop("an error of no status")
        assert said["failure"].isna().all()
        assert said["text"].eq("A").all()
        assert answers["prompt_tokens"].dropna().ge(0).all()
        assert answers.loc["an unstorable reason to finish", "finish_reason"] == "st\uffffd800op"
        assert json.loads(answers.loc["endless log-probabilities", "logprobs"])[0]["logprob"] is None

    def test_over_litellm(self, asked, make_plan, tmp_path):
        """litellm refuses some of them itself; what it lets through is read as above."""
        with running(lambda request, seen: ODD[request["messages"][0]["content"]]) as server:
            answers, _ = ask_calls(make_plan(list(ODD)), options_for(asked, server, "litellm"), tmp_path)
        assert answers["text"].eq("A").where(answers["failure"].isna(), True).all()
        assert set(answers["failure"].dropna()) <= {"error", "unavailable"}


@pytest.mark.parametrize("road", ROADS)
class TestKeysThatCannotBeSent:
    def test_a_line_break_behind_a_key_is_not_sent_and_the_key_is_still_redacted(
        self, road, asked, make_plan, tmp_path
    ):
        key = "sk-planted-0123456789"
        with running(lambda request, seen: Behaviour(text=f"A {key}")) as server:
            options = options_for(asked, server, road, key_variable="SOME_KEY")
            answers, _ = ask_calls(make_plan(["x"]), options, tmp_path, keys={"SOME_KEY": f"{key}\n"})
            assert server.request_headers[0]["authorization"] == f"Bearer {key}"
        assert answers["text"].tolist() == ["A [REDACTED]"]

    @pytest.mark.parametrize(
        "key", ["sk-planted\n0123456789", "sk-plänted-0123456789", "sk\x00planted-012345"]
    )
    def test_one_with_odd_characters_stops_before_anything_is_sent(
        self, road, key, asked, make_plan, tmp_path
    ):
        with running() as server:
            options = options_for(asked, server, road, key_variable="SOME_KEY")
            with pytest.raises(AuthenticationFailedError, match="SOME_KEY holds a line break") as stopped:
                ask_calls(make_plan(["x"]), options, tmp_path, keys={"SOME_KEY": key})
            assert server.total == 0
        assert key not in str(stopped.value)


def test_a_pause_longer_than_the_deadline_is_not_waited_for(asked, make_plan, tmp_path):
    """A provider whose day is used up: nobody else is sent, and nobody sleeps until tomorrow."""
    with running(lambda request, seen: error(429, retry_after="86400")) as server:
        options = options_for(asked, server, "openai_http", concurrency=2)
        answers, attempts = ask_calls(make_plan([str(n) for n in range(50)]), options, tmp_path)
        assert server.total <= 2
    assert answers["failure"].eq("rate_limited").all()
    unsent = attempts[attempts["code"].eq("not_sent")]
    assert len(unsent) >= 48
    assert unsent["message"].str.contains("asked for a pause of 86,").all()


def test_a_small_reply_that_unpacks_to_a_huge_one_is_cut_off(asked, make_plan, tmp_path):
    import gzip

    body = gzip.compress(b" " * 50_000_000)
    with running(lambda r, seen: Behaviour("raw", body=body, headers={"Content-Encoding": "gzip"})) as server:
        options = options_for(asked, server, "openai_http", largest_answer_mb=1)
        answers, attempts = ask_calls(make_plan(["x"]), options, tmp_path)
    assert answers["failure"].tolist() == ["error"]
    assert attempts["message"].str.contains("larger than 1 MB").all()


FIELDS = [
    "choices",
    "message",
    "content",
    "refusal",
    "logprobs",
    "token",
    "logprob",
    "top_logprobs",
    "finish_reason",
    "reasoning_content",
    "error",
    "code",
    "usage",
    "prompt_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "provider_specific_fields",
    "model",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(completion=JSON, choice=JSON, message=JSON, usage=JSON)
def test_whatever_json_comes_is_a_reply_that_can_be_stored_or_a_failure(completion, choice, message, usage):
    if isinstance(completion, dict):
        if isinstance(choice, dict):
            choice = {
                "message": {"content": "A", **message} if isinstance(message, dict) else message
            } | choice
        completion = {"choices": [choice], "usage": usage, **completion}
    try:
        reply = reply_of(completion, "body")
    except (CallFailure, Refused):
        return
    for value in (reply.text, reply.reasoning, reply.finish_reason, reply.served_model, reply.logprobs):
        assert value is None or value.encode()
    counts = (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens, reply.reasoning_tokens)
    assert all(count is None or 0 <= count < 2**63 for count in counts)
