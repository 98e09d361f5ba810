"""Work on whole files: progress, interruption, threads, processes; edits and conversions."""

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import zt
import zt.numpy


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large.zt"
    values = np.random.default_rng(1).standard_normal(4 << 20, dtype="f4")
    zt.numpy.save_file({str(at): values[at:] for at in range(4)}, path)
    return path


def test_an_edit_commits_at_the_end_of_its_block(tmp_path):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"a": np.zeros(2), "b": np.ones(2)}, path)
    with pytest.raises(RuntimeError), zt.edit(path) as edit:
        edit.remove("a")
        raise RuntimeError
    assert sorted(zt.open(path)) == ["a", "b"]
    with zt.edit(path) as edit:
        edit.remove("a")
        edit.rename("b", "c")
        edit.add("d", np.arange(3), attributes={"unit": "m"})
        edit.attributes["step"] = 7
        with pytest.raises(zt.TensorNotFoundError):
            edit.remove("nothing")
        with pytest.raises(zt.FileError) as locked:
            zt.edit(path)
        assert locked.value.code == "locked"
    with pytest.raises(zt.MisuseError, match="ended"):
        edit.remove("c")
    file = zt.open(path)
    assert sorted(file) == ["c", "d"] and file.attributes == {"step": 7}
    assert file["d"].attributes == {"unit": "m"}


def test_differences_and_identities(tmp_path):
    a, b = tmp_path / "a.zt", tmp_path / "b.safetensors"
    values = {"x": np.arange(4.0), "y": np.zeros(3)}
    zt.numpy.save_file(values, a)
    zt.numpy.save_file(values, b)
    assert zt.diff(a, b).same and not zt.diff(a, b)
    assert zt.hash(a) == zt.hash(zt.open(b)) and zt.hash(a).content.startswith("sha256:")
    assert zt.hash(a).tensors["x"]["data"] == zt.hash(b).tensors["x"]["data"]
    zt.numpy.save_file({"x": np.ones(4), "z": np.zeros(3)}, b)
    diff = zt.diff(a, b)
    assert (diff.only_a, diff.only_b, diff.changed) == (["y"], ["z"], {"x": ["values"]})


def test_a_report_is_a_page_of_one_file_or_of_two(tmp_path):
    a, b, page = tmp_path / "a.zt", tmp_path / "b.safetensors", tmp_path / "page.html"
    zt.numpy.save_file({"layers.0.w": np.arange(6.0).reshape(2, 3)}, a)
    zt.numpy.save_file({"layers.0.w": np.ones((2, 3))}, b)
    with zt.open(a) as file:
        file.report(page)
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "layers.0.w" in text and "a.zt" in text
    with pytest.raises(zt.MisuseError) as refused:
        zt.report(a, page, b)
    assert refused.value.code == "overwrite"
    assert page.read_text() == text
    zt.report(a, page, b, overwrite=True, detail=True)
    assert "b.safetensors" in page.read_text()
    zt.report(b.read_bytes(), page, sample=True, overwrite=True)
    with pytest.raises(zt.MisuseError):
        zt.report(a, page, b, sample=True, overwrite=True)
    assert "in memory" in page.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"a.zt", "b.safetensors", "page.html"}


def test_a_conversion_refuses_what_would_be_lost(tmp_path):
    a, b = tmp_path / "a.zt", tmp_path / "b.safetensors"
    zt.numpy.save_file({"x": np.arange(4.0)}, a, {"step": 7})
    done = zt.convert(a, b, dtype="bf16")
    assert done.tensors == 1 and [warning.code for warning in done.warnings] == ["lossy"]
    assert zt.open(b)["x"].dtype == "bf16"
    with pytest.raises(zt.MisuseError) as error:
        zt.convert(a, b)
    assert error.value.code == "overwrite"
    with pytest.raises(zt.MisuseError):
        zt.convert(a, tmp_path / "c.zt", dtype="f3")


