"""Checkpoints of ``torch.distributed.checkpoint`` as `.zt` files.

A checkpoint is a folder, on a disk or at a URL such as ``s3://bucket/run/step-100``. Each rank
writes one `.zt` file, and the coordinator writes ``checkpoint.json``, the index of all pieces. A
reader opens only files that the index names, so a save that fails at any point leaves the previous
checkpoint in the folder as it was.

>>> import tempfile, torch, torch.distributed.checkpoint as dcp
>>> folder = tempfile.mkdtemp()
>>> _ = dcp.save({"w": torch.arange(4.0)}, storage_writer=ZtStorageWriter(folder), no_dist=True)
>>> state = {"w": torch.zeros(4)}
>>> dcp.load(state, storage_reader=ZtStorageReader(folder), no_dist=True)
>>> state["w"]
tensor([0., 1., 2., 3.])

A checkpoint may be a delta of an earlier one: ``ZtStorageWriter(folder, base=earlier)``.

Tensors are data. Other values (an optimizer's step, a learning rate) are pickled by torch's own
planner: see :class:`ZtStorageReader`.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import torch
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

import zt

from .. import _zt
from ..delta import held
from ._memory import DTYPES, dtype_of, read_slice

__all__ = ["ZtStorageReader", "ZtStorageWriter"]

_Path = str | os.PathLike[str]

INDEX = "checkpoint.json"
FORMAT = "zt.checkpoint/1"
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES.values()}
# `rank-00003-9f86d081.zt`: the part after the rank differs in each save.
_FILE = re.compile(r"rank-\d{5,}-[0-9a-f]{8}\.zt")


@dataclass(frozen=True)
class _Place:
    """Where one item of a checkpoint is: an object of a file in the folder."""

    file: str
    name: str


class ZtStorageWriter(StorageWriter):
    """Writes a checkpoint: one `.zt` file for each rank, in parallel, published all or nothing.

    All ranks write into one folder, so they need a common file system or store. Each file is
    complete under its final name before the coordinator replaces the index. Then the coordinator
    removes files that no index names any more. A store keeps them: save each checkpoint under a URL
    of its own.

    Args:
        path: the folder, or its URL. It is made if it does not exist. A ``checkpoint_id`` given
            to ``dcp.save`` takes its place.
        zstd: a level, to compress the tensors; ``None`` stores them raw. Slices of compressed
            tensors are read without decoding the rest.
        digest: the checksum of each tensor: ``"crc32c"``, ``"sha256"``, or ``None``.
        threads: how many threads each rank compresses with; ``None`` takes all cores.
        base: the folder of an earlier checkpoint, or its URL. Each rank then writes only what
            changed in its slices since, as a delta; `zstd` and `digest` have no effect. After a
            change of the mesh, new slices are written whole. If `base` is itself a delta, a list:
            the first checkpoint, and the deltas after it in their order. A reader needs the base,
            so it must stay. A rank has all its slices on the CPU at the same time.
        storage_options: the settings of the store of a URL, as for :func:`zt.open`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        base: _Path | Sequence[_Path] | None = None,
        zstd: int | None = None,
        digest: Literal["crc32c", "sha256"] | None = "crc32c",
        threads: int | None = None,
        storage_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.path = _folder(path)
        self.base = _base(base, threads=threads, storage_options=storage_options)
        self.storage_options = storage_options
        self.zstd = zstd
        self.digest = digest
        self.threads = threads

    @property
    def checkpoint_id(self) -> str:
        """The folder: torch names it in its logs."""
        return str(self.path)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id is not None:
            self.path = _folder(checkpoint_id)

    # torch passes `rank` and `use_collectives` where the signature names `kwargs`.
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise ValueError(
                "ZtStorageWriter needs use_collectives=True: one index names the files of all ranks"
            )
        if self.base is not None:
            if self.base.path == self.path:
                raise ValueError(f"{self.path} cannot be its own base: a save replaces it")
            self.base.read_metadata()
            if not self.base.identity:
                raise ValueError(f"{self.base.path} is one file: a base is a folder with an index")
        if isinstance(self.path, Path):
            self.path.mkdir(parents=True, exist_ok=True)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [replace(plan, storage_data=rank) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        # Each save has new names: the files of the previous checkpoint must stay until the index is
        # replaced. The plan cannot have them, because torch may reuse an earlier plan.
        file = f"rank-{plan.storage_data:05}-{secrets.token_hex(4)}.zt"
        path = _join(self.path, file)
        results = []

        def resolve(item: WriteItem) -> tuple[str, torch.Tensor]:
            name, data = _object_name(item), _data(planner.resolve_data(item))
            size = data.numel() * data.element_size()
            results.append(WriteResult(item.index, size, _Place(file, name)))
            return name, data

        if self.base is not None and plan.items:
            old = self.base._pieces({_object_name(item): item.index for item in plan.items})
            new = dict(map(resolve, plan.items))
            zt.delta.make(
                old, new, path, threads=self.threads, storage_options=self.storage_options
            )
        elif plan.items:
            with zt.Writer(
                path,
                zstd=self.zstd,
                digest=self.digest,
                threads=self.threads,
                storage_options=self.storage_options,
            ) as writer:
                for item in plan.items:
                    writer.add(*resolve(item))
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        places = {result.index: result.storage_data for part in results for result in part}
        metadata.storage_data = places
        metadata.storage_meta = self.storage_meta()
        index = _to_json(metadata, places, self.base.identity if self.base else None)
        if isinstance(self.path, str):
            _zt.write_object(f"{self.path}/{INDEX}", index, self.storage_options)
            return
        _publish(self.path / INDEX, index)
        # Files of earlier checkpoints, and of saves that failed.
        current = {place.file for place in places.values()}
        for path in self.path.iterdir():
            if _FILE.fullmatch(path.name) and path.name not in current:
                path.unlink(missing_ok=True)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=self.checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return True


class ZtStorageReader(StorageReader):
    """Reads a checkpoint of :class:`ZtStorageWriter`, or any one model file, under any mesh.

    A rank reads only the slices that it needs, and verifies them. For that it reads whole MiB of a
    raw tensor, each with its digest. Of a compressed tensor it decodes only the frames of the
    slice. A tensor on the CPU is read in place; others take one copy.

    Args:
        path: the folder of the checkpoint. A model file of any kind (``model.safetensors``,
            ``model.gguf``) works too: each of its tensors is one piece. A ``checkpoint_id`` given
            to ``dcp.load`` takes its place. Both may be URLs.
        threads: how many slices are read at the same time; ``None`` takes 4.
        verify: as for :func:`zt.open`. With ``"never"``, narrow slices of columns read less.
        weights_only: values that are not tensors are pickles, and torch's planner unpickles them
            without a check. By default they are read with torch's restricted unpickler first,
            which refuses code. ``False`` leaves out this check.
        base: what the checkpoint is a delta of, as for :class:`ZtStorageWriter`. Slices are read
            from both.
        storage_options: the settings of the store of a URL, as for :func:`zt.open`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        base: _Path | Sequence[_Path] | None = None,
        threads: int | None = None,
        verify: Literal["on_read", "always", "never"] = "on_read",
        weights_only: bool = True,
        storage_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.path = _folder(path)
        self.storage_options = storage_options
        self.threads = threads
        self.verify = verify
        self.weights_only = weights_only
        self.base = _base(base, threads=threads, verify=verify, storage_options=storage_options)
        # The SHA-256 of the index, which is another one for each save.
        self.identity = ""
        self._places: dict[MetadataIndex, _Place] = {}
        self._files: dict[str, zt.File] = {}

    @property
    def checkpoint_id(self) -> str:
        """The folder or the file: torch names it in its logs."""
        return str(self.path)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id is not None:
            self.path = _folder(checkpoint_id)
        self._places = {}
        self._files = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        index = self._index()
        if index is None:
            with self._open(self.path) as file:
                metadata = _of_file(file)
        else:
            metadata, base = _from_json(_join(self.path, INDEX), index)
            self.identity = f"sha256:{sha256(index).hexdigest()}"
            self._expect_base(base)
        self._places = metadata.storage_data
        metadata.storage_meta = StorageMeta(checkpoint_id=self.checkpoint_id)
        return metadata

    def _index(self) -> bytes | None:
        """The index; ``None`` if the path is one file."""
        if isinstance(self.path, Path):
            return (self.path / INDEX).read_bytes() if self.path.is_dir() else None
        try:
            return _zt.read_object(f"{self.path}/{INDEX}", self.storage_options)
        except FileNotFoundError:
            return None

    def _expect_base(self, expected: str | None) -> None:
        """Checks that the base is the one that the index names."""
        if self.base is not None:
            self.base.read_metadata()
        found = self.base.identity if self.base is not None else None
        if found == expected:
            return
        path = str(self.path)
        if expected is None:
            raise zt.MisuseError(
                f"{path} is no delta: read it without base=", code="misuse", path=path
            )
        what = f"{self.base.path} with the index {found}" if self.base is not None else "no base"
        raise zt.WrongBaseError(
            f"{path} is a delta of the checkpoint with the index {expected}; base= gives {what}",
            code="wrong-base",
            path=path,
        )

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._places = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        items: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            items.setdefault(self._places[item.storage_index].file, []).append(item)
        with ThreadPoolExecutor(self.threads or 4) as pool:
            for file, wanted in items.items():
                with self._open_rank(file) as opened:
                    read = [pool.submit(self._read, opened, item, planner) for item in wanted]
                    for future in read:
                        future.result()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _open_rank(self, file: str) -> zt.File:
        """A rank's file. Of a delta, the file that it makes of the pieces of its base."""
        opened = self._open(_join(self.path, file) if file else self.path)
        if self.base is None:
            return opened
        places = self._places.items()
        pieces = {place.name: index for index, place in places if place.file == file}
        return zt.open(opened, base=held(self.base._pieces(pieces)))

    def _pieces(self, indices: Mapping[str, MetadataIndex]) -> dict[str, zt.Tensor]:
        """The pieces at these indices under new names; those that it does not have are left out."""
        pieces = {}
        for name, index in indices.items():
            place = self._places.get(index)
            if place is not None:
                if place.file not in self._files:
                    self._files[place.file] = self._open_rank(place.file)
                pieces[name] = self._files[place.file][place.name]
        return pieces

    def _open(self, path: str | Path) -> zt.File:
        # By position and not through a map: a rank reads few pages of a large file.
        return zt.open(path, mmap=False, verify=self.verify, storage_options=self.storage_options)

    def _read(self, file: zt.File, item: ReadItem, planner: LoadPlanner) -> None:
        tensor = file[self._places[item.storage_index].name]
        if item.type == LoadItemType.BYTE_IO:
            data = memoryview(tensor).tobytes()
            if self.weights_only:
                torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
            planner.load_bytes(item, io.BytesIO(data))
            return
        target = planner.resolve_tensor(item).detach()
        read_slice(tensor, item.storage_offsets, item.lengths, target)
        planner.commit_tensor(item, target)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return isinstance(_folder(checkpoint_id), str) or os.path.exists(checkpoint_id)


def _folder(path: str | os.PathLike[str]) -> str | Path:
    """A URL as it is, anything else as a path."""
    text = os.fspath(path)
    return text.rstrip("/") if "://" in text else Path(text)


def _base(base: _Path | Sequence[_Path] | None, **options: Any) -> ZtStorageReader | None:
    """The last checkpoint of `base`, on those before it."""
    if base is None:
        return None
    *before, last = [base] if isinstance(base, (str, os.PathLike)) else base
    return ZtStorageReader(last, base=before or None, **options)


def _data(value: torch.Tensor | io.BytesIO) -> torch.Tensor:
    if isinstance(value, io.BytesIO):
        return torch.frombuffer(value.getbuffer(), dtype=torch.uint8)
    return value


def _join(folder: str | Path, file: str) -> str | Path:
    return f"{folder}/{file}" if isinstance(folder, str) else folder / file


def _object_name(item: WriteItem) -> str:
    """The name of an item in its file: the tensor's name, and the first index of a piece."""
    data = item.tensor_data
    if data is None or data.chunk.sizes == data.size:
        return item.index.fqn
    return f"{item.index.fqn}[{','.join(map(str, data.chunk.offsets))}]"


def _publish(path: Path, data: bytes) -> None:
    """Puts a file in its place in one step, and syncs the folder."""
    scratch = path.with_name(f".{path.name}.tmp")
    with open(scratch, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _to_json(metadata: Metadata, places: dict[MetadataIndex, _Place], base: str | None) -> bytes:
    tensors, objects = {}, {}
    for fqn, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, BytesStorageMetadata):
            place = places[MetadataIndex(fqn)]
            objects[fqn] = {"file": place.file, "name": place.name}
            continue
        pieces = []
        for chunk in entry.chunks:
            place = places[MetadataIndex(fqn, chunk.offsets)]
            pieces.append(
                {
                    "offsets": list(chunk.offsets),
                    "shape": list(chunk.sizes),
                    "file": place.file,
                    "name": place.name,
                }
            )
        tensors[fqn] = {
            "dtype": str(entry.properties.dtype).removeprefix("torch."),
            "shape": list(entry.size),
            "pieces": pieces,
        }
    index = {"format": FORMAT, "tensors": tensors, "objects": objects}
    if base is not None:
        index["base"] = base
    if metadata.planner_data is not None:
        index["planner"] = metadata.planner_data
    return json.dumps(index, indent=1, sort_keys=True).encode()


def _from_json(path: str | Path, data: bytes) -> tuple[Metadata, str | None]:
    """The metadata, and the identity of the base of a delta."""
    try:
        index = json.loads(data)
        return _metadata(index), index.get("base")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise zt.MalformedError(
            f"{path}: this is no index of a checkpoint: {error!r}", code="schema", path=str(path)
        ) from error


def _metadata(index: dict[str, Any]) -> Metadata:
    if index["format"] != FORMAT:
        raise ValueError(f"its format is {index['format']!r}, not {FORMAT!r}")
    entries: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    places: dict[MetadataIndex, _Place] = {}
    for fqn, entry in index["tensors"].items():
        chunks = []
        for piece in entry["pieces"]:
            chunk = ChunkStorageMetadata(torch.Size(piece["offsets"]), torch.Size(piece["shape"]))
            chunks.append(chunk)
            places[MetadataIndex(fqn, chunk.offsets)] = _place(piece)
        entries[fqn] = _tensor_metadata(_DTYPES[entry["dtype"]], torch.Size(entry["shape"]), chunks)
    for fqn, entry in index["objects"].items():
        entries[fqn] = BytesStorageMetadata()
        places[MetadataIndex(fqn)] = _place(entry)
    planner = index.get("planner")
    if isinstance(planner, dict):
        # JSON has no tuples, and torch's planner has no lists.
        planner = {fqn: tuple(path) for fqn, path in planner.items()}
    return Metadata(entries, planner_data=planner, storage_data=places)


def _place(entry: dict[str, Any]) -> _Place:
    # A path could lead out of the folder.
    if not _FILE.fullmatch(entry["file"]):
        raise ValueError(f"{entry['file']!r} is not the name of a rank's file")
    return _Place(entry["file"], entry["name"])


def _of_file(file: zt.File) -> Metadata:
    """A model file as a checkpoint: each tensor is one piece."""
    entries: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    places: dict[MetadataIndex, _Place] = {}
    for name, tensor in file.items():
        shape = torch.Size(tensor.shape)
        start = torch.Size([0] * len(shape))
        entries[name] = _tensor_metadata(
            dtype_of(tensor), shape, [ChunkStorageMetadata(start, shape)]
        )
        places[MetadataIndex(name, start)] = _Place("", name)
    return Metadata(entries, storage_data=places)


def _tensor_metadata(
    dtype: torch.dtype, shape: torch.Size, chunks: list[ChunkStorageMetadata]
) -> TensorStorageMetadata:
    return TensorStorageMetadata(TensorProperties(dtype=dtype), shape, chunks)
