"""The functions of clinfer.h by ctypes: their types, and status codes as exceptions."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint8, c_uint64, c_void_p
from typing import Any

SONAME = "libclinfer.so.0"

STATUS_NAMES = ("OK", "BAD_MODEL", "NOT_FOUND", "UNSUPPORTED", "BAD_ARGUMENT", "NO_DEVICE", "OUT_OF_MEMORY", "DEVICE_FAILED",
                "IO", "CANCELLED", "NO_ANSWER")


class Error(RuntimeError):
    """What the engine refuses or fails with: one line that says what, where and what to do.

    ``code`` is the name of the status: "BAD_ARGUMENT", "NOT_FOUND", "CANCELLED", ...
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Tensor(ctypes.Structure):
    """clinfer_tensor."""

    _fields_ = [("data", c_void_p), ("bytes", c_size_t), ("shape", POINTER(c_int64)), ("rank", c_size_t), ("type", c_int)]


class PortText(ctypes.Structure):
    """clinfer_port."""

    _fields_ = [("name", c_char_p), ("shape", POINTER(c_int64)), ("rank", c_size_t), ("type", c_int)]


class LayerText(ctypes.Structure):
    """clinfer_layer."""

    _fields_ = [("name", c_char_p), ("type", c_char_p), ("device", c_char_p), ("reason", c_char_p), ("on_host", c_int)]


class Picture(ctypes.Structure):
    """clinfer_picture."""

    _fields_ = [("format", c_int), ("width", c_int), ("height", c_int), ("planes", POINTER(c_uint8) * 3), ("strides", c_int * 3),
                ("resize", c_int), ("color", c_int)]


CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int)

# Functions that return a status: their arguments. All others: the result, then the arguments.
_CHECKED: dict[str, list[Any]] = {
    "devices_list": [POINTER(c_void_p)],
    "model_read": [c_char_p, c_char_p, POINTER(c_void_p)],
    "model_read_bytes": [c_void_p, c_size_t, c_void_p, c_size_t, c_char_p, c_char_p, POINTER(c_void_p)],
    "config_create": [POINTER(c_void_p)],
    "config_set": [c_void_p, c_char_p, c_char_p],
    "compile": [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)],
    "compile_shared": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(c_void_p)],
    "compiled_context": [c_void_p, POINTER(c_void_p)],
    "compiled_port": [c_void_p, c_int, c_size_t, POINTER(PortText)],
    "compiled_find": [c_void_p, c_int, c_char_p, POINTER(c_size_t)],
    "request_create": [c_void_p, POINTER(c_void_p)],
    "request_set_input": [c_void_p, c_size_t, POINTER(Tensor)],
    "request_input_memory": [c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_size_t)],
    "request_set_input_buffer": [c_void_p, c_size_t, c_void_p, c_size_t],
    "request_set_picture": [c_void_p, c_size_t, c_size_t, POINTER(Picture)],
    "request_set_output_buffer": [c_void_p, c_size_t, c_void_p, c_size_t],
    "request_output_buffer": [c_void_p, c_size_t, POINTER(c_void_p)],
    "request_set_callback": [c_void_p, CALLBACK, c_void_p],
    "request_start": [c_void_p],
    "request_wait": [c_void_p, c_int64, POINTER(c_int)],
    "request_cancel": [c_void_p],
    "request_infer": [c_void_p],
    "request_output": [c_void_p, c_size_t, POINTER(Tensor)],
    "query": [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)],
    "layers_at": [c_void_p, c_size_t, POINTER(LayerText)],
    "model_with_devices": [c_void_p, POINTER(c_char_p), POINTER(c_char_p), c_size_t, POINTER(c_void_p)],
    "request_reset_states": [c_void_p],
    "request_state": [c_void_p, c_size_t, POINTER(Tensor)],
    "request_set_state": [c_void_p, c_size_t, POINTER(Tensor)],
    "request_set_input_pointer": [c_void_p, c_size_t, c_int, c_void_p, c_size_t],
    "request_set_output_pointer": [c_void_p, c_size_t, c_int, c_void_p, c_size_t],
}
_OTHERS: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "api_version": (c_uint, []),
    "last_error": (c_char_p, []),
    "type_size": (c_size_t, [c_int]),
    "type_name": (c_char_p, [c_int]),
    "devices_destroy": (None, [c_void_p]),
    "devices_count": (c_size_t, [c_void_p]),
    "devices_text": (c_char_p, [c_void_p, c_size_t, c_int]),
    "devices_memory": (c_uint64, [c_void_p, c_size_t]),
    "model_destroy": (None, [c_void_p]),
    "model_info": (c_char_p, [c_void_p, c_char_p]),
    "config_destroy": (None, [c_void_p]),
    "compiled_destroy": (None, [c_void_p]),
    "compiled_device": (c_char_p, [c_void_p]),
    "compiled_optimal_requests": (c_uint, [c_void_p]),
    "compiled_warning": (c_char_p, [c_void_p, c_size_t]),
    "compiled_count": (c_size_t, [c_void_p, c_int]),
    "request_destroy": (None, [c_void_p]),
    "request_explanation": (c_char_p, [c_void_p, c_size_t]),
    "layers_destroy": (None, [c_void_p]),
    "layers_count": (c_size_t, [c_void_p]),
}


def error_of(status: int) -> Error:
    """The exception for a status; its text is that of this thread's last failure."""
    return Error(call("last_error").decode("utf-8", "replace"), STATUS_NAMES[status])


def _check(status: int, *_: Any) -> int:
    if status != 0:
        raise error_of(status)
    return status


def _load() -> dict[str, Any]:
    name = os.environ.get("CLINFER_LIBRARY", SONAME)
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"{error}; install the package libclinfer0, or name the library in CLINFER_LIBRARY") from None
    functions = {}
    for short, arguments in _CHECKED.items():
        function = getattr(library, "clinfer_" + short)
        function.argtypes, function.restype, function.errcheck = arguments, c_int, _check
        functions[short] = function
    for short, (result, arguments) in _OTHERS.items():
        function = getattr(library, "clinfer_" + short)
        function.argtypes, function.restype = arguments, result
        functions[short] = function
    return functions


_functions = _load()


def call(name: str, *arguments: Any) -> Any:
    """Calls clinfer_NAME; raises Error where it fails."""
    return _functions[name](*arguments)


def made(name: str, *arguments: Any) -> c_void_p:
    """Calls clinfer_NAME with a further argument for its result, an object, which it returns."""
    result = c_void_p()
    call(name, *arguments, byref(result))
    return result


def text(value: str | os.PathLike[str]) -> bytes:
    """As C takes it: paths as the file system has them, other text as UTF-8."""
    return os.fsencode(value)


class Handle:
    """Owns an object of the library. ``close()`` or the end of a ``with`` block destroys it; so does the last reference."""

    _destroy = ""

    def __init__(self, handle: c_void_p) -> None:
        self._handle: c_void_p | None = handle

    @property
    def handle(self) -> c_void_p:
        if self._handle is None:
            raise ValueError(f"the {type(self).__name__} is closed")
        return self._handle

    def close(self) -> None:
        """Destroys the object; it cannot be used any more. Closing it again does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call(self._destroy, handle)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


def version() -> str:
    """The version of the library: "0.2.0"."""
    return call("version").decode()


def api_version() -> int:
    """CLINFER_API_VERSION of the library."""
    return call("api_version")
