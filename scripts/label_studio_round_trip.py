"""Take a round of labelling through the real Label Studio and through spreadsheets, and compare the labels.

Installs Label Studio 1.23 in an environment of its own (in the user's cache folder), starts it on 127.0.0.1
with SQLite in a temporary folder, creates projects through its SDK, labels as two annotators and an
adjudicator, exports, imports, compares, and stops it. Run by ``make test-labelstudio``.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from openpyxl import load_workbook

from judge_calibration.bank import build_pairs, load_bank
from judge_calibration.labelling.adjudication import queue_disagreements, settle_labels
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.importing import check_rows, read_label_files
from judge_calibration.labelling.label_studio import labelling_config, tasks
from judge_calibration.labelling.packets import make_packets, primary_packets
from judge_calibration.labelling.planning import plan_round
from judge_calibration.labelling.spreadsheets import packets_as_csv, packets_as_xlsx
from judge_calibration.options.annotation import AnnotationOptions, ImportOptions

ROOT = Path(__file__).resolve().parents[1]
CLIENT = Path(__file__).with_name("label_studio_client.py")
WANTED = "label-studio==1.23.*"
PEOPLE = ("annotator_1", "annotator_2", "adjudicator_1")
COMPARED = ["pair_id", "annotator_id", "label", "reason_codes", "order", "stage", "slot", "kind", "comment"]


def say(text: str) -> None:
    """Tell what is going on."""
    print(f"label studio: {text}", flush=True)


def install(folder: Path) -> Path:
    """Return the interpreter of an environment that holds Label Studio, made if it is not there."""
    python = folder / "bin" / "python"
    stamp = folder / ".installed"
    if not stamp.is_file():
        say(f"installing {WANTED} in {folder}")
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", WANTED]
        subprocess.run(command, check=True)  # noqa: S603
        stamp.write_text(WANTED)
    return python


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def health(url: str) -> bool:
    """Return whether the server answers."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def server(python: Path, folder: Path, owner: dict[str, str], token: str) -> Iterator[str]:
    """Run Label Studio on 127.0.0.1 and yield its address; it is stopped at the end, whatever happens."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    quiet = {
        "COLLECT_ANALYTICS": "False",
        "LATEST_VERSION_CHECK": "False",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "DJANGO_DB": "sqlite",
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
    }
    command = [str(python.with_name("label-studio")), "start", "--no-browser", "--data-dir", str(folder)]
    command += ["--internal-host", "127.0.0.1", "--port", str(port), "--enable-legacy-api-token"]
    command += ["--username", owner["email"], "--password", owner["password"], "--user-token", token]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, env=os.environ | quiet, stdout=log, stderr=subprocess.STDOUT)  # noqa: S603
        try:
            until = time.monotonic() + 600
            while not health(url):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(
                        "Label Studio did not start:\n" + (folder / "server.log").read_text()[-3000:]
                    )
                time.sleep(1)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(python: Path, command: dict[str, Any]) -> dict[str, Any]:
    """Give the client one command and return its answer."""
    done = subprocess.run(  # noqa: S603
        [str(python), str(CLIENT)], input=json.dumps(command), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the client of Label Studio failed:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def decide(key: RoundKey, packet_id: str) -> dict[str, Any]:
    """Return what is answered to one packet: the same through every tool."""
    label = ("A", "B", "TIE", "ABSTAIN")[int(key.uniform("label", packet_id) ** 1.5 * 4)]
    reasons = []
    if label in "AB":
        names = [
            "instruction_following",
            "correctness",
            "citation_support",
            "completeness",
            "clarity",
            "style",
        ]
        reasons = [names[int(key.uniform("reason", packet_id) * 6)]]
        if key.uniform("second", packet_id) < 0.3:
            reasons = sorted({*reasons, "clarity"}, key=names.index)
    comment = "=A1+1, naïve “quotes”; 数字" if key.uniform("comment", packet_id) < 0.2 else None
    return {"label": label, "reasons": reasons, "comment": comment}


def as_result(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an answer as Label Studio's screen saves it."""
    out = [{"from_name": "overall", "type": "choices", "value": {"choices": [answer["label"]]}}]
    if answer["reasons"]:
        out.append({"from_name": "reason_codes", "type": "choices", "value": {"choices": answer["reasons"]}})
    if answer["comment"]:
        out.append({"from_name": "comment", "type": "textarea", "value": {"text": [answer["comment"]]}})
    return [part | {"to_name": "question"} for part in out]


