"""``hf://`` addresses, against a stand-in for the hub on this machine."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

CONTENT = b'{"question": "q", "response_a": "a", "response_b": "b"}\n'
COMMIT = "0" * 40


class Hub(BaseHTTPRequestHandler):
    """Just enough of the hub's interface for one data set of one file."""

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        file = {"type": "file", "path": "pairs.jsonl", "size": len(CONTENT), "oid": "1" * 40}
        if "/resolve/" in self.path and self.path.endswith("/pairs.jsonl"):
            self._file(self.command == "GET")
        elif "/tree/" in self.path:
            self._json([file])
        elif self.path.startswith("/api/datasets/owner/name"):
            self._json(
                {"id": "owner/name", "sha": COMMIT, "siblings": [{"rfilename": "pairs.jsonl"}], "tags": []}
            )
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        file = {"type": "file", "path": "pairs.jsonl", "size": len(CONTENT), "oid": "1" * 40}
        self._json([file] if "pairs.jsonl" in asked else [])

    def _file(self, with_body: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.send_header("ETag", '"1"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            self.wfile.write(CONTENT)

    def log_message(self, *args: object) -> None:
        pass


READ = """
import sys
from judge_calibration.sources import SourceFile, read_pairs
try:
    read = read_pairs([SourceFile(path=sys.argv[1], layout="pairs")])
    print("ROWS", len(read.pairs), read.source_files.loc[0, "path"])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def run(url: str, endpoint: str, home: str) -> str:
    # The hub's address is read when its package is imported, hence a process of its own.
    proxies = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    env = {k: v for k, v in os.environ.items() if k not in proxies}
    env |= {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": home,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", READ, url], capture_output=True, text=True, env=env, timeout=60
    )
    return done.stdout + done.stderr


def test_a_file_of_a_data_set(hub, tmp_path):
    url = "hf://datasets/owner/name/pairs.jsonl"
    assert f"ROWS 1 {url}" in run(url, hub, str(tmp_path))


def test_a_pattern(hub, tmp_path):
    assert "ROWS 1 hf://datasets/owner/name/pairs.jsonl" in run(
        "hf://datasets/owner/name/*.jsonl", hub, str(tmp_path)
    )


@pytest.mark.parametrize(
    "url", ["hf://datasets/owner/other/pairs.jsonl", "hf://datasets/owner/name/none.jsonl"]
)
def test_what_is_not_there_is_told(hub, tmp_path, url):
    told = run(url, hub, str(tmp_path))
    assert told.startswith("SourceError")
    assert url in told


def test_no_hub_is_told(tmp_path):
    told = run("hf://datasets/owner/name/pairs.jsonl", "http://127.0.0.1:9", str(tmp_path))
    assert told.startswith("SourceError")
    assert "the network" in told
