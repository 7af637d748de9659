"""Make ``.venv`` and install into it: ``python3 utils/install.py requirements.txt``.

Does nothing if that was done before and is still whole; makes ``.venv`` anew if it is broken or
half made. Runs as a plain script with nothing but the standard library, under any Python, also one
that is too old for the series and must be told so: hence no type hints and no f-strings.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys

OLDEST, NEWEST = (3, 10), (3, 13)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")
STAMP = os.path.join(VENV, "installed.json")
# Files that others include are inputs too.
INPUTS = ("requirements.txt", "requirements-teacher.txt", "constraints.txt", "pyproject.toml")

# Asks the environment's own Python for what is installed and can be found, in a second.
PROBE = """
import importlib.metadata, importlib.util, json, sys
wanted = ("tensorflow", "keras", "numpy", "matplotlib", "sklearn", "papermill", "utils")
missing = [n for n in wanted if importlib.util.find_spec(n) is None]
found = sorted(d.metadata["Name"] + "==" + d.version for d in importlib.metadata.distributions())
print(json.dumps({"python": sys.version, "missing": missing, "packages": found}))
"""


def refuse(message):
    """Print one sentence and stop."""
    sys.exit(message)


def check_python():
    """Refuse a Python outside the range, or one without venv, and say which will do."""
    wanted = "Python %d.%d to %d.%d" % (OLDEST + NEWEST)
    here = sys.version_info[:2]
    if not OLDEST <= here <= NEWEST:
        refuse(
            "%s is Python %d.%d, and this series needs %s; name one, for example: "
            "make lab PYTHON=python3.12" % ((sys.executable,) + here + (wanted,))
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        refuse(
            "%s (Python %d.%d) has no venv module; install it (on Debian and Ubuntu: apt install "
            "python3-venv) or name another %s: make lab PYTHON=python3.12"
            % ((sys.executable,) + here + (wanted,))
        )


def read_stamp():
    """Return what was written after the last complete installation, or None."""
    try:
        with open(STAMP) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def probe():
    """Return what the environment holds, or None if its Python does not run."""
    try:
        answer = subprocess.run([PYTHON, "-I", "-c", PROBE], stdout=subprocess.PIPE, check=True)
        return json.loads(answer.stdout.decode())
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def is_whole(stamp):
    """Whether the environment still holds what the stamp says."""
    state = probe()
    return (
        state is not None
        and not state["missing"]
        and state["python"] == stamp["python"]
        and set(stamp["packages"]) <= set(state["packages"])
    )


def digest(names):
    """Return a checksum over files of the repository."""
    total = hashlib.sha256()
    for name in sorted(names):
        with open(os.path.join(ROOT, name), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def install(requirements):
    """Bring ``.venv`` up to date with one requirements file and those installed before."""
    stamp = read_stamp()
    whole = stamp is not None and is_whole(stamp)
    wanted = sorted(set((stamp["requirements"] if whole else []) + [requirements]))
    asked = {"requirements": wanted, "digest": digest(set(wanted) | set(INPUTS))}
    if whole and asked.items() <= stamp.items():
        return
    if not whole:
        if os.path.isdir(VENV):
            print("The environment in .venv is broken or half made; making it anew.")
            shutil.rmtree(VENV)
        print("Making .venv with Python %d.%d." % sys.version_info[:2])
        subprocess.check_call([sys.executable, "-m", "venv", VENV])
    elif os.path.exists(STAMP):
        os.remove(STAMP)
    print("Installing %s; the first time takes one to three minutes." % " and ".join(wanted))
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", "constraints.txt"]
    for name in wanted:
        command += ["--requirement", name]
    subprocess.check_call(command, cwd=ROOT)
    state = probe()
    if state is None or state["missing"]:
        refuse("The installation is not whole; remove the folder .venv and run the command again.")
    state.update(asked)
    with open(STAMP, "w") as file:
        json.dump(state, file, indent=1)


if __name__ == "__main__":
    check_python()
    try:
        install(sys.argv[1] if len(sys.argv) > 1 else "requirements.txt")
    except subprocess.CalledProcessError as error:
        refuse(
            "The set-up stopped at `%s`; see the lines above (no network? disk full?), then run "
            "the same command again." % " ".join(os.path.basename(part) for part in error.cmd[:4])
        )
    except KeyboardInterrupt:
        refuse("Interrupted; run the same command again and it starts afresh.")
