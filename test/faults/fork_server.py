"""A process that has imported the operator once, and forks one whenever asked: a start then costs a tenth of the processor's time.

On its standard input it reads a line for each operator that it is to start, on its output it reports when one was and when one ended.
"""

import asyncio
import contextlib
import gc
import itertools
import json
import os
import random
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

MPIOP, FAULTY = "mpiop", "faults.faulty_operator"


@dataclass(eq=False)
class Child:
    """An operator, as `asyncio.subprocess.Process` shows one.

    Attributes:
        pid: Its process id.
        returncode: Its exit code; negative is a signal, None as long as it runs.
    """

    pid: int
    returncode: int | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> int:
        """Return the exit code when there is one."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal.

        Raises:
            ProcessLookupError: It has ended.
        """
        os.kill(self.pid, number)

    def note_end(self, code: int) -> None:
        self.returncode = code
        self._ended.set()


class ForkServer:
    """The driver's side."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._children: dict[int, Child] = {}
        self._orders = itertools.count()
        self._starting: dict[int, asyncio.Future[Child]] = {}

    @property
    def running(self) -> Collection[int]:
        """The process ids of the operators that have not ended."""
        return self._children.keys()

    async def spawn(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
        """Start an operator whose output is appended to `log`; if the caller is cancelled meanwhile, the operator is killed."""
        number = next(self._orders)
        order = {"number": number, "module": module, "arguments": list(arguments), "environment": dict(environment), "log": str(log)}
        started: asyncio.Future[Child] = asyncio.get_running_loop().create_future()
        self._starting[number] = started
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(lambda child: child.result().send_signal(signal.SIGKILL))
            raise

    async def listen(self) -> None:
        """Read the reports of the process, until it ends."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            reported = json.loads(line)
            if "code" in reported:
                self._children.pop(reported["pid"]).note_end(reported["code"])
                continue
            child = self._children[reported["pid"]] = Child(reported["pid"])
            self._starting.pop(reported["number"]).set_result(child)


@contextlib.asynccontextmanager
async def fork_server(environment: Mapping[str, str]) -> AsyncIterator[ForkServer]:
    """Yield a fork server; `environment` has to let its Python find the operator."""
    pipe = asyncio.subprocess.PIPE
    # In a session of its own: Ctrl-C is for the driver, which then ends all in order.
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "faults.fork_server", env=environment, stdin=pipe, stdout=pipe, start_new_session=True
    )
    made = ForkServer(process)
    listening = asyncio.create_task(made.listen())
    try:
        yield made
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await listening


def serve() -> None:
    """Start operators as requested on standard input, until its end; then end those that are left."""
    mains = _mains()
    gc.collect()
    gc.freeze()  # what is shared stays so
    woken, waking = socket.socketpair()
    for end in (woken, waking):
        end.settimeout(0)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    running = set[int]()
    rest = b""
    with selectors.DefaultSelector() as selector:
        for descriptor in (sys.stdin.fileno(), woken.fileno()):
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if woken.fileno() in ready:
                woken.recv(4096)
                _reap(running)
            if sys.stdin.fileno() in ready:
                if not (chunk := os.read(sys.stdin.fileno(), 65536)):
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    running.add(_fork(mains, json.loads(line)))
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def _mains() -> dict[str, Callable[[], int]]:
    # Imported here, so that anyone who only speaks with this process does not pay for it.
    import mpiop.cli.process  # noqa: PLC0415
    import mpiop.operator  # noqa: PLC0415
    from faults.faulty_operator import faulty_main  # noqa: PLC0415

    return {MPIOP: mpiop.cli.main, FAULTY: faulty_main}


def _fork(mains: Mapping[str, Callable[[], int]], order: Mapping[str, Any]) -> int:
    pid = os.fork()
    if not pid:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _run(mains[order["module"]], order)
    _tell({"pid": pid, "number": order["number"]})
    return pid


def _run(main: Callable[[], int], order: Mapping[str, Any]) -> Never:
    """Be the operator."""
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for ours, theirs in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, theirs)
    os.environ.clear()
    os.environ.update(order["environment"])
    random.seed()
    sys.argv = [order["module"], *order["arguments"]]
    code: Any = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _reap(running: set[int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        running.discard(pid)
        _tell({"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _tell(what: Mapping[str, int]) -> None:
    os.write(sys.stdout.fileno(), json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    serve()
