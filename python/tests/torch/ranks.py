"""Runs a function on several ranks of gloo, each a process of its own."""

import os
import sys
import tempfile
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

PRELOADED = ["torch.distributed.checkpoint", "torch.distributed.fsdp", "torch.distributed.tensor"]


def on_ranks(count, function, *arguments):
    """Calls `function(rank, *arguments)` on each rank. The first failure is raised here."""
    with tempfile.TemporaryDirectory() as folder:
        # One server imports torch, which takes seconds, and forks a process for each rank.
        mp.get_context("forkserver").set_forkserver_preload(PRELOADED)
        mp.start_processes(
            _rank, (count, folder, function, arguments), nprocs=count, start_method="forkserver"
        )


def _rank(rank, count, folder, function, arguments):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(os.path.join(folder, "store"), count)
    dist.init_process_group(
        "gloo", rank=rank, world_size=count, store=store, timeout=timedelta(seconds=60)
    )
    try:
        function(rank, *arguments)
    finally:
        if sys.exc_info()[0] is None:
            dist.destroy_process_group()
