"""What each cluster is, in words and in the units of the table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from evdist import CredalPartition, FocalSets
from evdist.partition.columns import number, read_columns
from evdist.partition.describe import Description
from evdist.partition.telling import by_chance

KIND = np.repeat([0, 1, 2], 60)


@pytest.fixture(scope="module")
def partition() -> CredalPartition:
    """Three clusters of 60; the last two of cluster 0 lie between 0 and 1, object 179 outside."""
    focal = FocalSets.pairs(3)
    mass = np.zeros((180, len(focal)))
    mass[np.arange(180), focal.singletons[KIND]] = 0.9
    mass[:, focal.index([0, 1, 2])] = 0.1
    for row in (58, 59):
        mass[row] = 0.0
        mass[row, focal.index([0, 1])] = 1.0
    mass[179] = 0.0
    mass[179, 0] = 1.0
    return CredalPartition(mass, focal, ids=[f"c{i:03}" for i in range(180)])


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(180)],
            "age": rng.normal(np.array([25, 45, 70])[KIND], 3).round(),
            "spent": rng.normal(np.array([20, 90, 50])[KIND], 4),
            "city": np.where(KIND == 1, "Rome", rng.choice(["Oslo", "Lima"], 180)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 180), "D"),
            "noise": rng.normal(size=180),
        }
    )


@pytest.fixture(scope="module")
def said(partition, table) -> Description:
    return partition.describe(table)


def test_a_card_counts_sure_and_possible_members(said):
    assert [(card.labelled, card.sure, card.possible) for card in said] == [
        (60, 58, 60), (60, 60, 62), (59, 59, 59),
    ]  # fmt: skip
    assert said.n_outliers == 1
    assert said[2].size == "59 objects, all sure"


def test_a_headline_says_what_sets_a_cluster_apart_in_the_units_of_the_table(said):
    assert "age low, 23 to 27" in said[0].headline
    assert "city Rome" in str(said[1])
    assert {one.name for one in said[2].attributes} >= {"age", "spent"}
    assert all(one.name != "noise" for card in said for one in card.attributes)


def test_members_stand_against_the_others(said):
    age = next(one for one in said[2].attributes if one.name == "age")
    assert age.mean == pytest.approx(70, abs=2)
    assert age.others_mean == pytest.approx(35, abs=2)
    assert age.strength > 0.98
    city = next(one for one in said[1].attributes if one.name == "city")
    assert (city.levels[0].name, city.levels[0].share, city.levels[0].others) == ("Rome", 1.0, 0.0)
    assert city.line.startswith("Rome 100 % (others 0 %)")


def test_objects_between_are_on_the_border_of_both_clusters(said):
    assert [one.id for one in said[0].border] == ["c058", "c059"]
    assert said[0].border[0].open == (0, 1)
    assert [(t.cluster, t.objects) for t in said[0].touches] == [(1, 2)]
    assert said[2].touches == ()


def test_typical_members_are_sure_ones_with_usual_values(said, table):
    rows = [int(name[1:]) for name in said[2].typical]
    assert all(KIND[row] == 2 for row in rows)
    assert np.abs(table["age"].iloc[rows] - 70).max() <= 3


def test_columns_that_name_objects_are_left_out_and_named(said):
    assert "name objects or hold one value: name" in said.notes[0]


def test_a_description_survives_json(said):
    again = Description.of_json(json.loads(json.dumps(said.to_json())))
    assert again == said
    assert str(again) == str(said)


def test_arrow_tables_arrays_and_no_table_at_all_are_described(partition, table, said):
    assert partition.describe(pa.Table.from_pandas(table)).clusters == said.clusters
    plain = partition.describe(table[["age", "spent"]].to_numpy())
    assert "attribute 0 low" in plain[0].headline
    bare = partition.describe()
    assert (bare[0].headline, bare[0].attributes) == ("", ())
    assert bare[0].sure == 58


def test_many_columns_without_names_say_nothing(partition):
    found = partition.describe(np.random.default_rng(0).normal(size=(180, 50)))
    assert found[0].attributes == ()
    assert "50 columns without names" in found.notes[0]


def test_texts_are_told_by_the_words_that_are_theirs_alone(partition, table):
    words = np.array(["a puzzle game", "the music player", "some python library"])
    texts = [f"{one} and a program {i}" for i, one in enumerate(words[KIND])]
    found = partition.describe(table, text=texts)
    assert [set(card.words[:2]) for card in found] == [
        {"puzzle", "game"}, {"music", "player"}, {"python", "library"},
    ]  # fmt: skip
    assert found[0].headline.startswith(("puzzle, game", "game, puzzle"))
    again = partition.describe(table.assign(text=texts), text="text")
    assert [card.words for card in again] == [card.words for card in found]
    with pytest.raises(ValueError, match="one text for each of the 180 objects, got 2"):
        partition.describe(text=["a", "b"])


def test_where_nobody_is_sure_the_labelled_objects_are_described_and_a_note_says_so(table):
    focal = FocalSets.simple(3)
    mass = np.zeros((180, len(focal)))
    mass[:, focal.omega] = 0.9
    mass[np.arange(180), focal.singletons[KIND]] = 0.1
    found = CredalPartition(mass, focal).describe(table)
    assert found[0].note == "none is sure: described by all 60 labelled with it"
    assert "age low" in found[0].headline


def test_a_pattern_that_few_objects_may_show_by_chance_is_said_with_perhaps():
    labels = np.r_[np.zeros(40, int), np.ones(4, int)]
    x = np.r_[np.linspace(0, 1, 40), [0.7, 0.8, 0.9, 1.0]]
    found = CredalPartition.from_labels(labels).describe(pd.DataFrame({"x": x}))
    assert found[1].headline.startswith("perhaps x high")
    assert by_chance(4, 40, 1) > found[1].attributes[0].strength


def test_a_table_of_other_rows_is_refused(partition, table):
    with pytest.raises(ValueError, match="one row for each of the 180 objects"):
        partition.describe(table.iloc[:100])


def test_the_rows_of_a_table_may_come_in_any_order(partition, table, said):
    order = np.random.default_rng(1).permutation(180)
    found = partition[order].describe(table.iloc[order])
    assert [card.headline for card in found] == [card.headline for card in said]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (14.23, "14.2"), (2.346, "2.35"), (735459.0, "735,459"), (1982.4, "1982"),
     (0.0123, "0.012"), (-25.06, "-25.1"), (1e-5, "1e-05"), (3.0, "3")],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_kinds_of_columns():
    frame = pd.DataFrame(
        {
            "code": [1, 2, 3] * 10, "text": [f"{i}a" for i in range(30)],
            "row": range(30), "constant": 1, "flag": [True, False] * 15,
            "year": pd.to_datetime(["1970", "1975", "1982"] * 10),
            "gaps": [None, 1.5, 2.5] * 10, "words": ["3", "4.5", "7", "8", "9", "1"] * 5,
        }
    )  # fmt: skip
    found = read_columns(frame)
    assert {one.name: one.kind for one in found.columns} == {
        "code": "category", "flag": "category", "year": "date", "gaps": "category",
        "words": "number",
    }  # fmt: skip
    assert found.left_out == ("text", "row", "constant")
    assert next(one for one in found.columns if one.name == "year").said(4383) == "1982"


def test_levels_that_are_numbers_are_not_taken_for_counts() -> None:
    mass = np.zeros((40, 4))
    mass[:20, 1] = mass[20:, 2] = 1
    found = CredalPartition(mass, FocalSets.simple(2)).describe(
        pd.DataFrame({"warm": np.repeat([2, 1], 20), "age": np.repeat([30.0, 50.0], 20)})
    )
    warm = next(one for one in found[0].attributes if one.name == "warm")
    assert (warm.words, warm.line) == ("warm = 2", "2: 100 % (others 0 %)")
