"""The values in the repr of a tensor."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Tensor

#: As many elements are shown whole, as NumPy does it.
_WHOLE = 1000

#: Values at each end of a longer dimension.
_EDGE = 3

#: The most elements that are shown of a larger tensor: the corners of four long dimensions.
_MOST = (2 * _EDGE + 1) ** 4


def values(tensor: Tensor) -> str | None:
    """The values as NumPy prints them. Of a large tensor only the corners are read.

    Returns:
        ``None`` if the corners have too many.
    """
    import numpy

    if tensor.size <= _WHOLE:
        # The whole value, because its digest is compared.
        return numpy.array2string(tensor.dense(), separator=", ")
    # A dimension becomes its two ends, and a gap that NumPy prints as dots.
    is_long = [length > 2 * _EDGE for length in tensor.shape]
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
    # Each dimension may be short, and the product long.
    if math.prod(shape) > _MOST:
        return None
    corners = None
    for parts in itertools.product(*ends):
        value = tensor[tuple(there for there, _ in parts)]
        if corners is None:
            corners = numpy.zeros(shape, value.dtype)
        corners[tuple(here for _, here in parts)] = value
    assert corners is not None
    return numpy.array2string(corners, separator=", ", threshold=0, edgeitems=_EDGE)
