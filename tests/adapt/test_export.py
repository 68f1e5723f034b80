"""Training files for providers, and a whole job against a scripted provider on the loopback interface."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest

from judge_calibration.adapt import export
from judge_calibration.adapt.export import Provider, ProviderError, conversations, main, to_jsonl
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.options.judging import JudgeSpec
from judge_calibration.options.sft import TrainingRun

KEY = "sk-planted-fine-tuning-0001"


@pytest.fixture
def pairs():
    return pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(6)],
            "base_id": [f"b{i}" for i in range(6)],
            "source": "s",
            "split": "train",
            "manipulation": None,
            "question": ["Line one\nline two\u2028 \u202eleft?"] * 6,
            "response_a": [f"Yes {i}" for i in range(6)],
            "response_b": [f'No "{i}"\r\n' for i in range(6)],
            "reference_label": ["A", "B"] * 3,
            "content_hash": [f"h{i}" for i in range(6)],
        }
    )


def test_a_pair_that_is_held_out_under_another_name_is_not_exported(pairs):
    subsets = training_subsets(pairs, (4,))
    first = subsets.sort_values("rank")["pair_id"].iloc[0]
    run = TrainingRun(source="s", budget=4)
    judge = JudgeSpec(judge_id="j", model="openai/m", protocols=("direct",))
    place = {"pair_id": "t0", "base_id": "c0", "source": "t", "split": "test", "question": "Another?"}
    same = pairs[pairs["pair_id"] == first].assign(**place)
    for content_hash, rows in (("unlike", 8), (same["content_hash"].iloc[0], 6)):
        every = pd.concat([pairs, same.assign(content_hash=content_hash)])
        assert len(conversations(every, subsets, run, judge)) == rows


@pytest.fixture
def written(pairs, tmp_path):
    """The options that name both tables."""
    pairs.to_parquet(tmp_path / "pairs.parquet")
    training_subsets(pairs).to_parquet(tmp_path / "subsets.parquet")
    return ["--pairs", str(tmp_path / "pairs.parquet"), "--subsets", str(tmp_path / "subsets.parquet")]


JUDGE = JudgeSpec.model_validate({"judge_id": "j", "model": "openai/m", "protocols": ["direct"]})


class TestFiles:
    def test_both_orders_with_the_right_reply_last(self, pairs):
        rows = conversations(pairs, training_subsets(pairs), TrainingRun(source="s", budget=2), JUDGE)
        assert len(rows) == 4
        for row in rows:
            roles = [message["role"] for message in row["messages"]]
            assert roles == ["system", "user", "assistant"]
        replies = [row["messages"][-1]["content"] for row in rows]
        assert replies[0] != replies[1]
        assert replies[2] != replies[3]

    def test_a_line_is_a_conversation_whatever_the_text(self, pairs):
        rows = conversations(pairs, training_subsets(pairs), TrainingRun(source="s", budget="full"), JUDGE)
        content = to_jsonl(rows)
        lines = content.decode("utf-8").splitlines()
        assert [json.loads(line) for line in lines] == rows

    def test_other_protocols_are_refused(self, pairs):
        judge = JudgeSpec.model_validate({"judge_id": "j", "model": "openai/m", "protocols": ["json_cot"]})
        with pytest.raises(ProviderError, match="only replies of the protocol direct"):
            conversations(pairs, training_subsets(pairs), TrainingRun(source="s"), judge)

    def test_the_step_writes_a_file_with_its_checksum(self, pairs, tmp_path, capsys):
        pairs.to_parquet(tmp_path / "pairs.parquet")
        training_subsets(pairs).to_parquet(tmp_path / "subsets.parquet")
        out = tmp_path / "train.jsonl"
        files = ["--pairs", str(tmp_path / "pairs.parquet"), "--subsets", str(tmp_path / "subsets.parquet")]
        assert main(["write", *files, "--source", "s", "--budget", "4", "--out", str(out)]) == 0
        assert "8 conversations (4 pairs in both orders)" in capsys.readouterr().out
        assert len(out.read_text().splitlines()) == 8
        assert (tmp_path / "train.jsonl.sha256").is_file()

    def test_a_wrong_source_is_one_message(self, written, tmp_path, capsys):
        assert main(["write", *written, "--source", "x", "--out", str(tmp_path / "t.jsonl")]) == 2
        assert "source x" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("option", "value", "said"),
        [
            ("--budget", "lots", "found 'lots'; wanted a whole number from 2, or full"),
            ("--budget", "-5", "found '-5'; wanted a whole number from 2, or full"),
            ("--budget", "1", "found '1'"),
            ("--resample", "-1", "found '-1'; wanted a whole number from 0"),
            ("--pairs", "no/such.parquet", "no such file: no/such.parquet"),
            ("--subsets", "no/such.parquet", "no such file"),
            ("--judge", "no/such.yml", "no such file"),
        ],
    )
    def test_a_wrong_option_is_one_line(self, written, tmp_path, capsys, option, value, said):
        out = tmp_path / "t.jsonl"
        with pytest.raises(SystemExit) as ended:
            main(["write", *written, "--out", str(out), f"{option}={value}"])
        assert ended.value.code == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert f"error: argument {option}" in last
        assert said in last
        assert not out.exists()

    @pytest.mark.parametrize("option", ["--pairs", "--subsets", "--judge"])
    def test_a_file_of_another_kind_is_told(self, written, tmp_path, capsys, option):
        (tmp_path / "other").write_bytes(b"{no\xff")
        out = str(tmp_path / "t.jsonl")
        assert main(["write", *written, "--out", out, option, str(tmp_path / "other")]) == 2
        assert f"{option} {tmp_path / 'other'}: found" in capsys.readouterr().err

    def test_a_table_of_another_artifact_is_told(self, written, tmp_path, capsys):
        out = str(tmp_path / "t.jsonl")
        assert main(["write", *written, "--out", out, "--pairs", written[3]]) == 2
        assert "a table without split, question" in capsys.readouterr().err

    def test_the_prompt_is_that_of_the_judge_in_the_file(self, written, tmp_path, capsys):
        judge, out = tmp_path / "judge.yml", tmp_path / "t.jsonl"
        judge.write_text(
            "{judge_id: mine, model: openai/m, protocols: [direct], system_prompt: Judge as I do.}"
        )
        assert main(["write", *written, "--out", str(out), "--judge", str(judge)]) == 0
        first = json.loads(out.read_text().splitlines()[0])["messages"][0]
        assert first["role"] == "system"
        assert first["content"].startswith("Judge as I do.")

    @pytest.mark.parametrize(
        ("said", "wanted"),
        [
            ("{judge_id: mine, model: openai/m, protocol: [direct]}", "protocol"),
            ("{judge_id: mine, model: openai/m, protocols: [json_cot]}", "direct, whose reply is a label"),
            ("just words", "judge.yml"),
        ],
    )
    def test_a_judge_that_cannot_be_trained_is_told(self, written, tmp_path, capsys, said, wanted):
        judge, out = tmp_path / "judge.yml", tmp_path / "t.jsonl"
        judge.write_text(said)
        assert main(["write", *written, "--out", str(out), "--judge", str(judge)]) == 2
        assert wanted in capsys.readouterr().err

    def test_a_file_that_is_no_training_file_is_not_sent(self, tmp_path, capsys):
        (tmp_path / "t.jsonl").write_text('{"prompt": "x"}\n')
        assert main(["start", "--file", str(tmp_path / "t.jsonl"), "--model", "openai/m"]) == 2
        assert "no training file" in capsys.readouterr().err


class ScriptedProvider(BaseHTTPRequestHandler):
    """Takes a file, then a job, and says other things each time it is asked how the job stands."""

    def log_message(self, *_):
        pass

    def answer(self, content, status=200):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def job(self, status, **more):
        return {
            "id": "ftjob-1",
            "object": "fine_tuning.job",
            "created_at": 1,
            "model": "m-2026-01-15",
            "organization_id": "o",
            "result_files": [],
            "seed": 1,
            "status": status,
            "training_file": "file-1",
            "validation_file": None,
            "fine_tuned_model": None,
            "finished_at": None,
            "trained_tokens": None,
            "hyperparameters": {"n_epochs": 3},
            "error": None,
            **more,
        }

    def do_POST(self):
        server = self.server
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        server.seen.append((self.path, self.headers.get("Authorization"), raw))
        if server.refuse and server.refuse in self.path:
            error = {"message": f"bad request of {KEY}", "type": "invalid_request_error"}
            self.answer({"error": error}, 400)
        elif self.path.endswith("/files"):
            self.answer(
                {
                    "id": "file-1",
                    "object": "file",
                    "bytes": len(raw),
                    "created_at": 1,
                    "filename": "train.jsonl",
                    "purpose": "fine-tune",
                    "status": "processed",
                }
            )
        else:
            self.answer(self.job("validating_files"))

    def do_GET(self):
        said = self.server.script.pop(0)
        self.answer(self.job(said[0], **said[1]))


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setenv("PLANTED_KEY", KEY)
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedProvider)
    server.seen, server.script, server.refuse = [], [], None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    yield server
    server.shutdown()
    server.server_close()


def where(provider):
    return ["--api-base", provider.address, "--key-variable", "PLANTED_KEY", "--price-per-million", "25"]


@pytest.fixture
def training_file(tmp_path, pairs):
    path = tmp_path / "train.jsonl"
    run = TrainingRun(source="s", budget=2)
    path.write_bytes(to_jsonl(conversations(pairs, training_subsets(pairs), run, JUDGE)))
    return path


class TestAJob:
    def test_the_file_is_sent_and_the_job_started(self, provider, training_file, capsys):
        start = ["start", "--file", str(training_file), "--model", "openai/m-2026-01-15", "--epochs", "3"]
        assert main([*start, *where(provider)]) == 0
        said = capsys.readouterr().out
        assert "Job ftjob-1: validating_files" in said
        assert "in the currency of the price" in said
        (files, key, upload), (jobs, _, job) = provider.seen
        assert files.endswith("/files")
        assert key == f"Bearer {KEY}"
        assert training_file.read_bytes() in upload
        assert b"fine-tune" in upload
        assert jobs.endswith("/fine_tuning/jobs")
        asked = json.loads(job)
        assert asked["model"] == "m-2026-01-15"
        assert asked["training_file"] == "file-1"
        assert asked["hyperparameters"]["n_epochs"] == 3
        assert asked["seed"] == 1

    def test_waiting_ends_with_the_model_of_the_new_judge(self, provider, capsys, monkeypatch):
        done = {"fine_tuned_model": "ft:m-2026-01-15:o::1", "trained_tokens": 2_000_000}
        provider.script = [("queued", {}), ("running", {}), ("running", {}), ("succeeded", done)]
        monkeypatch.setattr(export.time, "sleep", lambda _: None)
        monkeypatch.setattr(Provider.wait, "__defaults__", (0.0, 10.0, lambda job: None, lambda _: None))
        assert main(["status", "--job", "ftjob-1", "--wait", *where(provider)]) == 0
        said = capsys.readouterr().out
        assert said.count("running") == 1
        assert "2,000,000 tokens trained, 50.00 in the currency" in said
        assert "The judge's model: openai/ft:m-2026-01-15:o::1" in said

    def test_a_failed_job_says_why(self, provider):
        provider.script = [
            ("failed", {"error": {"code": "x", "message": "line 3 is no chat", "param": None}})
        ]
        one = Provider("openai", provider.address, "PLANTED_KEY")
        with pytest.raises(ProviderError, match="ftjob-1 failed: line 3 is no chat"):
            one.wait("ftjob-1", sleep=lambda _: None)

    def test_a_job_that_takes_too_long_is_left_alone(self, provider):
        provider.script = [("running", {})] * 4
        one = Provider("openai", provider.address, "PLANTED_KEY")
        with pytest.raises(ProviderError, match="still running after 2 s"):
            one.wait("ftjob-1", every_s=1, most_s=2, sleep=lambda _: None)

    @pytest.mark.parametrize(
        ("refused", "said"), [("/files", "took no file"), ("/jobs", "file file-1 is there")]
    )
    def test_a_refusal_is_told_without_the_key(self, provider, training_file, refused, said):
        provider.refuse = refused
        one = Provider("openai", provider.address, "PLANTED_KEY")
        with pytest.raises(ProviderError, match=said) as caught:
            one.start(training_file, "openai/m", None, 1)
        assert KEY not in str(caught.value)

    def test_no_key_is_said_before_anything_is_sent(self, provider, training_file, monkeypatch, capsys):
        monkeypatch.delenv("PLANTED_KEY")
        assert main(["start", "--file", str(training_file), "--model", "openai/m", *where(provider)]) == 4
        assert "PLANTED_KEY holds no key" in capsys.readouterr().err
        assert provider.seen == []