def as_steps(key: RoundKey, packet_id: str) -> list[dict[str, Any]]:
    """Return how a person gets to the answer: at once, by a correction, after a skip, or twice."""
    final = as_result(decide(key, packet_id))
    way = key.uniform("way", packet_id)
    if way < 0.1:
        return [{"result": as_result({"label": "TIE", "reasons": [], "comment": None})}, {"update": final}]
    if way < 0.2:
        return [{"skip": True}, {"result": final}]
    if way < 0.3:
        return [{"result": final}, {"result": final}]
    return [{"result": final}]


def fill_csv(data: bytes, key: RoundKey) -> bytes:
    """Fill a sheet in as a person would, and save it as another program does."""
    table = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    place = {name: i for i, name in enumerate(table[0])}
    for row in table[1:]:
        answer = decide(key, row[place["packet_id"]])
        row[place["label"]], row[place["comment"]] = answer["label"], answer["comment"] or ""
        row[place["reason_codes"]] = "; ".join(answer["reasons"])
    out = io.StringIO()
    csv.writer(out, delimiter=";").writerows(table)
    return out.getvalue().encode("utf-16")


def fill_xlsx(data: bytes, key: RoundKey) -> bytes:
    """Fill a workbook in."""
    book = load_workbook(io.BytesIO(data))
    sheet = book["labels"]
    place = {cell.value: cell.column for cell in sheet[1]}
    for number in range(2, sheet.max_row + 1):
        answer = decide(key, str(sheet.cell(number, place["packet_id"]).value))
        sheet.cell(number, place["label"]).value = answer["label"]
        sheet.cell(number, place["reason_codes"]).value = "; ".join(answer["reasons"]) or None
        comment = sheet.cell(number, place["comment"])
        comment.value = answer["comment"]
        comment.data_type = "s"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


class Round:
    """The round that is taken through both tools."""

    def __init__(self, n_pairs: int, bank: Path) -> None:
        self.pairs = build_pairs(load_bank(bank))
        everything = [
            "ordinary", "medical", "legal", "financial", "employment", "safety", "access",
        ]  # fmt: skip
        self.options = AnnotationOptions.model_validate(
            {
                "round_id": "round-trip",
                "annotators": [
                    {"code": PEOPLE[0], "stakes": everything, "adjudicates": False},
                    {"code": PEOPLE[1], "stakes": everything, "adjudicates": False},
                    {"code": PEOPLE[2], "stakes": everything, "labels": False},
                ],
                "draw": {"mode": "pairs", "pairs": n_pairs},
            }
        )
        self.key = RoundKey(secrets.token_hex(16), "round-trip")
        self.plan, self.unblinding, _ = plan_round(self.pairs, self.options, self.key)
        self.packets = primary_packets(self.pairs, self.unblinding)

    def own(self, packets: pd.DataFrame, code: str) -> pd.DataFrame:
        """Return one person's packets."""
        return packets[packets["annotator_id"] == self.key.pseudonym(code)]

    def take_in(self, files: list[Path], identities: Path | None) -> pd.DataFrame:
        """Return the labels of the files."""
        declared = ImportOptions.model_validate(
            {
                "files": [{"path": str(path)} for path in files],
                "identities": str(identities) if identities else None,
            }
        )
        options = self.options.model_copy(update={"labels": declared})
        rows = read_label_files(declared, options.codes)
        packets = make_packets(self.pairs, self.unblinding)
        return check_rows(rows, self.unblinding, packets, options, self.key).labels

    def queue(self, labels: pd.DataFrame) -> pd.DataFrame:
        """Return what waits for the adjudicator."""
        return queue_disagreements(self.pairs, self.unblinding, labels)


