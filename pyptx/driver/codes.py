"""The result codes that the simulated driver returns, by their CUDA names, and the error that carries one."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Results of driver functions, without the prefix `CUDA_`."""

    SUCCESS = 0
    ERROR_INVALID_VALUE = 1
    ERROR_OUT_OF_MEMORY = 2
    ERROR_NOT_INITIALIZED = 3
    ERROR_DEINITIALIZED = 4
    ERROR_NO_DEVICE = 100
    ERROR_INVALID_DEVICE = 101
    ERROR_INVALID_IMAGE = 200
    ERROR_INVALID_CONTEXT = 201
    ERROR_NO_BINARY_FOR_GPU = 209
    ERROR_PEER_ACCESS_UNSUPPORTED = 217
    ERROR_INVALID_PTX = 218
    ERROR_UNSUPPORTED_PTX_VERSION = 222
    ERROR_INVALID_SOURCE = 300
    ERROR_FILE_NOT_FOUND = 301
    ERROR_INVALID_HANDLE = 400
    ERROR_ILLEGAL_STATE = 401
    ERROR_NOT_FOUND = 500
    ERROR_NOT_READY = 600
    ERROR_ILLEGAL_ADDRESS = 700
    ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    ERROR_LAUNCH_TIMEOUT = 702
    ERROR_PEER_ACCESS_ALREADY_ENABLED = 704
    ERROR_PEER_ACCESS_NOT_ENABLED = 705
    ERROR_PRIMARY_CONTEXT_ACTIVE = 708
    ERROR_CONTEXT_IS_DESTROYED = 709
    ERROR_ASSERT = 710
    ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712
    ERROR_HOST_MEMORY_NOT_REGISTERED = 713
    ERROR_ILLEGAL_INSTRUCTION = 715
    ERROR_MISALIGNED_ADDRESS = 716
    ERROR_INVALID_ADDRESS_SPACE = 717
    ERROR_INVALID_PC = 718
    ERROR_LAUNCH_FAILED = 719
    ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720
    ERROR_NOT_PERMITTED = 800
    ERROR_NOT_SUPPORTED = 801
    ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    ERROR_STREAM_CAPTURE_INVALIDATED = 901
    ERROR_STREAM_CAPTURE_MERGE = 902
    ERROR_STREAM_CAPTURE_UNMATCHED = 903
    ERROR_STREAM_CAPTURE_UNJOINED = 904
    ERROR_STREAM_CAPTURE_ISOLATION = 905
    ERROR_STREAM_CAPTURE_IMPLICIT = 906
    ERROR_CAPTURED_EVENT = 907
    ERROR_STREAM_CAPTURE_WRONG_THREAD = 908
    ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910
    ERROR_INVALID_CLUSTER_SIZE = 912
    ERROR_UNKNOWN = 999

    @property
    def spelling(self) -> str:
        """The name in CUDA's header."""
        return f"CUDA_{self.name}"

    @property
    def meaning(self) -> str:
        """The name as words."""
        return self.name.removeprefix("ERROR_").replace("_", " ").lower()


class DriverError(Exception):
    """A call that fails with a code. The text is printed if the code alone does not tell the user what to do."""

    def __init__(self, code: Code, text: str = "") -> None:
        super().__init__(text or code.meaning)
        self.code, self.text = code, text
