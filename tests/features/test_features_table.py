"""Tables with categories, dates and gaps become numbers whose columns weigh alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.spatial.distance import pdist
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist import ECM
from evdist.data.encode import MOST_LEVELS, OTHERS, Encoding, fit_encoding
from evdist.features import TableEncoder


@parametrize_with_checks([TableEncoder()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20.0, 30.0, np.nan, 50.0],
            "city": ["Oslo", "Rome", None, "Rome"],
            "member": [True, False, True, True],
            "since": pd.to_datetime(["2020-01-01", "2020-01-03", None, "2020-01-05"]),
            "zip": [100, 200, 100, 300],
        },
        index=["a", "b", "c", "d"],
    )


def kinds(encoder: TableEncoder) -> dict[str, str]:
    return {column.name: column.kind for column in encoder.encoding_.columns}


class TestKinds:
    def test_are_told_by_the_types(self):
        assert kinds(TableEncoder().fit(mixed())) == {
            "age": "number", "city": "category", "member": "category", "since": "date",
            "zip": "number",
        }  # fmt: skip

    def test_of_text_by_what_all_values_can_be_read_as(self):
        frame = pd.DataFrame(
            {"n": ["1", "2.5", None], "d": ["2020-01-01", "2021-02-03", None], "t": ["1", "x", "y"]}
        )
        assert kinds(TableEncoder().fit(frame)) == {"n": "number", "d": "date", "t": "category"}

    def test_numbers_that_are_names_are_said_to_be(self):
        encoder = TableEncoder(categories=["zip"]).fit(mixed())
        assert kinds(encoder)["zip"] == "category"
        assert "zip=300" in encoder.get_feature_names_out()
        with pytest.raises(ValueError, match="no column 'zap'"):
            TableEncoder(categories=["zap"]).fit(mixed())


class TestMissing:
    def test_numbers_and_dates_are_the_median(self):
        out = TableEncoder().fit_transform(mixed())
        assert out.loc["c", "age"] == pytest.approx((30 - 100 / 3) / np.std([20, 30, 50]))
        assert out.loc["c", "since"] == pytest.approx(0)

    def test_categories_are_no_level_and_half_as_far(self):
        out = TableEncoder().fit_transform(mixed()).filter(like="city=")
        assert (out.loc["c"] == 0).all()
        apart = ((out.loc["a"] - out.loc["b"]) ** 2).sum()
        assert ((out.loc["c"] - out.loc["a"]) ** 2).sum() == pytest.approx(apart / 2)

    def test_a_new_level_is_like_a_missing_one(self):
        encoder = TableEncoder().fit(mixed())
        new = mixed().assign(city="Lima")
        assert (encoder.transform(new).filter(like="city=") == 0).all(axis=None)

    def test_is_told(self):
        assert TableEncoder().fit(mixed()).encoding_.told() == [
            "Column 'age': 1 missing values are set to its median.",
            "Column 'city': 1 missing values count as no level.",
            "Column 'since': 1 missing values are set to its median.",
        ]

    def test_nothing_but_gaps_is_refused(self):
        with pytest.raises(ValueError, match="'empty' has no values"):
            TableEncoder().fit(mixed().assign(empty=None))


class TestWeights:
    def test_different_levels_are_as_far_apart_as_two_objects_in_a_number(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.normal(size=400), "c": rng.choice(["a", "b", "c"], 400)})
        out = TableEncoder().fit_transform(frame)
        assert (pdist(out[["x"]]) ** 2).mean() == pytest.approx(2, rel=0.01)
        assert set(np.round(pdist(out.filter(like="c=")) ** 2, 9)) == {0.0, 2.0}

    def test_a_rare_level_does_not_decide_alone(self):
        out = TableEncoder().fit_transform(pd.DataFrame({"c": ["a"] * 999 + ["b"]}))
        assert out.to_numpy().max() == 1

    def test_rare_levels_are_one(self):
        frame = pd.DataFrame({"c": ["a"] * 500 + ["b"] * 490 + list("cccccddddd")})
        encoder = TableEncoder().fit(frame)
        assert encoder.get_feature_names_out().tolist() == [f"c={OTHERS}", "c=a", "c=b"]
        out = encoder.transform(frame.iloc[[0, 990, 999]]).to_numpy()
        np.testing.assert_array_equal(out, [[0, 1, 0], [1, 0, 0], [1, 0, 0]])
        assert encoder.encoding_.told() == ["Column 'c': 2 rare levels are one."]

    def test_gower_is_gowers(self):
        frame = pd.DataFrame({"x": [0.0, 5.0, 10.0], "c": ["a", "b", "b"]})
        out = TableEncoder(scale="gower").fit_transform(frame)
        np.testing.assert_allclose(pdist(out, "cityblock") / 2, [(0.5 + 1) / 2, 1, 0.25])


class TestNames:
    def test_are_no_category(self):
        frame = pd.DataFrame({"name": [f"n{i}" for i in range(MOST_LEVELS + 1)]}).assign(x=1.0)
        with pytest.raises(ValueError, match=r"'name' has 101 different values.*say so with id"):
            TableEncoder().fit(frame)

    def test_all_columns_of_them_stand_in_one_error(self):
        frame = pd.DataFrame({"x": np.arange(20.0), "first": list("abcdefghijklmnopqrst")})
        frame["last"] = frame["first"] * 2
        with pytest.raises(ValueError, match=r"'first' has 20 .*'last' has 20 .*--drop-ids auto"):
            TableEncoder().fit(frame)

    def test_can_be_left_out(self):
        frame = pd.DataFrame({"x": np.arange(20.0), "first": list("abcdefghijklmnopqrst")})
        encoder = TableEncoder(drop_ids=True).fit(frame)
        assert encoder.get_feature_names_out().tolist() == ["x"]
        assert encoder.encoding_.told() == ["Left out, as names of objects: 'first'."]
        assert encoder.transform(frame).shape == (20, 1)
        assert encoder.encoding_.decoded(encoder.transform(frame).to_numpy()[:1]) == [["0"]]

    @pytest.mark.parametrize("drop_ids", [False, True])
    def test_alone_are_refused(self, drop_ids):
        frame = pd.DataFrame({"name": [f"n{i}" for i in range(16)]})
        with pytest.raises(ValueError, match="names alone cannot be clustered"):
            TableEncoder(drop_ids=drop_ids).fit(frame)


class TestErrors:
    def test_text_among_new_numbers_names_the_row(self):
        encoder = TableEncoder().fit(mixed())
        new = mixed().astype({"age": object})
        new.loc["b", "age"] = "old"
        with pytest.raises(ValueError, match="'age' holds a number in other rows, but row 1"):
            encoder.transform(new)


class TestPieces:
    def test_give_what_the_whole_gives(self):
        frame = pd.concat([mixed()] * 5, ignore_index=True)
        whole = fit_encoding([frame])
        assert fit_encoding([frame[:7], frame[7:]]) == whole
        np.testing.assert_array_equal(np.vstack([whole(frame[:7]), whole(frame[7:])]), whole(frame))

    def test_travel_as_json(self):
        encoding = fit_encoding([mixed()])
        assert Encoding.of_json(encoding.to_json()) == encoding


class TestPipeline:
    def test_ids_pass_through(self):
        model = make_pipeline(TableEncoder(), ECM(2, random_state=0)).fit(mixed())
        assert model[-1].credal_partition_.ids.tolist() == ["a", "b", "c", "d"]
        assert model.predict(mixed()).shape == (4,)

    def test_without_it_the_error_names_it(self):
        with pytest.raises(ValueError, match=r"'city' of X is not numeric.*TableEncoder"):
            ECM(2).fit(mixed()[["city"]])


def test_arrow_tables_are_taken_too():
    table = pa.table({"x": [1.0, 2.0, None], "c": ["a", "b", "b"]})
    assert TableEncoder().fit_transform(table).columns.tolist() == ["x", "c=a", "c=b"]
    numbers = pa.table({"x": [0.0, 0.1, 5.0, 5.1], "y": [0.0, 0.2, 5.0, 5.2]})
    assert ECM(2, random_state=0).fit(numbers).feature_names_in_.tolist() == ["x", "y"]
