"""Speak to a running Label Studio through its SDK; run by the interpreter of Label Studio's own environment.

Reads one JSON command from standard input and writes one JSON answer to standard output:

- ``{"do": "users", "url", "token", "people": [{"email", "password"}]}`` creates the people and answers
  ``{"users": [{"email", "id", "token"}]}``.
- ``{"do": "label", "url", "token", "title", "config", "tasks", "answers"}`` creates a project, imports the
  tasks, labels them as the token's owner and answers ``{"project", "export"}``. An answer is a list of steps
  a task: ``{"result": [...]}``, ``{"skip": true}`` or ``{"update": [...]}`` (changes the step before).
"""

import json
import re
import sys
from typing import Any

import requests
from label_studio_sdk import LabelStudio


def token_of(url: str, email: str, password: str) -> str:
    """Sign in as a person does and return the person's API token."""
    session = requests.Session()
    page = session.get(f"{url}/user/login/", timeout=60)
    field = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    if field is None:
        raise SystemExit("the sign-in page of Label Studio has no form")
    form = {"csrfmiddlewaretoken": field.group(1), "email": email, "password": password}
    session.post(f"{url}/user/login/", data=form, headers={"Referer": f"{url}/user/login/"}, timeout=60)
    answer = session.get(f"{url}/api/current-user/token", timeout=60)
    answer.raise_for_status()
    return str(answer.json()["token"])


def create_users(command: dict[str, Any]) -> dict[str, Any]:
    """Create the people and give them a password."""
    client = LabelStudio(base_url=command["url"], api_key=command["token"])
    users = []
    for person in command["people"]:
        head = {"Authorization": f"Token {command['token']}"}
        invitation = requests.get(f"{command['url']}/api/invite", headers=head, timeout=60).json()[
            "invite_url"
        ]
        session = requests.Session()
        page = session.get(f"{command['url']}{invitation}", timeout=60)
        field = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        if field is None:
            raise SystemExit("the sign-up page of Label Studio has no form")
        form = {"csrfmiddlewaretoken": field.group(1), **person}
        session.post(page.url, data=form, headers={"Referer": page.url}, timeout=60)
        users.append({"email": person["email"], "token": token_of(command["url"], **person)})
    known = {user.email: user.id for user in client.users.list()}
    return {"users": [user | {"id": known[user["email"]]} for user in users]}


def label(command: dict[str, Any]) -> dict[str, Any]:
    """Create a project, label its tasks, export it."""
    client = LabelStudio(base_url=command["url"], api_key=command["token"])
    project = client.projects.create(title=command["title"], label_config=command["config"])
    client.projects.import_tasks(id=project.id, request=command["tasks"], return_task_ids=True)
    tasks = {task.data["packet_id"]: task.id for task in client.tasks.list(project=project.id, fields="all")}
    for packet_id, steps in command["answers"].items():
        last = None
        for step in steps:
            if "update" in step:
                client.annotations.update(id=last, result=step["update"])
            elif step.get("skip"):
                client.annotations.create(id=tasks[packet_id], result=[], was_cancelled=True)
            else:
                last = client.annotations.create(id=tasks[packet_id], result=step["result"]).id
    export = requests.get(
        f"{command['url']}/api/projects/{project.id}/export",
        params={"exportType": "JSON", "download_all_tasks": "true"},
        headers={"Authorization": f"Token {command['token']}"},
        timeout=300,
    )
    export.raise_for_status()
    return {"project": project.id, "export": export.json()}


if __name__ == "__main__":
    told = json.load(sys.stdin)
    json.dump({"users": create_users, "label": label}[told["do"]](told), sys.stdout)
