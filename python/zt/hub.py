"""State dicts in the shards that the Hugging Face Hub expects: names, sizes, and the index."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["save_torch_state_dict"]


def save_torch_state_dict(
    state_dict: Mapping[str, torch.Tensor],
    save_directory: str | os.PathLike[str],
    *,
    filename_pattern: str = "model{suffix}.zt",
    max_shard_size: int | str = "5GB",
    metadata: Mapping[str, str] | None = None,
    **options: Any,
) -> list[Path]:
    """Saves a state dict as ``huggingface_hub.save_torch_state_dict`` does, in files of zt.

    A single shard is ``model.zt``. Several are ``model-00001-of-00003.zt`` and so on, with the
    index ``model.zt.index.json``, by which ``zt.open`` opens the model. ``huggingface_hub`` chooses
    the shard of each tensor. Tied tensors share a shard, are stored once, and keep their names.

    Shards of an earlier save are removed once the new ones are complete.

    Args:
        state_dict: names and tensors.
        save_directory: the folder. It is made if it does not exist.
        filename_pattern: with ``{suffix}``; its extension is the kind of file.
        max_shard_size: in bytes, or a text such as ``"5GB"``. A larger tensor has its own shard.
        metadata: texts for the attributes of each shard.
        options: as for :func:`zt.torch.save_file`.

    Returns:
        The paths of the shards, and of the index behind them if there is one.
    """
    from huggingface_hub import split_torch_state_dict_into_shards

    from .torch import save_file

    folder = Path(save_directory)
    folder.mkdir(parents=True, exist_ok=True)
    split = split_torch_state_dict_into_shards(
        dict(state_dict), filename_pattern=filename_pattern, max_shard_size=max_shard_size
    )
    paths = []
    for filename, names in split.filename_to_tensors.items():
        tensors = {name: state_dict[name] for name in names}
        save_file(tensors, folder / filename, metadata, **options)
        paths.append(folder / filename)
    index = folder / f"{filename_pattern.format(suffix='')}.index.json"
    if split.is_sharded:
        content = {
            "metadata": {**(metadata or {}), **split.metadata},
            "weight_map": split.tensor_to_filename,
        }
        scratch = index.with_name(f".{index.name}.tmp")
        scratch.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        os.replace(scratch, index)
        paths.append(index)
    else:
        index.unlink(missing_ok=True)
    before, after = filename_pattern.split("{suffix}")
    shard = re.compile(rf"{re.escape(before)}(-\d{{5,}}-of-\d{{5,}})?{re.escape(after)}")
    for path in folder.iterdir():
        if shard.fullmatch(path.name) and path not in paths:
            path.unlink()
    return paths
