"""The devices that the driver can pretend to have: their facts change only together with their digests."""

from __future__ import annotations

import pytest

from pyptx.driver.devices import DEVICES, list_attributes
from tests.digests import assert_digest


@pytest.mark.parametrize("name", DEVICES)
def test_the_facts_of_a_device(name: str) -> None:
    device = DEVICES[name]
    facts = [device, device.capability, device.make_uuid(0), device.make_uuid(1)]
    attributes = [sorted(list_attributes(device, ordinal).items()) for ordinal in (0, 3)]
    assert_digest("devices", name, "\n".join(map(repr, [*facts, *attributes])))
