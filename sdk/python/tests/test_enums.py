import copy
import enum
import pickle
import sys
from types import ModuleType

import pytest

from gristmill_plugin import enums


class Color(enum.Enum):
    RED = 0
    GREEN = 1


@pytest.fixture(autouse=True)
def quick():
    module = sys.modules[__name__]
    assert isinstance(module, ModuleType)
    if type(Color) is enum.EnumMeta:
        enums.quicken([module])


def test_values_are_found_by_number_and_by_name():
    assert Color(1) is Color.GREEN is Color["GREEN"]
    assert list(Color) == [Color.RED, Color.GREEN]
    with pytest.raises(ValueError, match="9 is no number of this enum"):
        Color(9)


def test_values_know_their_number_and_name():
    assert (Color.GREEN.value, Color.GREEN.name) == (1, "GREEN")
    assert repr(Color.RED) == "<Color.RED: 0>" and str(Color.RED) == "Color.RED"
    assert isinstance(Color.RED, Color) and Color.RED in Color


def test_values_stay_the_same_objects():
    assert copy.deepcopy(Color.RED) is Color.RED
    assert pickle.loads(pickle.dumps(Color.GREEN)) is Color.GREEN
    assert {Color.RED: 1}[Color(0)] == 1
