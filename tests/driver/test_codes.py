"""Numbers of enums in the driver's interface, against NVIDIA's header in the test environment."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from pyptx.driver.codes import Code
from tests.driver.test_lookup import read_header

NUMBERS = {
    "calls.captures": {"_ADD": "CU_STREAM_ADD_CAPTURE_DEPENDENCIES", "_SET": "CU_STREAM_SET_CAPTURE_DEPENDENCIES"},
    "calls.events": {"_DISABLE_TIMING": "CU_EVENT_DISABLE_TIMING", "_EXTERNAL": "CU_EVENT_RECORD_EXTERNAL"},
    "calls.graph_nodes": {"_MOVE": "CU_GRAPH_USER_OBJECT_MOVE"},
    "calls.launches": {
        "_COOPERATIVE": "CU_LAUNCH_ATTRIBUTE_COOPERATIVE", "_CLUSTER": "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION",
    },
    "calls.memory": {
        "_DEVICE_MEMORY": "CU_MEMORYTYPE_DEVICE", "_HOST_MEMORY": "CU_MEMORYTYPE_HOST",
    },
    "calls.modules": {"_ERROR_LOG": "CU_JIT_ERROR_LOG_BUFFER", "_ERROR_LOG_SIZE": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"},
    "calls.pools": {
        "_LAST_SETTING": "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD",
        "_RESERVED_CURRENT": "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT",
        "_RESERVED_HIGH": "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH", "_USED_CURRENT": "CU_MEMPOOL_ATTR_USED_MEM_CURRENT",
        "_USED_HIGH": "CU_MEMPOOL_ATTR_USED_MEM_HIGH",
    },
    "calls.streams": {"_EXTERNAL": "CU_EVENT_WAIT_EXTERNAL"},
    "calls.user_objects": {
        "_NO_SYNCHRONIZATION": "CU_USER_OBJECT_NO_DESTRUCTOR_SYNC", "_MOVE": "CU_GRAPH_USER_OBJECT_MOVE",
    },
    "calls.virtual_memory": {"_NO_ACCESS": "CU_MEM_ACCESS_FLAGS_PROT_NONE"},
    "devices": {"MULTICAST_SUPPORTED": "CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED"},
    "captures": {
        "Mode.GLOBAL": "CU_STREAM_CAPTURE_MODE_GLOBAL", "Mode.THREAD_LOCAL": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
        "Mode.RELAXED": "CU_STREAM_CAPTURE_MODE_RELAXED", "Status.NONE": "CU_STREAM_CAPTURE_STATUS_NONE",
        "Status.ACTIVE": "CU_STREAM_CAPTURE_STATUS_ACTIVE",
        "Status.INVALIDATED": "CU_STREAM_CAPTURE_STATUS_INVALIDATED",
    },
    "graphs": {
        "AUTO_FREE": "CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH",
        "Change.NONE": "CU_GRAPH_EXEC_UPDATE_SUCCESS",
        "Change.TOPOLOGY": "CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED",
        "Change.NODE_TYPE": "CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED",
    },
    "modules": {
        "MAX_DYNAMIC_SHARED": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
        "NON_PORTABLE_CLUSTER": "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED",
    },
    "operations": {
        "_PROGRAMMATIC": "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
        "HOST_MEMORY": "CU_MEMORYTYPE_HOST", "DEVICE_MEMORY": "CU_MEMORYTYPE_DEVICE", "ARRAY": "CU_MEMORYTYPE_ARRAY",
        "ANY_MEMORY": "CU_MEMORYTYPE_UNIFIED", "Launch.kind": "CU_GRAPH_NODE_TYPE_KERNEL",
        "Copy.kind": "CU_GRAPH_NODE_TYPE_MEMCPY", "Fill.kind": "CU_GRAPH_NODE_TYPE_MEMSET",
        "HostCall.kind": "CU_GRAPH_NODE_TYPE_HOST", "Empty.kind": "CU_GRAPH_NODE_TYPE_EMPTY",
        "WaitEvent.kind": "CU_GRAPH_NODE_TYPE_WAIT_EVENT", "RecordEvent.kind": "CU_GRAPH_NODE_TYPE_EVENT_RECORD",
        "Allocate.kind": "CU_GRAPH_NODE_TYPE_MEM_ALLOC", "Free.kind": "CU_GRAPH_NODE_TYPE_MEM_FREE",
    },
    "pools": {
        "PINNED": "CU_MEM_ALLOCATION_TYPE_PINNED", "MANAGED": "CU_MEM_ALLOCATION_TYPE_MANAGED",
        "NO_LOCATION": "CU_MEM_LOCATION_TYPE_INVALID", "DEVICE": "CU_MEM_LOCATION_TYPE_DEVICE",
        "HOST": "CU_MEM_LOCATION_TYPE_HOST", "HOST_NUMA": "CU_MEM_LOCATION_TYPE_HOST_NUMA",
        "RELEASE_THRESHOLD": "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", "READ": "CU_MEM_ACCESS_FLAGS_PROT_READ",
        "READ_WRITE": "CU_MEM_ACCESS_FLAGS_PROT_READWRITE",
    },
    "streams": {"_NON_BLOCKING": "CU_STREAM_NON_BLOCKING"},
}  # fmt: skip
CASES = [(module, name, words) for module, names in NUMBERS.items() for name, words in names.items()]


@cache
def read_enumerators() -> dict[str, int]:
    """Return the value of each constant of the header's enums."""
    text = re.sub(r"/\*.*?\*/", "", read_header("cuda.h"), flags=re.DOTALL)
    defined = re.findall(r"^\s*#\s*define\s+(\w+)\s+(0[xX][0-9a-fA-F]+|\d+)\s*$", text, re.MULTILINE)
    values = {name: int(value, 0) for name, value in defined}
    for body in re.findall(r"typedef enum \w+\s*\{(.*?)\}", text, re.DOTALL):
        following = 0
        for entry in filter(str.strip, re.sub(r"//.*|#.*", "", body).split(",")):
            name, _, value = (part.strip() for part in entry.partition("="))
            following = eval(re.sub(r"(?<=[0-9a-fA-F])[uU]\b", "", f"({value})"), {}, values) if value else following
            values[name] = following
            following += 1
    return values


@pytest.mark.parametrize(("module", "name", "constant"), CASES, ids=[f"{module}.{name}" for module, name, _ in CASES])
def test_a_number_is_that_of_the_header(module: str, name: str, constant: str) -> None:
    value: Any = import_module(f"pyptx.driver.{module}")
    for part in name.split("."):
        value = getattr(value, part)
    assert value == read_enumerators()[constant]


@pytest.mark.parametrize("name", Code.__members__)
def test_a_result_has_the_number_of_the_header(name: str) -> None:
    assert Code[name] == read_enumerators()[f"CUDA_{name}"]


def test_attributes_of_devices_are_numbers_of_the_header() -> None:
    devices = import_module("pyptx.driver.devices")
    last = import_module("pyptx.driver.calls.devices")._LAST_ATTRIBUTE
    numbers = {value for name, value in read_enumerators().items() if name.startswith("CU_DEVICE_ATTRIBUTE_")}
    known = {number for device in devices.DEVICES.values() for number in devices.list_attributes(device, 0)}
    assert known <= numbers
    assert last >= max(known)
