"""Pickles of functions and their results. Modules that are not installed packages travel by value, in both directions."""

import inspect
import io
import pickle
import sys
import sysconfig
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from weakref import WeakSet

import cloudpickle  # type: ignore[import-untyped]

from mpiop.client.errors import InvalidError

_cloudpickle: Final[Any] = cloudpickle
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_COMPILED: Final = tuple(EXTENSION_SUFFIXES)
_STANDARD: Final = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})
_HELPERS: Final = ("_builtin_type", "_function_setstate", "_make_cell", "_make_empty_cell", "_make_function", "subimport")
_SENT: Final[WeakSet[type]] = WeakSet()
_LOCK: Final = threading.Lock()
"""cloudpickle has one list, for all threads, of modules that travel by value."""


def sources() -> dict[str, bytes]:
    """Return the files of the package cloudpickle by their paths: it travels too, so ranks have this version of it.

    `mpiop_helpers.py` contains the helpers that functions need. Importing cloudpickle takes as long as starting Python.
    """
    package = Path(cloudpickle.__file__).parent
    return {f"cloudpickle/{each.name}": each.read_bytes() for each in package.glob("*.py")} | {"mpiop_helpers.py": _helpers()}


@cache
def _helpers() -> bytes:
    """Return a module with the helpers of cloudpickle that load functions, or an empty one if they use more than each other."""
    made: dict[str, Any] = {}
    try:
        helpers = [getattr(cloudpickle.cloudpickle, name) for name in _HELPERS]
        source = "import sys, types\n_empty_cell_value = object()\n" + "\n".join(map(inspect.getsource, helpers))
        exec(source, made)  # noqa: S102 - of the installed cloudpickle
        used = {name for helper in helpers for name in inspect.getclosurevars(helper).globals}
    except (AttributeError, NameError, TypeError):
        return b""
    return source.encode() if used <= made.keys() else b""


def pickled_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """Return a function and its arguments as a pickle.

    Raises:
        InvalidError: Something in it cannot be pickled.
    """
    file = io.BytesIO()
    pickler: Any = _Pickler(file)
    with _by_value():
        try:
            pickler.dump((function, tuple(args), dict(kwargs)))
        except Exception as error:
            name = getattr(function, "__name__", repr(function))
            raise InvalidError(
                f"the function {name} cannot be sent to the ranks with its arguments and the variables that it uses: {error}. "
                "Make such objects inside of the function"
            ) from error
    return file.getvalue()


def unpickled(content: bytes) -> Any:
    """Return the object in a pickle, which must be from a trusted program."""
    return _Unpickler(io.BytesIO(content)).load()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # it has no types
    """Remembers the classes that it sends."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how an object is pickled."""
        if isinstance(obj, type):
            _SENT.add(obj)
        untyped: Any = super()
        return untyped.reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    """Leaves classes as they are that were sent from here: a rank sends its copy of them with their instances."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Return what a pickle names."""
        found = super().find_class(module_name, global_name)
        if (module_name, global_name) != ("cloudpickle.cloudpickle", "_class_setstate"):
            return found

        def complete(made: type, state: Any) -> type:
            return made if made in _SENT else found(made, state)

        return complete


@contextmanager
def _by_value() -> Generator[None]:
    """Let the modules travel by value that no image has: those that are neither installed nor of the standard library."""
    with _LOCK:
        own = [sys.modules[name] for name in _own_modules() - _cloudpickle.list_registry_pickle_by_value()]
        for module in own:
            _cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in own:
                _cloudpickle.unregister_pickle_by_value(module)


def _own_modules() -> set[str]:
    """Return the names of the modules that were imported from Python files of the user; no part of a package that is compiled in part."""
    own, compiled = set[str](), set[str]()
    modules: dict[str, Any] = dict(sys.modules)  # which may have any object
    for name, module in modules.items():
        if not isinstance(module, ModuleType) or vars(module).get("__name__") != name:
            continue
        file = vars(module).get("__file__")
        places = [file] if file else [*(vars(module).get("__path__") or ())]  # a namespace package has folders only
        if file and file.endswith(_COMPILED):
            compiled.add(name.partition(".")[0])
        elif places and not any(map(_is_installed, places)):
            own.add(name)
    return {name for name in own if name.partition(".")[0] not in compiled}


@cache
def _is_installed(place: str) -> bool:
    parts = Path(place).parts
    return bool(_INSTALLED.intersection(parts)) or any(Path(place).resolve().is_relative_to(folder) for folder in _STANDARD)
