"""The programs that travel with a function: the check of the image in the launcher, and what each rank runs.

Both run on old Pythons too, so that an image with one can report it.
"""

import marshal
import pickle
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import MAGIC_NUMBER
from typing import Final

from mpiop.client.spec import FILES_PATH

LIMIT_BYTES: Final = 8 * 2**20
IMAGE: Final = "mpiop-image: "
"""Begins a line of the launcher's log that names what the image lacks."""

CHECK_COMMAND: Final = f"""\
command -v python3 >/dev/null || {{ echo '{IMAGE}it has no python3 in its PATH: use an image with Python and mpi4py' >&2; exit 1; }}
python3 {FILES_PATH}/check.py"""

CHECK: Final = f"""\
import sys


def fail(text):
    sys.stderr.write("{IMAGE}" + " ".join(text.split()) + "\\n")
    sys.exit(1)


if sys.version_info[:2] != VERSION:
    fail("it has Python %d.%d, and the function was sent by %d.%d: both must be the same" % (tuple(sys.version_info[:2]) + VERSION))
try:
    import mpi4py
    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    from mpi4py import MPI
except Exception as error:
    fail("its python3 (%s) cannot import mpi4py: %s: use an image with Python and mpi4py" % (sys.executable, error))
"""

_BEGIN: Final = """\
import os, pickle, sys, time

# The function, its libraries and its children print to stderr, so that stdout has whole lines of results and nothing else.
sys.stdout.flush()
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
if hasattr(sys.stdout, "reconfigure"):
    sys.stdout.reconfigure(line_buffering=True)
"""
_FROM_FOLDER: Final = """
folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, folder)


def read(name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


"""
_FROM_MEMORY: Final = f"""
import marshal
from importlib.machinery import ModuleSpec
from importlib.util import MAGIC_NUMBER

if sys.version_info[:2] != VERSION:
    found = "%d.%d" % tuple(sys.version_info[:2])
    sys.stderr.write("{IMAGE}it has Python %s, and the function was sent by %d.%d: both must be the same\\n" % ((found,) + VERSION))
    sys.exit(1)
sources = {{name: files[name] for name in files if name.endswith(".py")}}


class Sent:
    def find_spec(self, name, path=None, target=None):
        for file, is_package in ((name.replace(".", "/") + ".py", False), (name.replace(".", "/") + "/__init__.py", True)):
            if file in sources:
                return ModuleSpec(name, self, origin=file, is_package=is_package)

    def create_module(self, spec):
        pass

    def exec_module(self, module):
        file = module.__spec__.origin
        code = marshal.loads(compiled[file]) if MAGIC_NUMBER == magic else compile(sources[file], file, "exec")
        exec(code, module.__dict__)


sys.meta_path.insert(0, Sent())
read = files.get
"""
_CALL: Final = f"""
import io

import mpiop_helpers
from mpi4py import MPI

world = MPI.COMM_WORLD
run = world.bcast(os.urandom(8).hex())


def write(kind, rank, content):
    from mpiop_lines import lines

    for line in lines(read("key"), kind, "%s:%d/%d" % (run, rank, world.size), content):
        out.write(line)
        out.flush()


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        found = vars(mpiop_helpers).get(name) if module == "cloudpickle.cloudpickle" else None
        return found or super().find_class(module, name)


def dumps(result):
    if "cloudpickle" not in sys.modules:  # no class has come by value, so most results need no more than pickle, and its import takes long
        try:
            return pickle.dumps(result)
        except Exception:
            pass
    import cloudpickle

    return cloudpickle.dumps(result)


def trace():
    import traceback

    return traceback.format_exc()


def cut(text):
    return text.encode(errors="replace")[-2500:]


def end(text):
    sys.stderr.write(text + "\\n")
    write("raised", world.rank, cut(text))
    time.sleep(1)  # mpirun has read the lines before it ends the ranks
    world.Abort(1)  # the others may wait for this rank for ever


def lacks(error):
    return "%s. The image must have all that the function imports: install it there; of a file of yours, import what you use \\
outside of the function." % error


try:
    function, args, kwargs = Unpickler(io.BytesIO(read("function.pkl"))).load()
except ImportError as error:
    end(lacks(error))
except BaseException:
    end(trace())
try:
    result = function(*args, **kwargs)
except ImportError as error:
    end(trace() + lacks(error))
except BaseException:
    end(trace())
try:
    content = "result", dumps(result)
except Exception as error:
    content = "raised", cut("its result cannot be pickled: %s: %s" % (type(error).__name__, error))
contents = world.gather(content) or ()
size = 4 * sum(len(content) for _, content in contents) // 3
if size > {LIMIT_BYTES}:
    end("the results have %d bytes, and {LIMIT_BYTES} can be returned: write large ones to a volume" % size)
for rank, (kind, content) in enumerate(contents):
    write(kind, rank, content)
"""


RUNNER: Final = _BEGIN + _FROM_FOLDER + _CALL
_RECEIVE: Final = (
    "import pickle, sys; from mpi4py import MPI; world = MPI.COMM_WORLD; "
    "source, files, magic, compiled = world.bcast(pickle.loads(sys.stdin.buffer.read()) if world.rank == 0 else None); exec(source)"
)


def travelling() -> dict[str, bytes]:
    """Return the programs by their names in `FILES_PATH`; they expect the Python version of this process."""
    return {"runner.py": RUNNER.encode(), "check.py": CHECK.replace("VERSION", repr(tuple(sys.version_info[:2]))).encode()}


def step_command(name: str) -> tuple[str, ...]:
    """Return what each rank of a step runs: rank 0 reads `step_input`. The name of the function is only for people who list the steps."""
    return ("python3", "-c", _RECEIVE, name)


def step_input(files: Mapping[str, bytes]) -> bytes:
    """Return the standard input of a step that calls the function in these files; modules are compiled here, once for all ranks."""
    source = _BEGIN + _FROM_MEMORY.replace("VERSION", repr(tuple(sys.version_info[:2]))) + _CALL
    compiled = {name: _compiled(name, content) for name, content in files.items() if name.endswith(".py")}
    return pickle.dumps((source, dict(files), MAGIC_NUMBER, compiled))


@cache
def _compiled(name: str, content: bytes) -> bytes:
    """Return the code of a module: of mpiop or cloudpickle, so there are few."""
    return marshal.dumps(compile(content, name, "exec"))