def test_a_conversion_takes_a_choice_of_tensors_under_new_names(tmp_path):
    a, b, out = tmp_path / "a.zt", tmp_path / "b.npz", tmp_path / "out.zt"
    zt.numpy.save_file({"model.x": np.zeros(2), "model.y": np.ones(3), "step": np.ones(1)}, a)
    zt.numpy.save_file({"head": np.ones(4), "tail": np.ones(5)}, b)

    def names(**options):
        zt.convert([a, zt.open(b)], out, overwrite=True, **options)
        return sorted(zt.open(out))

    assert names() == ["head", "model.x", "model.y", "step", "tail"]
    assert names(include="model.*") == ["model.x", "model.y"]
    assert names(include=["model.?", "t*"], exclude="*.[y-z]") == ["model.x", "tail"]
    assert names(exclude=["model.*"], rename={"step": "steps"}) == ["head", "steps", "tail"]
    renamed = names(include="model.*", rename=lambda name: name.removeprefix("model."))
    assert renamed == ["x", "y"] and zt.open(out)["y"].numpy().tolist() == [1, 1, 1]
    with pytest.raises(zt.TensorNotFoundError, match="include"):
        names(include="nothing")
    with pytest.raises(zt.MisuseError) as error:
        names(rename=lambda name: "one")
    assert error.value.code == "duplicate-name"
    with pytest.raises(zt.MisuseError, match="empty"):
        names(rename=lambda name: "")
    with pytest.raises(ZeroDivisionError):
        names(rename=lambda name: 1 / 0)
    with pytest.raises(TypeError):
        names(include=3)
    with pytest.raises(zt.MisuseError) as error:
        zt.merge([a, a], tmp_path / "merged.zt")
    assert error.value.code == "duplicate-name"
    assert zt.merge([a, b], tmp_path / "merged.zt").tensors == 5


def test_a_choice_may_be_for_one_source_of_several(tmp_path):
    base, adapter, out = tmp_path / "base.zt", tmp_path / "adapter.npz", tmp_path / "out.zt"
    zt.numpy.save_file({"w": np.zeros(1), "pooler.w": np.zeros(2)}, base)
    zt.numpy.save_file({"a": np.ones(1), "pooler.w": np.ones(2)}, adapter)
    file = zt.open(adapter)
    zt.merge([base, file.select(exclude="pooler.*", rename={"a": "adapter.a"})], out)
    merged = zt.open(out)
    assert sorted(merged) == ["adapter.a", "pooler.w", "w"]
    assert merged["pooler.w"].numpy().tolist() == [0, 0]
    chosen = file.select(include=["pooler.*"], rename=lambda name: name.upper())
    assert list(chosen) == ["POOLER.W"] and chosen.path == adapter
    file.close()
    assert chosen["POOLER.W"].numpy().tolist() == [1, 1]
    with pytest.raises(zt.MisuseError) as error:
        zt.open(adapter).select(rename=lambda name: "one")
    assert error.value.code == "duplicate-name"
    with pytest.raises(zt.TensorNotFoundError, match="exclude"):
        chosen.select(exclude="*")
    with pytest.raises(zt.MisuseError) as error:
        zt.merge([base, chosen.select()], base)
    assert error.value.code == "overwrite"


def test_a_merge_chooses_between_tensors_of_one_name(tmp_path):
    a, b, out = tmp_path / "a.zt", tmp_path / "b.zt", tmp_path / "out.zt"
    zt.numpy.save_file({"x": np.zeros(2), "y": np.ones(3)}, a)
    zt.numpy.save_file({"x": np.ones(2)}, b)

    def merged(*sources, on_duplicate):
        done = zt.merge(sources, out, on_duplicate=on_duplicate, overwrite=True)
        return zt.open(out)["x"].numpy()[0], done.duplicates

    assert merged(a, b, on_duplicate="first") == (0, [("x", b)])
    assert merged(a, b, on_duplicate="last") == (1, [("x", a)])
    assert merged(a, a.read_bytes(), on_duplicate="same")[1] == [("x", None), ("y", None)]
    with pytest.raises(zt.MisuseError) as error:
        merged(a, b, on_duplicate="same")
    assert error.value.code == "duplicate-name"
    with pytest.raises(zt.MisuseError, match="on_duplicate"):
        merged(a, b, on_duplicate="neither")


