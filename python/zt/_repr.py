"""The values in the repr of a tensor."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Tensor

#: As many elements are shown whole, as NumPy does it.
_WHOLE = 1000

#: Values at each end of a longer dimension.
_EDGE = 3

#: The most parts that are read.
_MOST_PARTS = 16


def values(tensor: Tensor) -> str | None:
    """The values as NumPy prints them. Of a large tensor only the corners are read.

    Returns:
        ``None`` if the corners are too many.
    """
    import numpy

    if tensor.size <= _WHOLE:
        # The whole value, because its digest is compared.
        return numpy.array2string(tensor.dense(), separator=", ")
    # A dimension becomes its two ends, and a gap that NumPy prints as dots.
    is_long = [length > 2 * _EDGE for length in tensor.shape]
    if 2 ** sum(is_long) > _MOST_PARTS:
        return None
    ends = [
        ((slice(_EDGE), slice(_EDGE)), (slice(-_EDGE, None), slice(-_EDGE, None)))
        if long
        else ((slice(None), slice(None)),)
        for long in is_long
    ]
    shape = [
        2 * _EDGE + 1 if long else length
        for long, length in zip(is_long, tensor.shape, strict=True)
    ]
    corners = None
    for parts in itertools.product(*ends):
        value = tensor[tuple(there for there, _ in parts)]
        if corners is None:
            corners = numpy.zeros(shape, value.dtype)
        corners[tuple(here for _, here in parts)] = value
    assert corners is not None
    return numpy.array2string(corners, separator=", ", threshold=0, edgeitems=_EDGE)
