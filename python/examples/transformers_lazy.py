"""Loads a model of transformers from one file of any kind, reading each weight when it is needed.

    python transformers_lazy.py

It makes a small BERT, saves it as `.zt`, and loads it again with `from_pretrained`. With a model of
your own, give `from_pretrained` its config, and the path of a `.zt`, GGUF or `.pt` file to
`lazy_state_dict`.
"""

import tempfile
from pathlib import Path

import torch
import transformers

import zt.torch


def main() -> None:
    config = transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    source = transformers.BertModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.zt")
        zt.torch.save_model(source, path, zstd=3)
        # No name and no folder: the weights come out of the mapping, one by one.
        model = transformers.BertModel.from_pretrained(
            None, config=config, state_dict=zt.torch.lazy_state_dict(path), dtype="auto"
        ).eval()
        words = torch.tensor([[1, 2, 3, 4]])
        with torch.no_grad():
            same = torch.equal(model(words).last_hidden_state, source(words).last_hidden_state)
        print(f"{path.name}: {path.stat().st_size} bytes, same output: {same}")


if __name__ == "__main__":
    main()