def test_each_loss_is_allowed_by_name_and_a_damaged_tensor_by_skip_damaged_alone(tmp_path):
    path, out = tmp_path / "a.zt", tmp_path / "out.safetensors"
    values = {
        "good": np.arange(3.0),
        "damaged": np.ones(4),
        "wide": np.ones(2, "complex128"),
        "huge": np.full(2, 1e30),
    }
    zt.numpy.save_file(values, path)
    data = bytearray(path.read_bytes())
    data[zt.open(path)["damaged"].components["data"].offset] ^= 1
    path.write_bytes(data)

    def refused(**options):
        with pytest.raises(zt.ZtError) as error:
            zt.convert(path, out, **options)
        assert not out.exists()
        return error.value.code, error.value.object

    assert refused() == ("lossy", "wide")
    assert refused(lossy=True)[0] == "digest-mismatch"
    assert refused(drop_unsupported=True)[0] == "digest-mismatch"
    assert refused(skip_damaged=True) == ("lossy", "wide")
    assert refused(skip_damaged=True, drop_unsupported=True, dtype="f16") == ("lossy", "huge")
    every = {"skip_damaged": True, "drop_unsupported": True, "allow_inf": True, "dtype": "f16"}
    done = zt.convert(path, out, **every)
    assert (done.tensors, sorted(done.left_out), done.damaged) == (
        2,
        ["damaged", "wide"],
        ["damaged"],
    )
    assert sorted(zt.open(out)) == ["good", "huge"] and np.isinf(zt.open(out)["huge"].numpy()).all()
    done = zt.convert(path, out, exclude="damaged", lossy=True, dtype="f16", overwrite=True)
    assert (done.left_out, done.damaged) == (["wide"], [])


def test_a_conversion_keeps_digests_or_computes_others(tmp_path):
    path, out = tmp_path / "a.zt", tmp_path / "out.zt"
    zt.numpy.save_file({"a": np.arange(3.0)}, path, digest="sha256")

    def digest(**options):
        zt.convert(path, out, overwrite=True, **options)
        return zt.open(out)["a"].components["data"].digest

    assert digest().startswith("sha256:") and digest(digest="crc32c").startswith("crc32c:")
    assert digest(digest=None) is None
    with pytest.raises(zt.MisuseError, match="md5"):
        digest(digest="md5")


@pytest.mark.parametrize("level", [23, -8, 99, -999, 10**6])
def test_a_level_out_of_range_is_an_error(tmp_path, level):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"a": np.zeros(3)}, path, zstd=22)
    before = path.read_bytes()
    for work in (
        lambda: zt.Writer(path, zstd=level),
        lambda: zt.Writer(path).add("a", np.zeros(3), zstd=level),
        lambda: zt.Writer(path).begin("a", (3,), "f4", zstd=level),
        lambda: zt.numpy.save({"a": np.zeros(3)}, zstd=level),
        lambda: zt.convert(path, tmp_path / "b.zt", zstd=level),
    ):
        with pytest.raises(zt.MisuseError, match="-7 to 22"):
            work()
    assert path.read_bytes() == before


def test_values_are_compared_across_types_and_kinds(tmp_path):
    a, b = tmp_path / "a.zt", tmp_path / "b.safetensors"
    values = np.random.default_rng(1).standard_normal(1000, dtype="f4")
    zt.numpy.save_file({"x": values}, a, {"step": 7})
    zt.convert(a, b, dtype="bf16", lossy=True)
    assert zt.diff(a, b).changed == {"x": ["dtype"]} and zt.diff(a, b).attributes_differ
    assert zt.diff(a, b, only_values=True).changed == {"x": ["values"]}
    assert zt.diff(a, b, only_values=True, rtol=0.01).same
    assert not zt.diff(a, b, only_values=True, rtol=1e-6, atol=1e-6).same
    with pytest.raises(zt.MisuseError, match="at least 0"):
        zt.diff(a, b, rtol=-1)


def test_an_edit_of_what_cannot_be_edited_says_so(tmp_path):
    path = tmp_path / "a.npz"
    zt.numpy.save_file({"a": np.zeros(3)}, path)
    for source, what in [(path, "a npz file"), ("s3://bucket/a.zt", "a remote file")]:
        with pytest.raises(
            zt.UnsupportedError, match=f"{what} cannot be edited .* convert it first"
        ):
            zt.edit(source)


