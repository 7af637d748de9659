"""JupyterLab, started on a copy as a reader starts it, and Chromium to look at it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from playwright.sync_api import Browser, sync_playwright

from utils import run

BUILD = run.ROOT / "build" / "browser"
COPY = BUILD / "copy"
START_SECONDS = 120
CONFIGURATION = {
    "jupyter_server_config.json": {
        "ServerApp": {"open_browser": False, "port_retries": 0, "root_dir": str(COPY)}
    },
    # JupyterLab asks a new user whether it may fetch news, in a box that hides part of the page.
    "labconfig/default_setting_overrides.json": {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}
    },
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lesson", default="", help="numbers of the lessons, all if left out")
    parser.addoption("--params", default="", help='for example "epochs=20 seed=1"')


def pytest_configure(config: pytest.Config) -> None:
    if not shutil.which("chromium"):
        raise pytest.UsageError("There is no Chromium here; on Debian: apt install chromium")
    try:
        config.lessons = run.find_lessons(config.getoption("lesson"))
        config.parameters = run.parse_parameters(config.getoption("params"))
        for lesson in config.lessons:
            run.check_parameters(lesson, config.parameters)
    except run.Refusal as refusal:
        raise pytest.UsageError(str(refusal)) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "lesson" in metafunc.fixturenames:
        lessons = metafunc.config.lessons
        metafunc.parametrize("lesson", lessons, ids=lambda p: p.stem, scope="module")


@pytest.fixture(scope="session")
def address(pytestconfig: pytest.Config) -> Iterator[str]:
    """Run ``make lab``, without a terminal, and return the address that it prints.

    It serves a copy of the notebooks, because JupyterLab saves what it runs.
    """
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(run.LESSONS, COPY / "notebooks")
    if pytestconfig.parameters:
        for lesson in pytestconfig.lessons:
            notebook = load_notebook_node(str(lesson))
            changed = parameterize_notebook(notebook, pytestconfig.parameters)
            nbformat.write(changed, COPY / "notebooks" / lesson.name)
    settings = BUILD / "settings"
    shutil.rmtree(settings, ignore_errors=True)
    for name, content in CONFIGURATION.items():
        (settings / name).parent.mkdir(parents=True, exist_ok=True)
        (settings / name).write_text(json.dumps(content))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    own = {"JUPYTER_CONFIG_DIR": str(settings), "JUPYTER_PORT": str(port), "JUPYTER_TOKEN": token}
    log = BUILD / "lab.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            ["make", "lab"],
            cwd=run.ROOT,
            env=os.environ | own,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield wait_for_address(server, log, port) + f"?token={token}"
    finally:
        server.terminate()  # make hands it on
        server.wait(timeout=30)


def wait_for_address(server: subprocess.Popen[bytes], log: Path, port: int) -> str:
    """Return the address in the server's log, without its token."""
    for _ in range(START_SECONDS):
        found = re.search(rf"http://127\.0\.0\.1:{port}/[^?\s]*", log.read_text())
        if found:
            return found[0]
        if server.poll() is not None:
            break
        time.sleep(1)
    pytest.exit(f"`make lab` did not start JupyterLab; {log} says why.", returncode=1)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        yield browser
        browser.close()
