"""What a type checker knows of zt: `mypy --strict` checks this file, and nothing runs it."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import zt  # and no `import zt.numpy`

file = zt.open("model.zt")
assert_type(file, zt.File)
assert_type(file["weight"], zt.Tensor)
assert_type(file.get("weight"), zt.Tensor | None)
assert_type(file.get("weight", 3), zt.Tensor | int)
assert_type(file["weight"].shape, tuple[int, ...])
assert_type(file["weight"].numpy(), NDArray[Any])
assert_type([name for name in file], list[str])
assert_type(dict(file.items()), dict[str, zt.Tensor])
assert_type(zt.verify(file).problems, list[Exception])
assert_type(zt.numpy.save({"a": np.zeros(3)}), bytes)
assert_type(zt.numpy.load_file("model.zt"), dict[str, NDArray[Any]])
assert_type(file["weight"][1:, 0], NDArray[Any])
assert_type(zt.convert("a.zt", "b.zt", include=["a.*"], rename=str.lower), zt.Conversion)
assert_type(zt.quantize("a.zt", "b.gguf", type="q8_0").kept, list[str])
assert_type(zt.merge(["a.zt", "b.zt"], "c.zt", rename={"a": "b"}), zt.Conversion)
assert_type(zt.merge("a.zt", "c.zt", lora="adapter", scale=2.0), zt.Conversion)
assert_type(zt.average(["a.zt", "b.zt"], "c.zt", weights=[1, 2], zstd=3), zt.Conversion)
assert_type(zt.split("a.zt", "folder", max_shard_size="5GB").index, Path | None)
assert_type(zt.stats(file)["weight"].std, float | None)
assert_type(zt.diff("a.zt", "b.zt").same, bool)
assert_type(zt.diff("a.zt", "b.zt", summary=True)["weight"].cosine, float | None)
assert_type(file.warnings, list[zt.FileWarning])
assert_type(zt.open("d.zt", base=["b.zt", file]), zt.File)
assert_type(zt.delta.make(file, {"a": np.zeros(3)}, "d.zt"), zt.delta.Changes)
assert_type([patch.name for patch in zt.delta.patches("d.zt", "b.zt")], list[str])
with zt.Writer("new.zt") as writer:
    writer.add("a", np.zeros(3))
    with writer.begin("b", (2, 3), "f32") as pieces:
        pieces.write(b"")
