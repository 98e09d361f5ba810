# The native module, by hand: `cargo xtask test-python` compares it with the module by stubtest.

import os
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, Protocol, Self, TypeAlias, TypeVar, final, overload

import torch as _torch
from numpy.typing import DTypeLike, NDArray
from typing_extensions import Buffer, CapsuleType, disjoint_base

from ._errors import FileWarning
from ._results import DifferenceSummary, Split, Stats

__version__: Final[str]

_T = TypeVar("_T")
_Progress: TypeAlias = Callable[[int], object]
_Array: TypeAlias = NDArray[Any]
_Path: TypeAlias = str | os.PathLike[str]
_Index: TypeAlias = Any
_Digest: TypeAlias = Literal["crc32c", "sha256"]
_OwnDigest: TypeAlias = Literal["crc32c", "sha256", "default"]

class _Readable(Protocol):
    def read(self, size: int, /) -> Buffer: ...
    def seek(self, offset: int, whence: int = ..., /) -> object: ...

class _Kind(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def extensions(self) -> Sequence[str]: ...
    def detect(self, head: bytes, /) -> bool: ...
    def open(self, file: BinaryIO, /) -> Mapping[str, Any]: ...

class _Writable(Protocol):
    def write(self, data: bytes, /) -> object: ...

_Source: TypeAlias = _Path | Buffer | _Readable

def open(
    source: File | _Source,
    *,
    base: File | _Source | Sequence[File | _Source] | None = None,
    check: bool = True,
    mmap: bool = True,
    verify: Literal["on_read", "always", "never"] = "on_read",
    strict: bool = False,
    truncated: bool = False,
    logical: bool | Literal["f32", "bf16", "f16"] | None = None,
    ml_dtype: str | Sequence[str] | None = None,
    seal: _Path | Buffer | None = None,
    signature: _Path | Buffer | None = None,
    key: _Path | Buffer | None = None,
    storage_options: dict[str, Any] | None = None,
) -> File: ...
def edit(path: _Path, *, progress: _Progress | None = None) -> Editor: ...
def verify(
    source: File | _Source,
    *,
    strict: bool = False,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Verification: ...
def plan(
    source: File | _Source,
    wanted: Iterable[str] | dict[str, _Index | None] | None = None,
    *,
    memory: int = 268_435_456,
    threads: int | None = None,
    page_cache: bool = True,
    storage_options: dict[str, Any] | None = None,
) -> Plan: ...
def hash(
    source: File | _Source,
    *,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> ContentHash: ...
def examine(folder: _Path, *, values: bool = False) -> list[Finding]: ...
def report(
    source: File | _Source,
    path: _Path,
    other: File | _Source | None = None,
    *,
    detail: bool = False,
    sample: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> None: ...
@overload
def diff(
    a: File | _Source,
    b: File | _Source,
    *,
    dense: bool = False,
    only_values: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    summary: Literal[False] = False,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Difference: ...
@overload
def diff(
    a: File | _Source,
    b: File | _Source,
    *,
    summary: Literal[True],
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> DifferenceSummary: ...
def stats(
    source: File | _Source,
    *,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Stats: ...
def convert(
    source: File | _Source | Sequence[File | _Source],
    target: _Path | _Writable,
    *,
    kind: str | None = None,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    rename: dict[str, str] | Callable[[str], str] | None = None,
    on_duplicate: Literal["error", "first", "last", "same"] = "error",
    zstd: int | None = None,
    digest: _OwnDigest | None = "default",
    chunk_digests: str | None = "crc32c",
    planes: bool = False,
    dense: bool = False,
    dtype: str | dict[str, str] | None = None,
    dialect: str | None = None,
    drop_unsupported: bool = False,
    skip_damaged: bool = False,
    allow_inf: bool = False,
    lossy: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Conversion: ...

def split(
    source: File | _Source,
    folder: _Path,
    *,
    max_shard_size: int | str | None = None,
    max_tensors: int | None = None,
    name: str | None = None,
    kind: str | None = None,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    rename: dict[str, str] | Callable[[str], str] | None = None,
    zstd: int | None = None,
    digest: _OwnDigest | None = "default",
    chunk_digests: str | None = "crc32c",
    planes: bool = False,
    dense: bool = False,
    dtype: str | dict[str, str] | None = None,
    drop_unsupported: bool = False,
    skip_damaged: bool = False,
    allow_inf: bool = False,
    lossy: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Split: ...
def quantize(
    source: File | _Source,
    target: _Path | _Writable,
    *,
    type: str | None = None,
    bits: int = 4,
    group_size: int = 128,
    signed: bool = False,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    kind: str | None = None,
    rename: dict[str, str] | Callable[[str], str] | None = None,
    zstd: int | None = None,
    digest: _OwnDigest | None = "default",
    chunk_digests: str | None = "crc32c",
    planes: bool = False,
    dtype: str | dict[str, str] | None = None,
    drop_unsupported: bool = False,
    skip_damaged: bool = False,
    allow_inf: bool = False,
    lossy: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> Quantization: ...

def register_kind(kind: _Kind) -> None: ...
def register_format(
    name: str,
    to_dense: Callable[[dict[str, NDArray[Any]], tuple[int, ...], dict[str, Any]], Any],
    *,
    dtype: str | None = None,
) -> None: ...
def repair(
    path: _Path,
    target: _Path | None = None,
    *,
    overwrite: bool = False,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Recovery: ...
def load(
    source: File | _Source,
    *,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> dict[str, Any]: ...
def save(
    tensors: Mapping[str, Any],
    filename: _Path | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    kind: str | None = None,
    zstd: int | None = None,
    digest: str | None = "crc32c",
    planes: bool = False,
    sync: bool = True,
    threads: int | None = None,
    progress: _Progress | None = None,
    storage_options: dict[str, Any] | None = None,
) -> bytes | None: ...
def read_object(
    url: str, storage_options: dict[str, Any] | None = None, *, most: int = ...
) -> bytes: ...
def write_object(url: str, data: bytes, storage_options: dict[str, Any] | None = None) -> None: ...

# It is registered as a `Mapping` and does not inherit from it. Stubs cannot express that.
@final
class File(Mapping[str, Tensor]):
    @property
    def kind(self) -> str: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def warnings(self) -> list[FileWarning]: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def stored_nbytes(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> Tensor: ...
    @overload
    def get(self, name: str, default: None = None) -> Tensor | None: ...
    @overload
    def get(self, name: str, default: _T) -> Tensor | _T: ...
    def keys(self) -> KeysView[str]: ...
    def items(self) -> ItemsView[str, Tensor]: ...
    def values(self) -> ValuesView[Tensor]: ...
    def select(
        self,
        *,
        include: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        rename: dict[str, str] | Callable[[str], str] | None = None,
    ) -> File: ...
    def read_into(
        self,
        out: dict[str, Any],
        *,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> None: ...
    def verify(
        self,
        *,
        strict: bool = False,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> Verification: ...
    def report(self, path: _Path, *, detail: bool = False, overwrite: bool = False) -> None: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> Any: ...

@final
class Tensor:
    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def dense_dtype(self) -> str | None: ...
    @property
    def format(self) -> str: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    @property
    def components(self) -> dict[str, Component]: ...
    @property
    def nbytes(self) -> int: ...
    def numpy(self, *, copy: bool | None = None, writable: bool = False) -> _Array: ...
    def dense(self) -> _Array: ...
    def scipy(self) -> Any: ...
    def read_into(self, out: Any) -> None: ...
    def torch(
        self, device: str | _torch.device | None = None, copy: bool | None = None
    ) -> _torch.Tensor: ...
    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> _Array: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> _Array: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> Any: ...

@final
class Component:
    @property
    def role(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def encoding(self) -> str: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def stored_nbytes(self) -> int: ...
    @property
    def digest(self) -> str | None: ...
    def numpy(self) -> _Array: ...
    def __reduce__(self) -> Any: ...

@final
class Changes:
    @property
    def same(self) -> int: ...
    @property
    def changed(self) -> int: ...
    @property
    def whole(self) -> int: ...
    @property
    def removed(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

@final
class QuantizedGroup:
    def __new__(
        cls,
        *,
        packed_weight: Any,
        scales: Any,
        zeros: Any = None,
        shape: Sequence[int],
        bits: int,
        group_size: int,
        packing: str,
        signed: bool = False,
        zero_kind: str = "subtractive",
    ) -> Self: ...

@final
class Writer:
    def __new__(
        cls,
        target: _Path | _Writable,
        *,
        zstd: int | None = None,
        digest: str | None = "crc32c",
        chunk_digests: str | None = "crc32c",
        planes: bool = False,
        attributes: Mapping[str, Any] | None = None,
        threads: int | None = None,
        progress: _Progress | None = None,
        storage_options: dict[str, Any] | None = None,
    ) -> Self: ...
    def add(
        self,
        name: str,
        value: Any,
        *,
        attributes: Mapping[str, Any] | None = None,
        zstd: int | Literal["default"] | None = "default",
        digest: _OwnDigest | None = "default",
    ) -> None: ...
    def begin(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DTypeLike,
        *,
        zstd: int | Literal["default"] | None = "default",
        digest: _OwnDigest | None = "default",
    ) -> Pieces: ...
    def finish(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def __reduce__(self) -> Any: ...

@final
class Pieces:
    def write(self, piece: Any) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def __reduce__(self) -> Any: ...

@final
class Editor:
    @property
    def attributes(self) -> dict[str, Any]: ...
    def add(
        self, name: str, value: Any, *, attributes: Mapping[str, Any] | None = None
    ) -> None: ...
    def remove(self, name: str) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def commit(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def __reduce__(self) -> Any: ...

@final
class Verification:
    @property
    def ok(self) -> bool: ...
    @property
    def problems(self) -> list[Exception]: ...
    @property
    def warnings(self) -> list[FileWarning]: ...
    @property
    def unverified(self) -> list[tuple[str, str]]: ...
    @property
    def manifest_digest(self) -> bool | None: ...
    @property
    def nbytes(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class ContentHash:
    @property
    def content(self) -> str | None: ...
    @property
    def tensors(self) -> dict[str, dict[str, str] | Exception]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Finding:
    @property
    def code(self) -> str: ...
    @property
    def files(self) -> list[Path]: ...
    @property
    def message(self) -> str: ...
    @property
    def advice(self) -> str: ...
    @property
    def is_problem(self) -> bool: ...

@final
class Difference:
    @property
    def same(self) -> bool: ...
    @property
    def only_a(self) -> list[str]: ...
    @property
    def only_b(self) -> list[str]: ...
    @property
    def changed(self) -> dict[str, list[str]]: ...
    @property
    def attributes_differ(self) -> bool: ...
    def __bool__(self) -> bool: ...

@final
class Conversion:
    @property
    def tensors(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def left_out(self) -> list[str]: ...
    @property
    def damaged(self) -> list[str]: ...
    @property
    def duplicates(self) -> list[tuple[str, Path | None]]: ...
    @property
    def casts(self) -> dict[str, tuple[int, int, int, float | None]]: ...
    @property
    def warnings(self) -> list[FileWarning]: ...

@final
class Quantization:
    @property
    def errors(self) -> dict[str, tuple[float, float, float | None]]: ...
    @property
    def kept(self) -> list[str]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def left_out(self) -> list[str]: ...
    @property
    def warnings(self) -> list[FileWarning]: ...

@final
class Recovery:
    @property
    def verdict(self) -> str: ...
    @property
    def complete(self) -> bool: ...
    @property
    def tensors(self) -> list[str]: ...
    @property
    def nbytes(self) -> int | None: ...
    @property
    def warnings(self) -> list[FileWarning]: ...

@final
class Memory:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Plan(Iterator[tuple[str, Any]]):
    def names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __next__(self) -> tuple[str, Any]: ...
    def take(self, name: str) -> Any: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

# What `zt.safetensors` is made of.
@disjoint_base
class safe_open:
    def __new__(
        cls,
        filename: _Path,
        framework: str,
        device: str | int | None = "cpu",
        *,
        backend: str = "mmap",
    ) -> Self: ...
    def metadata(self) -> dict[str, str] | None: ...
    def keys(self) -> list[str]: ...
    def offset_keys(self) -> list[str]: ...
    def get_tensor(self, name: str) -> Any: ...
    def get_tensors(self) -> dict[str, Any]: ...
    def get_slice(self, name: str) -> PySafeSlice: ...
    def prefetch(
        self,
        plan: dict[str, _Index | None] | None = None,
        *,
        device: str | int | None = None,
        threads: int = 8,
    ) -> Plan: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _class: object, _value: object, _traceback: object) -> None: ...

@final
class _safe_open_handle(safe_open):
    def __new__(
        cls,
        f: Any,
        framework: str,
        device: str | int | None = "cpu",
        *,
        backend: str = "mmap",
    ) -> Self: ...

@final
class PySafeSlice:
    def get_shape(self) -> list[int]: ...
    def get_dtype(self) -> str: ...
    def __getitem__(self, key: _Index, /) -> Any: ...

@final
class TensorSpec:
    def __new__(cls, *, dtype: str, shape: Sequence[int], data_ptr: int, data_len: int) -> Self: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def data_len(self) -> int: ...

def serialize(
    tensor_dict: dict[str, TensorSpec], metadata: dict[str, str] | None = None
) -> bytes: ...
def serialize_file(
    tensor_dict: dict[str, TensorSpec], filename: _Path, metadata: dict[str, str] | None = None
) -> None: ...
def deserialize(bytes: bytes | bytearray) -> list[tuple[str, dict[str, Any]]]: ...

# What `zt.__main__` is made of.
def _program(arguments: Sequence[str]) -> int: ...

# What `zt.torch` is made of.
def _check_data(tensor: Tensor) -> None: ...
def _dlpack(tensor: Tensor, copy: bool | None) -> CapsuleType: ...
def _dlpack_component(component: Component) -> CapsuleType: ...
def _dlpack_many(
    tensors: Sequence[Tensor], threads: int | None, progress: _Progress | None
) -> list[CapsuleType]: ...
def _dlpack_part(tensor: Tensor, key: Any) -> CapsuleType: ...
def _has_same_blobs(tensor: Tensor, other: Tensor) -> bool: ...

# What `zt.average` and `zt.merge` are made of.
def _average(
    files: Sequence[File], weights: Sequence[float], dtype: str | None, allow_inf: bool
) -> File: ...
def _lora(
    base: File, adapter: _Path, scale: float | None, dtype: str | None, allow_inf: bool
) -> File: ...

# What `zt.delta` is made of.
def _delta(
    base: File | _Source,
    new: File | _Source,
    target: _Path | _Writable,
    overwrite: bool,
    threads: int | None,
    progress: _Progress | None,
    storage_options: dict[str, Any] | None,
) -> Changes: ...
def _file_of(
    tensors: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> File: ...
def _new_values(base: Tensor, new: Tensor, capsules: bool) -> list[Any] | None: ...
def _patch_in_place(
    path: _Path,
    deltas: Sequence[File | _Source],
    threads: int | None,
    progress: _Progress | None,
    storage_options: dict[str, Any] | None,
) -> None: ...