def test_a_folder_is_examined(tmp_path):
    names = [f"model-0000{at}-of-00002.zt" for at in (1, 2)]
    for name in names:
        zt.numpy.save_file({name: np.ones(2)}, tmp_path / name)
    (finding,) = zt.examine(tmp_path)
    assert finding.code == "no-index" and not finding.is_problem
    assert finding.files == [tmp_path / name for name in names]
    assert "zt index" in finding.advice and finding.message in str(finding)
    (tmp_path / names[0]).unlink()
    (finding,) = zt.examine(str(tmp_path))
    assert finding.code == "missing-shards" and finding.is_problem
    with pytest.raises(zt.MissingFileError):
        zt.examine(tmp_path / "none")
    for name, value in zip(names, (1, 2)):
        zt.numpy.save_file({"a": np.full(2, value)}, tmp_path / name)
    assert "were not compared" in zt.examine(tmp_path)[1].message
    assert "with other values" in zt.examine(tmp_path, values=True)[1].message


def test_a_torn_file_is_mended(tmp_path):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"x": np.arange(4.0)}, path)
    with path.open("ab") as file:
        file.write(b"the beginning of something else")
    with pytest.raises(zt.MalformedError):
        zt.open(path)
    saved = zt.repair(path, tmp_path / "saved.zt")
    assert saved.nbytes == (tmp_path / "saved.zt").stat().st_size
    assert zt.repair(path).verdict == "mendable"
    assert zt.open(path)["x"].numpy()[3] == 3


def test_what_a_repair_leaves_out_is_a_warning(tmp_path):
    path = tmp_path / "a.zt"
    zt.numpy.save_file({"x": np.arange(4.0), "y": np.ones(4)}, path)
    data = bytearray(path.read_bytes())
    data[zt.open(path)["x"].components["data"].offset] ^= 1
    path.write_bytes(data)
    with pytest.warns(zt.FileWarning, match="x/data: left out, digest-mismatch"):
        found = zt.repair(path, tmp_path / "saved.zt")
    (warning,) = found.warnings
    assert (warning.code, warning.object, warning.component) == ("lossy", "x", "data")


@pytest.mark.parametrize("work", ["save", "load", "verify", "convert"])
def test_progress_counts_bytes_and_stops_the_work(tmp_path, large, work):
    target = tmp_path / "new.zt"
    values = zt.numpy.load_file(large)

    def run(progress):
        match work:
            case "save":
                zt.numpy.save_file(values, target, progress=progress)
            case "load":
                zt.numpy.load_file(large, progress=progress)
            case "verify":
                zt.verify(large, progress=progress)
            case "convert":
                zt.convert(large, target, overwrite=True, progress=progress)

    caller, seen = threading.get_ident(), []

    def count(bytes):
        assert threading.get_ident() == caller
        seen.append(bytes)

    run(count)
    assert sum(seen) >= 4 * ((16 << 20) - 64)
    target.unlink(missing_ok=True)

    def stop(bytes):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        run(stop)


def seconds_until_ctrl_c_ends(work):
    """How long a call goes on after SIGINT, which comes 0.1 s after it began; it is begun anew until then."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # A shell starts what runs in the background with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, press)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(1000):
                work()
    finally:
        signal.signal(signal.SIGINT, before)
    return time.monotonic() - pressed[0]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Files of 256 MiB of noise, and the values."""
    folder = tmp_path_factory.mktemp("stored")
    noise = np.random.default_rng(1).standard_normal(8 << 20, dtype="f4")
    values = {str(at): noise + np.float32(at) for at in range(8)}
    zt.numpy.save_file(values, folder / "raw.zt", digest="sha256", sync=False)
    zt.numpy.save_file({"0": values["0"]}, folder / "zstd.zt", zstd=1, sync=False)
    zt.numpy.save_file(values, folder / "planes.zt", planes=True, sync=False)
    return folder, values


