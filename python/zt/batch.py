"""Many files at once, on the processes or machines of any executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, as_completed
from typing import Any

from . import convert as _convert

__all__ = ["convert"]

Path = str | os.PathLike[str]


def convert(
    inputs: Iterable[Path],
    outputs: Iterable[Path],
    executor: Executor,
    *,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> None:
    """Converts each input to the output beside it, as :func:`zt.convert` does.

    A file that fails does not stop the others. Each output is published all or nothing.

    Args:
        inputs: paths of files of any kind.
        outputs: as many paths. The extension of each decides its kind, unless ``kind`` is given.
        executor: does the work: a thread or a process pool, Dask's ``client.get_executor()``, Ray's
            or MPI's pool. Paths must lead to the same files there.
        progress: called with 1 after each file, as ``tqdm.update`` expects. An exception from it
            stops the work. Files that no worker has begun are not converted.
        options: for :func:`zt.convert`: ``kind``, ``include``, ``zstd``, ``dtype``, ``overwrite`` and
            so on. A process pool takes no ``rename`` that it cannot pickle, such as a lambda.

    Raises:
        ValueError: there are more inputs than outputs, or fewer; nothing was converted.
        ExceptionGroup: some files failed. Each exception has a note with its input.
    """
    pairs = list(zip(inputs, outputs, strict=True))
    jobs: dict[Future[None], Path] = {}
    failures: list[Exception] = []
    try:
        for source, target in pairs:
            jobs[executor.submit(_one, os.fspath(source), os.fspath(target), options)] = source
        for job in as_completed(jobs):
            error = job.exception()
            if isinstance(error, Exception):
                error.add_note(f"while converting {os.fspath(jobs[job])}")
                failures.append(error)
            elif error is not None:
                raise error
            if progress is not None:
                progress(1)
    except BaseException:
        for job in jobs:
            job.cancel()
        raise
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(pairs)} files failed", failures)


def _one(source: str, target: str, options: dict[str, Any]) -> None:
    """Converts one file. Executors pickle it, so it is a function of the module."""
    _convert(source, target, **options)