def through_label_studio(a_round: Round, python: Path, url: str, token: str, folder: Path) -> pd.DataFrame:
    """Return the labels that come back from Label Studio."""
    people = [{"email": f"{code}@example.org", "password": secrets.token_hex(12)} for code in PEOPLE]
    users = ask(python, {"do": "users", "url": url, "token": token, "people": people})["users"]
    identities = folder / "identities.csv"
    with identities.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["known_as", "annotator"])
        for code, user in zip(PEOPLE, users, strict=True):
            writer.writerows([[user["email"], code], [user["id"], code]])
    files: list[Path] = []

    def label(code: str, packets: pd.DataFrame) -> None:
        own = a_round.own(packets, code)
        user = users[PEOPLE.index(code)]
        command = {"do": "label", "url": url, "token": user["token"], "title": f"Round of {code}"}
        command |= {"config": labelling_config(), "tasks": tasks(own)}
        command["answers"] = {packet: as_steps(a_round.key, packet) for packet in own["packet_id"]}
        answer = ask(python, command)
        files.append(folder / f"{code}.json")
        files[-1].write_text(json.dumps(answer["export"]))
        say(f"{code} labelled {len(own)} tasks in project {answer['project']}")

    for code in PEOPLE[:2]:
        label(code, a_round.packets)
    label(PEOPLE[2], a_round.queue(a_round.take_in(files, identities)))
    return a_round.take_in(files, identities)


def through_spreadsheets(a_round: Round, folder: Path) -> pd.DataFrame:
    """Return the labels that come back from spreadsheets: a CSV in UTF-16, a workbook, another CSV."""
    files = [folder / "annotator_1.csv", folder / "annotator_2.xlsx", folder / "adjudicator_1.csv"]
    first, second = (a_round.own(a_round.packets, code) for code in PEOPLE[:2])
    files[0].write_bytes(fill_csv(packets_as_csv(first), a_round.key))
    files[1].write_bytes(fill_xlsx(packets_as_xlsx(second), a_round.key))
    queue = a_round.queue(a_round.take_in(files[:2], None))
    files[2].write_bytes(fill_csv(packets_as_csv(queue), a_round.key))
    return a_round.take_in(files, None)


def main() -> int:
    """Run both roads and compare."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "judge-calibration"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200, help="how many pairs of the bank")
    parser.add_argument(
        "--bank", type=Path, default=ROOT / "data" / "01_raw" / "pair_bank", help="folder of the pair bank"
    )
    parser.add_argument(
        "--environment", type=Path, default=cache / "label-studio-1.23", help="where it is installed"
    )
    parser.add_argument("--keep-running", action="store_true", help="wait for Enter before the server stops")
    given = parser.parse_args()
    python = install(given.environment)
    a_round = Round(given.pairs, given.bank)
    say(f"a round of {a_round.plan['pair_id'].nunique()} pairs, {len(a_round.packets)} packets")
    with tempfile.TemporaryDirectory(prefix="label-studio-") as name:
        folder = Path(name)
        by_sheet = through_spreadsheets(a_round, folder)
        owner = {"email": "owner@example.org", "password": secrets.token_hex(12)}
        token = secrets.token_hex(20)
        data = folder / "server"
        data.mkdir()
        with server(python, data, owner, token) as url:
            say(f"it runs at {url}")
            by_tool = through_label_studio(a_round, python, url, token, folder)
            if given.keep_running:
                input(f"{url}  {owner['email']}  {owner['password']}\nEnter stops it. ")
    pd.testing.assert_frame_equal(by_tool[COMPARED], by_sheet[COMPARED])
    settled = [
        settle_labels(a_round.plan, labels, a_round.options.adjudication) for labels in (by_tool, by_sheet)
    ]
    pd.testing.assert_frame_equal(*settled)
    rules = settled[0]["rule"].value_counts().to_dict()
    say(f"the same {len(by_tool)} labels came back through Label Studio and through spreadsheets; {rules}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
