"""Runs the cells of one submission in a kernel of its own: ``python -I utils/grade_one.py``.

Takes a job as JSON on standard input and writes the outcomes as JSON to standard output. It is a
plain script that imports nothing of the series: the student's code is in the kernel only, and
what comes back from there is taken as text.

The job: ``cells`` (``source``, ``seconds``, ``token`` each), ``folder`` (an empty one, to work in),
``environment`` of the kernel, ``seconds`` for all cells together, ``output_bytes`` a cell,
``memory_bytes`` and ``file_bytes`` (Linux and macOS).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from queue import Empty
from typing import Any

from jupyter_client import KernelManager
from jupyter_client.blocking import BlockingKernelClient

OK, ERROR, STOPPED, FLOOD, DEAD, NOT_RUN = "ok", "error", "stopped", "flood", "dead", "not run"
"""How a cell ended: well, with an error, by the time limit, by printing too much, with the death
of the kernel; or it was never begun."""

GRACE = 10.0
"""Seconds that an interrupted cell has to end."""
LONGEST_TEXT = 2000
"""Characters of an error's message that are kept."""


def limit(job: dict[str, Any]) -> None:
    """Limit what this process and its kernel may use; the kernel inherits it."""
    import resource

    for kind, most in (
        (resource.RLIMIT_AS, job["memory_bytes"]),
        (resource.RLIMIT_FSIZE, job["file_bytes"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, int(job["seconds"]) * (os.cpu_count() or 1)),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # macOS refuses some limits.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def start(job: dict[str, Any]) -> tuple[KernelManager, BlockingKernelClient]:
    """Start a kernel that shares no terminal, no port and no variable of the environment."""
    # Sockets that are files: ports would be guessed, and two kernels could guess the same.
    manager = KernelManager(
        kernel_name="python3", transport="ipc", ip=os.path.join(job["folder"], "socket")
    )
    manager.connection_file = os.path.join(job["folder"], "kernel.json")
    manager.start_kernel(
        cwd=job["folder"],
        env=job["environment"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        extra_arguments=["--log-level=CRITICAL", "--HistoryManager.enabled=False"],
    )
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    return manager, client


class Runner:
    """Runs cells one after the other, until the kernel dies or the time is up."""

    def __init__(
        self, manager: KernelManager, client: BlockingKernelClient, job: dict[str, Any]
    ) -> None:
        self.manager, self.client = manager, client
        self.deadline = time.monotonic() + job["seconds"]
        self.output_bytes = job["output_bytes"]
        self.alive = True

    def run(self, cell: dict[str, Any]) -> dict[str, Any]:
        """Run a cell and say how it ended.

        Returns
        -------
        dict
            ``status``, ``name`` and ``text`` of an error, and ``finished``: whether the cell came
            to its last line, which prints its token.
        """
        outcome = {"status": NOT_RUN, "name": "", "text": "", "finished": False}
        left = self.deadline - time.monotonic()
        if self.alive and left > 0:
            self._run(cell, min(cell["seconds"], left), outcome)
        return outcome

    def _run(self, cell: dict[str, Any], seconds: float, outcome: dict[str, Any]) -> None:
        message_id = self.client.execute(cell["source"], allow_stdin=False, stop_on_error=False)
        until = time.monotonic() + seconds
        size, ended, stop = 0, False, ""
        while not ended:
            message = self._message()
            if message is not None:
                size += len(str(message["content"]))
                if message["parent_header"].get("msg_id") == message_id:
                    ended = self._read(message, cell["token"], outcome)
            elif not self.manager.is_alive():
                self.alive, outcome["status"] = False, DEAD
                return
            flooded, late = size > self.output_bytes, time.monotonic() > until
            if stop and late:  # It does not let itself be interrupted.
                self._kill()
                ended = True
            elif not stop and (flooded or late) and not ended:
                stop = FLOOD if flooded else STOPPED
                until = time.monotonic() + GRACE
                self.manager.interrupt_kernel()
        if stop:
            outcome.update(status=stop, finished=False)
        if self.alive and not self._replied_well(message_id) and outcome["status"] != stop:
            outcome["status"] = ERROR
        elif outcome["status"] == NOT_RUN:
            outcome["status"] = OK

    def _message(self) -> dict[str, Any] | None:
        try:
            return self.client.get_iopub_msg(timeout=0.5)
        except Empty:
            return None

    def _read(self, message: dict[str, Any], token: str, outcome: dict[str, Any]) -> bool:
        """Note what a message says; True if it says that the cell has ended."""
        kind, content = message["msg_type"], message["content"]
        if kind == "error":
            outcome["status"] = ERROR
            outcome["name"] = str(content.get("ename", ""))[:LONGEST_TEXT]
            outcome["text"] = str(content.get("evalue", ""))[:LONGEST_TEXT]
        elif kind == "stream" and content.get("name") == "stdout":
            seen = bool(token) and token in str(content.get("text", ""))
            outcome["finished"] = outcome["finished"] or seen
        return kind == "status" and content.get("execution_state") == "idle"

    def _replied_well(self, message_id: str) -> bool:
        until = time.monotonic() + GRACE
        while time.monotonic() < until and self.manager.is_alive():
            with contextlib.suppress(Empty):
                reply = self.client.get_shell_msg(timeout=0.5)
                if reply["parent_header"].get("msg_id") == message_id:
                    return reply["content"].get("status") == "ok"
        self.alive = self.manager.is_alive()
        return False

    def _kill(self) -> None:
        self.alive = False
        self.manager.shutdown_kernel(now=True)


def main() -> None:
    """Read the job, run its cells, write the outcomes."""
    job = json.load(sys.stdin)
    limit(job)
    manager, client = start(job)
    try:
        runner = Runner(manager, client, job)
        outcomes = [runner.run(cell) for cell in job["cells"]]
        sys.stdout.write(json.dumps(outcomes))
        sys.stdout.flush()
    finally:
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
