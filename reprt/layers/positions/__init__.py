"""How tokens learn where they stand, by name.

A new method is a module with a subclass of `Positional` and a line here, which makes it
a value of the models' setting `position`. `reprt.models.parts` names the settings that
are its arguments.
"""

from collections.abc import Mapping

from reprt.layers.positions.add import AddPositional
from reprt.layers.positions.alibi import AlibiPositional
from reprt.layers.positions.base import Positional
from reprt.layers.positions.concat import ConcatPositional
from reprt.layers.positions.relative import RelativePositional
from reprt.layers.positions.rotary import RotaryPositional
from reprt.layers.positions.untied import UntiedPositional

POSITIONS: Mapping[str, type[Positional]] = {
    "concat": ConcatPositional,
    "add": AddPositional,
    "none": Positional,
    "rotary": RotaryPositional,
    "relative": RelativePositional,
    "alibi": AlibiPositional,
    "untied": UntiedPositional,
}
