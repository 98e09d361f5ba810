"""`zt.delta`, and `zt.open(delta, base=base)`."""

import io
import pickle

import ml_dtypes
import numpy
import pytest
from test_remote import HTTP, Store, store  # noqa: F401

import zt
import zt.delta
import zt.numpy

DTYPES = ["f8", "f4", "f2", "i8", "i1", "u2", "bool", "c8", "c16", ml_dtypes.bfloat16]
DTYPES += [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def weights(step=0):
    """A model at a step of its training: few values change, and `frozen` none."""
    random = numpy.random.default_rng(1)
    model = {
        "w": random.standard_normal((300, 1000)).astype("f4"),
        "half": random.standard_normal(70_000).astype(ml_dtypes.bfloat16),
        "frozen": random.standard_normal(5000).astype("f4"),
        "scalar": numpy.float32(step),
    }
    for past in range(1, step + 1):
        random = numpy.random.default_rng(past)
        model["w"].reshape(-1)[random.integers(0, 300_000, 900)] += numpy.float32(1e-3)
        model["half"][random.integers(0, 70_000, 700)] *= ml_dtypes.bfloat16(1.01)
    return model


@pytest.fixture
def files(tmp_path):
    """A base, and the deltas of three steps in a row."""
    zt.numpy.save_file(weights(), tmp_path / "base.zt")
    for step in 1, 2, 3:
        zt.delta.make(weights(step - 1), weights(step), tmp_path / f"{step}.zt")
    return tmp_path


def content(source):
    return zt.hash(source).content


def identity(model):
    return content(zt.numpy.save(model))


def test_a_delta_opens_as_its_result(files):
    with zt.open(files / "1.zt", base=files / "base.zt") as file:
        for name, value in weights(1).items():
            assert numpy.array_equal(file[name].numpy(), value), name
        assert numpy.array_equal(file["w"][100:103, ::7], weights(1)["w"][100:103, ::7])
        assert zt.verify(file).ok
        assert content(file) == identity(weights(1)) == content(file)
    assert (files / "1.zt").stat().st_size < (files / "base.zt").stat().st_size / 200


@pytest.mark.parametrize("check", [False, True])
def test_deltas_in_a_row_are_a_list_or_nested(files, check):
    base, *deltas = (files / name for name in ["base.zt", "1.zt", "2.zt", "3.zt"])
    listed = zt.open(deltas[2], base=[base, *deltas[:2]], check=check)
    file = zt.open(base)
    for delta in deltas:
        file = zt.open(zt.open(delta), base=file, check=check)
    assert content(listed) == content(file) == identity(weights(3))
    with pytest.raises(zt.WrongBaseError, match="is not the next delta"):
        zt.open(deltas[2], base=[base, deltas[0]], check=check)
    with pytest.raises(zt.MisuseError, match="`base` is an empty list"):
        zt.open(deltas[2], base=[])


def test_a_slice_reads_little_of_a_base_on_a_store(files, store):  # noqa: F811
    large = {"w": numpy.arange(4_000_000, dtype="f4"), "v": numpy.zeros(3, "f4")}
    store.files["base.zt"] = zt.numpy.save(large)
    changed = {name: value.copy() for name, value in large.items()}
    changed["w"][::1000] += 1
    store.files["d.zt"] = make(large, changed)
    url, sent = store.url("base.zt"), store.sent
    with zt.open(store.url("d.zt"), base=url, check=False, storage_options=HTTP) as file:
        assert numpy.array_equal(file["w"][2_000_000:2_000_010], changed["w"][2_000_000:2_000_010])
    assert store.sent - sent < 4_000_000


def make(base, new):
    sink = io.BytesIO()
    zt.delta.make(base, new, sink)
    return sink.getvalue()


def test_a_wrong_base_is_named(files):
    other = weights()
    other["half"][5] = 9
    zt.numpy.save_file(other, files / "other.zt")
    with pytest.raises(zt.WrongBaseError) as raised:
        zt.open(files / "1.zt", base=files / "other.zt")
    text = str(raised.value)
    assert identity(weights()) in text and identity(other) in text and '"half"' in text
    assert raised.value.code == "wrong-base" and isinstance(raised.value, ValueError)
    assert type(pickle.loads(pickle.dumps(raised.value))) is zt.WrongBaseError
    # Without the check, a changed tensor is verified when it is read.
    with pytest.raises(zt.DigestMismatchError):
        zt.open(files / "1.zt", base=files / "other.zt", check=False)["half"].numpy()
    with pytest.raises(zt.MisuseError, match="is no delta"):
        zt.open(files / "base.zt", base=files / "base.zt")


def test_calls_for_a_whole_file_check_a_base_that_was_not(files, tmp_path):
    base, new = {"same": numpy.ones(1), "w": numpy.ones(1)}, {"same": numpy.ones(1), "w": numpy.zeros(1)}
    zt.numpy.save_file(base | {"same": numpy.zeros(1)}, files / "other.zt")
    file = zt.open(make(base, new), base=files / "other.zt", check=False)
    assert [warning.code for warning in file.warnings] == ["base-unchecked"]
    target = tmp_path / "out.safetensors"
    for call in [
        lambda: zt.convert(file, target),
        lambda: zt.convert(file.select(include="s*"), target),
        lambda: zt.merge([file], target),
        lambda: zt.delta.make(base, file, target),
        lambda: zt.hash(file),
        lambda: zt.verify(file),
        lambda: zt.diff(file, file),
    ]:
        with pytest.raises(zt.WrongBaseError):
            call()
    assert not target.exists()
    right = zt.open(make(base, new), base=zt.numpy.save(base), check=False)
    zt.convert(right, target)
    assert zt.numpy.load_file(target)["w"][0] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_patches_have_the_new_values(dtype):
    old = (numpy.arange(90_000) % 250).astype(dtype).reshape(300, 300)
    new = old.copy()
    new[7:9, 3] = numpy.asarray(~old[7:9, 3].astype(bool)).astype(dtype)
    delta = make({"a": old, "b": old}, {"a": new, "b": old})
    [patch] = zt.delta.patches(delta, {"a": old, "b": old})
    assert (patch.name, patch.shape) == ("a", (300, 300))
    assert patch.values.dtype == new.dtype
    assert patch.indices.dtype == "int32" and list(patch.indices) == [2103, 2403]
    patched = old.copy().reshape(-1)
    patched[patch.indices] = patch.values
    assert patched.tobytes() == new.tobytes()


def test_a_patch_of_most_values_has_all_of_them(files):
    base = weights()
    new = base | {"w": base["w"] + 1, "new": numpy.ones((2, 3), "i4")}
    patches = {patch.name: patch for patch in zt.delta.patches(make(base, new), base)}
    assert patches.keys() == {"w", "new"}
    assert patches["w"].indices is None and patches["new"].indices is None
    assert numpy.array_equal(patches["w"].values, new["w"].reshape(-1))
    assert patches["new"].shape == (2, 3) and patches["new"].dtype == "i32"


def test_planes_and_zstd_are_patched_by_their_values(files):
    base = weights()
    zt.numpy.save_file(base, files / "planes.zt", planes=True, zstd=3)
    assert zt.open(files / "planes.zt")["w"].format == "zt.planes/1"
    patches = [
        list(zt.delta.patches(files / "1.zt", given)) for given in (base, files / "planes.zt")
    ]
    for plain, planes in zip(*patches, strict=True):
        assert plain[:3] == planes[:3] and plain.values.tobytes() == planes.values.tobytes()
        assert numpy.array_equal(plain.indices, planes.indices)


def test_patches_of_deltas_in_a_row(files):
    base, first, second = files / "base.zt", files / "1.zt", files / "2.zt"
    model = weights(1)
    for patch in zt.delta.patches(second, [base, first]):
        model[patch.name] = numpy.array(model[patch.name])
        model[patch.name].reshape(-1)[patch.indices] = patch.values
    assert identity(model) == identity(weights(2))
    with pytest.raises(zt.WrongBaseError, match='the first object that differs is "half"'):
        list(zt.delta.patches(second, base))


def test_a_patch_cannot_remove_or_rename(files):
    base = weights()
    rest = {name: value for name, value in base.items() if name != "frozen"}
    with pytest.raises(zt.UnsupportedError, match="removes 'frozen'"):
        list(zt.delta.patches(make(base, rest), base))
    with pytest.raises(zt.UnsupportedError, match="renames a tensor to 'ice'"):
        list(zt.delta.patches(make(base, rest | {"ice": base["frozen"]}), base))


def test_patch_writes_any_kind_and_joins(files):
    base, deltas = files / "base.zt", [files / f"{step}.zt" for step in (1, 2, 3)]
    zt.delta.patch(base, deltas, files / "new.safetensors")
    assert content(files / "new.safetensors") == identity(weights(3))
    with pytest.raises(zt.MisuseError, match="exists"):
        zt.delta.patch(base, deltas, files / "new.safetensors")
    both = zt.open(deltas[1], base=[base, deltas[0]])
    zt.delta.make(base, both, files / "joined.zt")
    zt.delta.patch(base, files / "joined.zt", files / "two.zt")
    assert content(files / "two.zt") == identity(weights(2))


def test_patch_in_place_changes_all_or_nothing(files):
    base = files / "base.zt"
    before = base.read_bytes()
    with pytest.raises(zt.WrongBaseError):
        zt.delta.patch(base, files / "2.zt")
    damaged = bytearray((files / "1.zt").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    for delta in bytes(damaged), (files / "1.zt").read_bytes()[:-40], before:
        with pytest.raises(zt.ZtError):
            zt.delta.patch(base, delta)
    assert base.read_bytes() == before
    zt.delta.patch(base, [files / "1.zt", files / "2.zt"])
    assert content(base) == identity(weights(2))
    after = base.read_bytes()
    with pytest.warns(zt.FileWarning, match="already") as caught:
        zt.delta.patch(base, [files / "1.zt", files / "2.zt"])
    assert [it.message.code for it in caught] == ["is-result"] and base.read_bytes() == after


def test_make_reports_and_keeps_files(files):
    new = weights(1) | {"new": numpy.ones(3, "f4")}
    del new["scalar"]
    target = files / "changes.zt"
    changes = zt.delta.make(files / "base.zt", new, target)
    assert (changes.same, changes.changed, changes.whole, changes.removed) == (1, 2, 1, 1)
    assert changes.nbytes == sum(value.nbytes for value in new.values())
    assert make(zt.open(files / "base.zt"), new) == target.read_bytes()
    with pytest.raises(zt.MisuseError, match="exists"):
        zt.delta.make(files / "base.zt", new, target)
    with pytest.raises(zt.UnsupportedError, match="is itself a delta"):
        zt.delta.make(files / "base.zt", target, files / "never.zt")
    with pytest.raises(TypeError, match="no file has elements"):
        zt.delta.make({"a": numpy.array(["text"])}, new, files / "never.zt")
