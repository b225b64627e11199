"""A warning is its text; copies of it keep the topic."""

import copy
import json
import pickle

from sparing.problem.warning_text import WarningText, WarningTopic, topic_of

WARNING = WarningText(WarningTopic.SEED_KEPT, "the run goes on with its seed")


def test_it_is_its_text():
    assert WARNING == "the run goes on with its seed"
    assert f"warning: {WARNING}; {' '.join([WARNING])}".count("its seed") == 2
    assert json.loads(json.dumps({"warnings": [WARNING]})) == {"warnings": [str(WARNING)]}


def test_copies_keep_the_topic():
    for again in (copy.deepcopy(WARNING), copy.copy(WARNING), pickle.loads(pickle.dumps(WARNING))):
        assert again == WARNING
        assert topic_of(again) is WarningTopic.SEED_KEPT
    assert topic_of(str(WARNING)) is None
