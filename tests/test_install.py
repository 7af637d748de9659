"""utils/install.py: the Pythons it refuses, and what it takes for a whole environment."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "utils" / "install.py"


@pytest.fixture
def install(tmp_path: Path) -> ModuleType:
    """The script as a module, working on a repository in a temporary folder."""
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = str(tmp_path)
    module.VENV = str(tmp_path / ".venv")
    module.PYTHON = str(tmp_path / ".venv" / "bin" / "python")
    module.STAMP = str(tmp_path / ".venv" / "installed.json")
    for name in module.INPUTS:
        (tmp_path / name).write_text("")
    return module


@pytest.fixture
def commands(install, monkeypatch) -> list[list[str]]:
    """Record commands instead of running them; making the environment makes its folder."""
    done: list[list[str]] = []

    def record(command: list[str], **_: object) -> None:
        done.append(command)
        if "venv" in command:
            Path(install.VENV).mkdir()

    state = {"python": "3.11", "missing": [], "packages": ["numpy==2.0"]}
    monkeypatch.setattr(install.subprocess, "check_call", record)
    monkeypatch.setattr(install, "probe", lambda: dict(state) if done else None)
    return done


@pytest.mark.parametrize("version", [(2, 7), (3, 9), (3, 14)])
def test_python_outside_the_range_is_refused(install, monkeypatch, version) -> None:
    monkeypatch.setattr(install.sys, "version_info", (*version, 0, "final", 0))
    with pytest.raises(SystemExit) as refusal:
        install.check_python()
    message = str(refusal.value)
    assert f"is Python {version[0]}.{version[1]}" in message
    assert "Python 3.10 to 3.13" in message and "\n" not in message


def test_python_without_venv_is_refused(install, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit, match="has no venv module"):
        install.check_python()


def test_script_has_nothing_that_an_old_python_cannot_read() -> None:
    # Compiled by Python 3.6's grammar; f-strings and annotations would pass that, so look for them.
    compile(SCRIPT.read_text(), str(SCRIPT), "exec", flags=0x400, dont_inherit=True)
    import ast

    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 6))
    modern = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr)
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, modern)] == []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert all(f.returns is None for f in functions)
    assert all(a.annotation is None for f in functions for a in f.args.args)


def test_first_time_makes_and_installs_then_nothing(install, commands) -> None:
    install.install("requirements.txt")
    assert [c[1:3] for c in commands] == [["-m", "venv"], ["-m", "pip"]]
    install.install("requirements.txt")
    assert len(commands) == 2


def test_more_requirements_are_added_to_the_same_environment(install, commands) -> None:
    Path(install.ROOT, "requirements-more.txt").write_text("")
    install.install("requirements.txt")
    install.install("requirements-more.txt")
    assert [c[1:3] for c in commands[2:]] == [["-m", "pip"]]
    assert commands[2][-4:] == [
        "--requirement",
        "requirements-more.txt",
        "--requirement",
        "requirements.txt",
    ]


@pytest.mark.parametrize("name", ["constraints.txt", "requirements-teacher.txt"])
def test_changed_requirements_are_installed_again(install, commands, name) -> None:
    # A maintainer's requirements include a teacher's, so a change there must be noticed.
    install.install("requirements.txt")
    Path(install.ROOT, name).write_text("numpy==2.1")
    install.install("requirements.txt")
    assert [c[1:3] for c in commands[2:]] == [["-m", "pip"]]


@pytest.mark.parametrize("breakage", ["no stamp", "half a stamp", "package gone", "other python"])
def test_broken_environment_is_made_anew(install, commands, breakage) -> None:
    install.install("requirements.txt")
    stamp = Path(install.STAMP)
    if breakage == "no stamp":
        stamp.unlink()
    elif breakage == "half a stamp":
        stamp.write_text(stamp.read_text()[:20])
    else:
        content = json.loads(stamp.read_text())
        if breakage == "package gone":
            content["packages"].append("tensorflow==2.21.0")
        else:
            content["python"] = "3.10"
        stamp.write_text(json.dumps(content))
    install.install("requirements.txt")
    assert [c[1:3] for c in commands[2:]] == [["-m", "venv"], ["-m", "pip"]]


def test_failed_installation_leaves_no_stamp(install, commands, monkeypatch) -> None:
    def fail(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command)

    install.install("requirements.txt")
    Path(install.ROOT, "constraints.txt").write_text("no-such-package==1")
    monkeypatch.setattr(install.subprocess, "check_call", fail)
    with pytest.raises(subprocess.CalledProcessError):
        install.install("requirements.txt")
    assert not Path(install.STAMP).exists()


@pytest.mark.parametrize("who", ["learner", "teacher", "maintainer"])
def test_each_set_up_has_its_requirements(who) -> None:
    # --dry-run prints the command; it neither makes nor installs anything.
    command = ["make", "--dry-run", "--no-print-directory", f"setup-{who}"]
    printed = subprocess.run(command, cwd=SCRIPT.parent.parent, capture_output=True, text=True)
    name = "requirements.txt" if who == "learner" else f"requirements-{who}.txt"
    assert printed.stdout.rstrip().endswith(f"utils/install.py {name}")
    assert (SCRIPT.parent.parent / name).exists()
