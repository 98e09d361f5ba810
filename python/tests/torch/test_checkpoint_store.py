"""Distributed checkpoints on a store of S3, which moto plays."""

import io

import pytest
import torch
import torch.distributed.checkpoint as dcp
from ranks import on_ranks
from test_checkpoint import DyingWriter, full, sharded
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh

import zt
import zt.torch
from zt.torch.checkpoint import ZtStorageReader, ZtStorageWriter

moto_server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")

KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region": "us-east-1"}


@pytest.fixture(scope="module")
def store():
    """The settings of a store, and a client that lists its bucket."""
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="models")
    yield KEYS | {"endpoint": url, "allow_http": True}, client
    server.stop()


def objects(client, prefix):
    listed = client.list_objects_v2(Bucket="models", Prefix=prefix)
    return {entry["Key"]: entry["ETag"] for entry in listed.get("Contents", [])}


def state_of(values):
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    return {"model": sharded(mesh, values), "step": 3}


def save(rank, url, options, kind=ZtStorageWriter):
    dcp.save(state_of(full()), storage_writer=kind(url, storage_options=options))


def save_and_die(rank, url, options):
    save(rank, url, options, DyingWriter)


def load(rank, url, options):
    wanted = full()
    state = state_of({name: torch.zeros_like(value) for name, value in wanted.items()})
    state["step"] = 0
    dcp.load(state, storage_reader=ZtStorageReader(url, storage_options=options))
    for name, value in wanted.items():
        assert torch.equal(state["model"][name].full_tensor(), value), name
    assert state["step"] == 3


def test_ranks_save_to_a_store_and_others_load_from_it(store):
    options, client = store
    url = "s3://models/run/step-1"
    on_ranks(2, save, url, options)
    before = objects(client, "run/")
    assert len(before) == 3 and "run/step-1/checkpoint.json" in before
    on_ranks(3, load, url, options)
    # A rank that is killed while it saves leaves the checkpoint as it was.
    with pytest.raises(Exception, match="SIGKILL|terminated|Connection|closed"):
        on_ranks(2, save_and_die, url, options)
    assert before.items() <= objects(client, "run/").items()
    on_ranks(1, load, url, options)


@pytest.mark.filterwarnings("ignore:.*single process")
def test_a_folder_that_was_copied_to_a_store_is_a_checkpoint_there(store, tmp_path):
    options, client = store
    dcp.save({"w": torch.ones(3)}, storage_writer=ZtStorageWriter(tmp_path))
    for path in tmp_path.iterdir():
        client.upload_file(str(path), "models", f"copied/{path.name}")
    state = {"w": torch.zeros(3)}
    reader = ZtStorageReader("s3://models/copied/", storage_options=options)
    dcp.load(state, storage_reader=reader)
    assert torch.equal(state["w"], torch.ones(3))


@pytest.mark.filterwarnings("ignore:.*single process")
def test_a_model_file_on_a_store_loads_as_a_checkpoint(store):
    options, client = store
    data = zt.torch.save({"w": torch.arange(4.0)}, kind="safetensors")
    client.upload_fileobj(io.BytesIO(data), "models", "llama-3.1/model.safetensors")
    state = {"w": torch.zeros(4)}
    url = "s3://models/llama-3.1/model.safetensors"
    dcp.load(state, storage_reader=ZtStorageReader(url, storage_options=options))
    assert torch.equal(state["w"], torch.arange(4.0))
    with pytest.raises(CheckpointException, match="nothing"):
        reader = ZtStorageReader("s3://models/nothing", storage_options=options)
        dcp.load(state, storage_reader=reader)
