"""Lets ``zt.safetensors`` stand in for the package ``safetensors`` in this process."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

_OFFICIAL = "safetensors"
_OURS = __package__ or "zt.safetensors"

#: The modules of the official package that have a counterpart here. ``_safetensors_rust`` is its
#: native one.
_MODULES = ("torch", "numpy", "flax", "tensorflow", "paddle", "mlx")


class _Loader(importlib.abc.Loader):
    """Loads our module under an official name."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system then takes the module from here.
        sys.modules[module.__name__] = _counterpart(module.__name__)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``safetensors`` and its modules, before anything else does."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_ours(fullname):
            return None
        is_package = fullname == _OFFICIAL
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=is_package)


def _is_ours(name: str) -> bool:
    package, _, module = name.partition(".")
    return package == _OFFICIAL and module in ("", "_safetensors_rust", *_MODULES)


def _counterpart(name: str) -> ModuleType:
    module = name.removeprefix(_OFFICIAL)
    return importlib.import_module(_OURS + module.replace("._safetensors_rust", ""))


#: What `install` replaced: official modules, and names in other modules with their old objects.
_modules: dict[str, ModuleType] = {}
_names: list[tuple[ModuleType, str, object]] = []
_finder: _Finder | None = None


@contextlib.contextmanager
def _until_exit() -> Iterator[None]:
    try:
        yield
    finally:
        uninstall()


def install() -> contextlib.AbstractContextManager[None]:
    """Lets this package stand in for ``safetensors`` in this process.

    From now on, ``import safetensors`` and ``from safetensors.torch import load_file`` give this
    package in every module. In modules that imported official names before, ours replace them.
    Names that a function or an instance keeps are not found: if you can, call this before you
    import the host.

    Returns:
        A context manager that calls :func:`uninstall` at its end. You may ignore it.

    >>> import zt.safetensors
    >>> with zt.safetensors.install():
    ...     import safetensors
    ...     safetensors is zt.safetensors
    True
    """
    global _finder
    if _finder is not None:
        return _until_exit()
    replaced: dict[int, object] = {}
    for name in [name for name in sys.modules if _is_ours(name)]:
        official = sys.modules[name]
        ours = _counterpart(name)
        replaced[id(official)] = ours
        replaced.update(_by_identity(official, ours))
        _modules[name] = official
        sys.modules[name] = ours
    _finder = _Finder()
    sys.meta_path.insert(0, _finder)
    sys.modules.setdefault(_OFFICIAL, sys.modules[_OURS])
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and module not in _modules.values():
            _replace(module, replaced)
    return _until_exit()


def uninstall() -> None:
    """Undoes :func:`install`: restores modules and names."""
    global _finder
    if _finder is None:
        return
    sys.meta_path.remove(_finder)
    _finder = None
    for module, name, official in reversed(_names):
        setattr(module, name, official)
    _names.clear()
    for name in [name for name in sys.modules if _is_ours(name)]:
        del sys.modules[name]
    sys.modules.update(_modules)
    _modules.clear()


def _by_identity(official: ModuleType, ours: ModuleType) -> dict[int, object]:
    """Our functions and classes, by the identity of the official one with the same name."""
    found: dict[int, object] = {}
    for name, value in vars(official).items():
        if callable(value) and hasattr(ours, name) and _is_defined_in(value):
            found[id(value)] = getattr(ours, name)
    return found


def _is_defined_in(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] in (_OFFICIAL, "builtins", "safetensors_rust")


def _replace(module: ModuleType, replaced: dict[int, object]) -> None:
    for name, value in list(vars(module).items()):
        ours = replaced.get(id(value))
        if ours is not None:
            _names.append((module, name, value))
            setattr(module, name, ours)
