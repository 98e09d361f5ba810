"""A model loader for vLLM: ``--load-format zt``.

vLLM finds :func:`register` by its entry point, ``vllm.general_plugins``, in every process. You only
install this package::

    vllm serve ./model --load-format zt

The model is a folder, or a name on the Hub, with weights in `.zt`, GGUF or safetensors files. The
loader takes the first of these kinds that it finds. Each worker reads a tensor from a map when vLLM
asks for the next one, so no worker holds a second copy of the model.

vLLM needs a GPU and is not a dependency of this package. Its tests use a small stand-in with the
interface of vLLM's registration (``register_model_loader``, ``BaseModelLoader``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["register", "weights_of"]

LOAD_FORMAT = "zt"
SUFFIXES = (".zt", ".gguf", ".safetensors")


def register() -> None:
    """Registers the loader with vLLM, as the load format ``zt``."""
    from vllm.model_executor.model_loader import register_model_loader
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader

    @register_model_loader(LOAD_FORMAT)
    class ZtModelLoader(BaseModelLoader):
        """Loads the weights of a model from files that zt opens."""

        def download_model(self, model_config: Any) -> None:
            _folder(model_config, self.load_config)

        def load_weights(self, model: Any, model_config: Any) -> None:
            folder = _folder(model_config, self.load_config)
            loaded = model.load_weights(weights_of(folder))
            # Some models return the names of the parameters that they loaded.
            if loaded is not None and getattr(model_config, "quantization", None) is None:
                missing = {name for name, _ in model.named_parameters()} - set(loaded)
                if missing:
                    raise ValueError(
                        f"{folder}: the files have no weights for {', '.join(sorted(missing))}"
                    )


def weights_of(folder: str | Path) -> Iterator[tuple[str, torch.Tensor]]:
    """The names and tensors of the model in a folder, in turn, on the CPU.

    Reads the files that an index (``*.index.json``) names, or else all files of the first kind.

    Raises:
        FileNotFoundError: there are no weights of these kinds.
    """
    import torch

    from . import open as open_file
    from .torch._memory import to_torch

    for path in _files(Path(folder)):
        with open_file(path) as file:
            for name, tensor in file.items():
                yield name, to_torch(tensor, torch.device("cpu"))


def _files(folder: Path) -> list[Path]:
    for suffix in SUFFIXES:
        for index in sorted(folder.glob(f"*{suffix}.index.json")):
            names = json.loads(index.read_bytes())["weight_map"].values()
            return [index.parent / Path(name).name for name in sorted(set(names))]
        files = sorted(folder.glob(f"*{suffix}"))
        if files:
            return files
    raise FileNotFoundError(f"{folder}: no weights in {', '.join(SUFFIXES)} files")


def _folder(model_config: Any, load_config: Any) -> Path:
    """The folder of the model, downloaded from the Hub if it is a name there."""
    if Path(model_config.model).is_dir():
        return Path(model_config.model)
    from huggingface_hub import snapshot_download

    downloaded = snapshot_download(
        model_config.model,
        revision=getattr(model_config, "revision", None),
        cache_dir=getattr(load_config, "download_dir", None),
        allow_patterns=["*.json", *(f"*{suffix}" for suffix in SUFFIXES)],
    )
    return Path(downloaded)