WORK = {
    "load": lambda folder, values, target: zt.numpy.load_file(folder / "raw.zt"),
    "load planes": lambda folder, values, target: zt.numpy.load_file(folder / "planes.zt"),
    "view": lambda folder, values, target: zt.open(folder / "raw.zt", verify="always")["0"].numpy(),
    "decode": lambda folder, values, target: zt.open(folder / "zstd.zt")["0"][:-1],
    # What cannot be stopped is the system's `fsync`.
    "save": lambda folder, values, target: zt.numpy.save_file(values, target, zstd=1, sync=False),
    "save raw": lambda folder, values, target: zt.numpy.save_file(values, target, sync=False),
    "verify": lambda folder, values, target: zt.verify(folder / "raw.zt"),
    "convert": lambda folder, values, target: zt.convert(
        folder / "raw.zt", target, zstd=1, overwrite=True
    ),
}


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_ends_work_at_once_and_leaves_nothing_behind(tmp_path, stored, work):
    target = tmp_path / "new.zt"
    call = partial(WORK[work], *stored, target)
    took = statistics.median(seconds_until_ctrl_c_ends(call) for _ in range(3))
    # 40 ms lie between two looks; the rest is for a busy machine.
    assert took < 1
    # Only a call that had ended has left its file.
    assert set(tmp_path.iterdir()) <= {target}


@pytest.mark.parametrize("options", [{}, {"zstd": 1}, {"planes": True}])
def test_progress_goes_on_within_a_tensor(tmp_path, options):
    values = np.random.default_rng(1).standard_normal(32 << 20, dtype="f4")
    seen = []

    def count(bytes):
        seen.append(bytes)
        time.sleep(0.001)

    zt.numpy.save_file({"a": values}, tmp_path / "a.zt", progress=count, sync=False, **options)
    assert sum(seen) == values.nbytes
    with zt.Writer(tmp_path / "b.zt", progress=seen.append, **options) as writer:
        seen.clear()
        writer.add("a", values)
    assert sum(seen) == values.nbytes
    assert len(seen) > 1, "the first 40 ms are not all of it"


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_replaced_whole_whether_the_disk_is_awaited_or_not(tmp_path, sync):
    path = tmp_path / "a.zt"
    for at in range(2):
        zt.numpy.save_file({"a": np.full(9, at)}, path, sync=sync)
        assert (zt.open(path)["a"].numpy() == at).all()
    with pytest.raises(TypeError):
        zt.numpy.save_file({"a": object()}, path, sync=sync)
    assert list(tmp_path.iterdir()) == [path] and zt.verify(path).ok


def test_one_file_serves_many_threads(large):
    file = zt.open(large)

    def total(at):
        tensor = file[str(at % 4)]
        return float(tensor.numpy().sum()) + float(tensor[-3:].sum())

    with ThreadPoolExecutor(8) as pool:
        totals = list(pool.map(total, range(32)))
    assert totals == totals[:4] * 8


def test_a_forked_child_works_after_parallel_work(large):
    code = f"""
import os, warnings
import zt, zt.numpy
warnings.simplefilter("ignore")
file = zt.open({str(large)!r})
assert file.verify().ok
writer = zt.Writer({str(large) + ".new.zt"!r})
child = os.fork()
if child == 0:
    assert zt.verify({str(large)!r}).ok
    assert file["1"].numpy().size and file["2"][:5].size == 5
    zt.numpy.save_file(zt.numpy.load_file({str(large)!r}), {str(large) + ".child.zt"!r}, zstd=1)
    del writer
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
writer.add("a", file["1"])
writer.finish()
assert zt.verify({str(large) + ".new.zt"!r}).ok and zt.verify({str(large) + ".child.zt"!r}).ok
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_interpreter_exits_during_work(large):
    code = f"""
import threading, time, zt
def work():
    while True:
        zt.verify({str(large)!r})
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, timeout=60, capture_output=True
    )
    assert done.returncode == 0, done.stderr


def test_work_runs_without_the_lock_of_the_interpreter(large):
    beats, stop = [], threading.Event()

    def beat():
        while not stop.wait(0.001):
            beats.append(1)

    thread = threading.Thread(target=beat)
    thread.start()
    for _ in range(5):
        zt.verify(large)
    stop.set()
    thread.join()
    assert beats
