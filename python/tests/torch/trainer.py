"""The two processes of a run of reinforcement learning, without the reinforcement."""

import torch

import zt
import zt.delta
import zt.torch


class Model(torch.nn.Module):
    """A language model of one layer, whose embedding is tied to its head."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(97, 64)
        self.up = torch.nn.Linear(64, 256)
        self.down = torch.nn.Linear(256, 64)
        self.norm = torch.nn.LayerNorm(64)
        self.head = torch.nn.Linear(64, 97, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        hidden = self.embed(tokens)
        hidden = self.norm(hidden + self.down(torch.relu(self.up(hidden))))
        return self.head(hidden)


def model():
    torch.manual_seed(7)
    return Model().bfloat16()


def steps(count):
    """The state after each step of AdamW on masters of f32, rounded to bf16."""
    torch.manual_seed(7)
    masters = Model()
    optimizer = torch.optim.AdamW(masters.parameters(), lr=1e-5)
    data = torch.Generator().manual_seed(3)
    for _ in range(count):
        tokens = torch.randint(0, 97, (4, 17), generator=data)
        logits = masters(tokens[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield {name: value.bfloat16() for name, value in masters.state_dict().items()}


def content(state):
    return zt.hash(zt.torch.save(state)).content


def work(base, deltas, options, results):
    """A worker: it loads the base from its store, and applies each delta that is announced."""
    worker = model()
    with zt.open(base, storage_options=options) as file:
        worker.load_state_dict({name: tensor.torch() for name, tensor in file.items()})
    places = {name: value.data_ptr() for name, value in worker.state_dict().items()}
    for delta in iter(deltas.get, None):
        zt.torch.apply_delta(worker, delta, storage_options=options)
        state = worker.state_dict()
        assert places == {name: value.data_ptr() for name, value in state.items()}
        results.put(content(state))
