"""Fingerprints: the same for the same values, however stored; others for others."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evdist.stores import fingerprints
from evdist.stores.fingerprints import fingerprint

ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.uint32, np.int64, np.bool_]),
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6),
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


def test_values_that_must_never_change():
    """Stored fingerprints outlive a version of the package."""
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert fingerprint() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    found = fingerprint(a, 2.5, "euclidean", {"b": 1, "a": [None, True]})
    assert found == "8bf7910996e90e635ea9eef2114b6dc954c6ba4271023c9f1a30cb37a03d3e5a"


@given(array=ARRAYS, block=st.integers(1, 64))
def test_blocks_do_not_count(array, block):
    expected = fingerprint(array)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprints, "BLOCK_BYTES", block)
        assert fingerprint(array) == expected


def test_nor_does_where_and_how_an_array_is_kept(tmp_path):
    array = np.random.default_rng(0).normal(size=(50, 3))
    expected = fingerprint(array)
    np.save(tmp_path / "a.npy", array)
    assert fingerprint(np.load(tmp_path / "a.npy", mmap_mode="r")) == expected
    stored = zarr.create_array(tmp_path / "a.zarr", data=array, chunks=(7, 2))
    assert fingerprint(stored) == expected
    assert fingerprint(np.asfortranarray(array)) == expected
    assert fingerprint(array.astype(">f8")) == expected
    assert fingerprint(np.repeat(array, 2, axis=0)[::2]) == expected


@given(left=ARRAYS | PLAIN, right=ARRAYS | PLAIN)
def test_different_values_differ(left, right):
    def shown(value):
        array = isinstance(value, np.ndarray)
        return (value.dtype.str, value.shape, value.tobytes()) if array else repr(value)

    assert (fingerprint(left) == fingerprint(right)) == (shown(left) == shown(right))


def test_dtype_shape_and_the_cuts_between_parts_count():
    a = np.arange(12)
    found = {
        fingerprint(a),
        fingerprint(a.reshape(3, 4)),
        fingerprint(a.astype(np.int32)),
        fingerprint(a[:6], a[6:]),
        fingerprint(a[:7], a[7:]),
        fingerprint(a.tolist()),
        fingerprint("ab", "c"),
        fingerprint("a", "bc"),
        fingerprint(1),
        fingerprint(1.0),
        fingerprint(True),
        fingerprint("1"),
    }
    assert len(found) == 12


def test_numpy_scalars_and_the_order_of_keys_do_not_count():
    assert fingerprint({"a": np.float64(0.1), "b": np.int64(3)}) == fingerprint({"b": 3, "a": 0.1})
    assert fingerprint(np.array(3)) == fingerprint(np.int32(3)) == fingerprint(3)


def test_what_has_no_bytes_of_its_own_is_refused():
    with pytest.raises(TypeError, match="array of object has no bytes"):
        fingerprint(np.array([print, "a"], dtype=object))
    with pytest.raises(TypeError, match="values that JSON can write, got set"):
        fingerprint({1, 2})
