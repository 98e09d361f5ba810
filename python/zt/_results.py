"""Results of calls as values: dataclasses, and dicts of them that a notebook shows as tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ._errors import FileWarning

#: The most rows of a table in a notebook.
_MOST = 50


@dataclass(frozen=True)
class TensorStats:
    """The statistics of a tensor. Minimum, maximum, mean and deviation are of the finite values.

    Attributes:
        name: its name.
        dtype: the type of its values, as :attr:`Tensor.dtype`.
        shape: its dimensions.
        count: the number of values.
        min, max: ``int`` for integers and ``float`` for others; ``None`` without a finite value.
        mean: the mean.
        std: the standard deviation of the population, as ``numpy.std``.
        zeros, nan, inf: how many values are 0, NaN, infinite.
        constant: whether all values are equal.
        dead_rows, dead_columns: rows and columns of zeros of a matrix with other values.
        problems: what is unusual, in words.
    """

    name: str
    dtype: str | None
    shape: tuple[int, ...]
    count: int
    min: int | float | None
    max: int | float | None
    mean: float | None
    std: float | None
    zeros: int
    nan: int
    inf: int
    constant: bool
    dead_rows: int
    dead_columns: int
    problems: list[str]


class Stats(dict[str, TensorStats]):
    """The statistics of the tensors of a file, by name. See :func:`stats`.

    Attributes:
        errors: the tensors that cannot be read or have no dense value, with their exceptions.
    """

    def __init__(self, tensors: dict[str, TensorStats], errors: dict[str, Exception]) -> None:
        super().__init__(tensors)
        self.errors = errors

    @property
    def problems(self) -> dict[str, list[str]]:
        """What is unusual, by the name of each tensor that has any of it."""
        return {name: stats.problems for name, stats in self.items() if stats.problems}

    def _repr_html_(self) -> str:
        head = ["name", "dtype", "shape", "min", "max", "mean", "std", "zeros", "problems"]
        failed = [(name, *[""] * 7, error) for name, error in self.errors.items()]
        rows = [
            (it.name, it.dtype, it.shape, it.min, it.max, it.mean, it.std, it.zeros)
            + (", ".join(it.problems),)
            for it in self.values()
        ]
        return _table(head, [*failed, *rows])


@dataclass(frozen=True)
class Distance:
    """How far the values of two tensors are from each other. See :func:`diff`.

    Attributes:
        count: the number of pairs of values.
        different: the number of pairs that differ.
        not_finite: those with a NaN or an infinity. No other figure counts them.
        relative: the norm of the difference over the norm of the first values.
        cosine: the cosine of the angle between both; ``None`` if all values of a side are 0.
        max_abs: the largest absolute difference.
        dtypes: the types of both.
    """

    count: int
    different: int
    not_finite: int
    relative: float
    cosine: float | None
    max_abs: float
    dtypes: tuple[str | None, str | None]


class DifferenceSummary(dict[str, Distance]):
    """The distances of the tensors of two files, the largest change first. See :func:`diff`.

    Attributes:
        only_a, only_b: the names of tensors that one file has.
        changed: as :attr:`Difference.changed`, for tensors without a distance: their shapes
            differ, or one cannot be read.
    """

    def __init__(
        self,
        tensors: dict[str, Distance],
        only_a: list[str],
        only_b: list[str],
        changed: dict[str, list[str]],
    ) -> None:
        super().__init__(tensors)
        self.only_a = only_a
        self.only_b = only_b
        self.changed = changed

    @property
    def same(self) -> bool:
        """Whether both files have the same tensors with the same values."""
        is_other = self.only_a or self.only_b or self.changed
        return not is_other and not any(it.different for it in self.values())

    def _repr_html_(self) -> str:
        head = ["name", "dtype", "change", "cosine", "max abs", "different", "NaN, inf"]
        others = {name: ", ".join(words) for name, words in self.changed.items()}
        others |= dict.fromkeys(self.only_a, "only in a") | dict.fromkeys(self.only_b, "only in b")
        rows = [
            (name, " → ".join(map(str, dict.fromkeys(it.dtypes))), it.relative, it.cosine)
            + (it.max_abs, f"{it.different / max(it.count, 1):.1%}", it.not_finite)
            for name, it in self.items()
        ]
        return _table(head, [*((name, what) for name, what in others.items()), *rows])


@dataclass(frozen=True)
class Shard:
    """A file of a set.

    Attributes:
        path: its path.
        tensors: how many tensors it has.
        nbytes: the bytes of their values, before compression.
        stored_nbytes: the length of the file.
    """

    path: Path
    tensors: int
    nbytes: int
    stored_nbytes: int


@dataclass(frozen=True)
class Split:
    """The set that :func:`split` wrote.

    Attributes:
        index: the index, which opens the set; ``None`` for a single shard and for GGUF.
        shards: its files, in order.
        nbytes: the bytes of all values, before compression.
        left_out: the names of tensors that were left out.
        damaged: those of them that are damaged.
        removed: files of the replaced set that were removed.
        warnings: warnings of the source, and one for each loss.
        casts: what casts have lost, as :attr:`Conversion.casts`.
    """

    index: Path | None
    shards: list[Shard]
    nbytes: int
    left_out: list[str]
    damaged: list[str]
    removed: list[Path]
    warnings: list[FileWarning]
    casts: dict[str, tuple[int, int, int, float | None]]


def _table(head: list[str], rows: list[tuple[Any, ...]]) -> str:
    """An HTML table of the first rows. Every text is escaped."""

    def line(tag: str, values: Iterable[object]) -> str:
        cells = (f"{it:.6g}" if isinstance(it, float) else str(it) for it in values)
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows[:_MOST])
    more = f"<p>and {len(rows) - _MOST} more</p>" if len(rows) > _MOST else ""
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>{more}"
