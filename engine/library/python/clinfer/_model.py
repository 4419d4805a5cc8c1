"""Devices, models and compiled models."""
from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clinfer._library import Handle, LayerText, PortText, call, made, text
from clinfer._request import Request
from clinfer._tensor import TYPES, contiguous

_INPUT, _OUTPUT, _STATE = 0, 1, 2


@dataclass(frozen=True)
class Device:
    """An OpenCL device that the engine uses. ``id`` is its name for ``Model.compile()``: "GPU.0", "CPU.0"."""

    id: str
    name: str
    vendor: str
    platform: str
    driver: str
    version: str
    memory: int  # bytes


def devices() -> list[Device]:
    """The devices that there are: integrated GPUs first, then discrete ones, then CPUs."""
    handle = made("devices_list")
    try:
        return [Device(*(call("devices_text", handle, i, field).decode("utf-8", "replace") for field in range(6)),
                       memory=call("devices_memory", handle, i)) for i in range(call("devices_count", handle))]
    finally:
        call("devices_destroy", handle)


@dataclass(frozen=True)
class Port:
    """An input or output: its name, its type ("f32", "u8", ...) and its shape, as the model states them."""

    name: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A layer of a model, and the device that would compute it."""

    name: str
    type: str
    device: str
    on_host: bool  # the host computes it for that device
    reason: str  # why the device has no kernel for it; "" where it has one


@contextlib.contextmanager
def _config(keys: Mapping[str, Any]) -> Iterator[ctypes.c_void_p]:
    handle = made("config_create")
    try:
        for key, value in keys.items():
            value = ("NO", "YES")[value] if isinstance(value, bool) else str(value)
            call("config_set", handle, text(key), text(value))
        yield handle
    finally:
        call("config_destroy", handle)


def _shapes(shapes: str | Mapping[str | int, Any] | None) -> bytes | None:
    if shapes is None:
        return None
    if isinstance(shapes, str):
        return text(shapes)
    return text(";".join(f"{name}={','.join(map(str, shape))}" for name, shape in shapes.items()))


class Model(Handle):
    """A model as read: an OpenVINO IR (.xml, and the .bin beside it) or an ONNX model.

    ``shapes`` gives inputs shapes where the file leaves them open, or others than it states: "640x480" for the picture,
    or a mapping of names or numbers to shapes.
    """

    _destroy = "model_destroy"

    def __init__(self, path: str | os.PathLike[str], shapes: str | Mapping[str | int, Any] | None = None) -> None:
        super().__init__(made("model_read", text(path), _shapes(shapes)))

    @classmethod
    def from_bytes(cls, model: Any, weights: Any = b"", name: str = "a model in memory",
                   shapes: str | Mapping[str | int, Any] | None = None) -> Model:
        """Reads a model from memory: the text of an IR and its weights, or an ONNX model.

        Nothing of it is written to the cache folder unless CACHE_MODE="OPTIMIZE_SPEED" is set.
        """
        if isinstance(model, str):
            model = model.encode()
        parts = [bytes(contiguous(part)) for part in (model, weights)]
        return cls._of(made("model_read_bytes", parts[0], len(parts[0]), parts[1], len(parts[1]), text(name),
                            _shapes(shapes)))

    def info(self, key: str) -> str | None:
        """A value that the file states below <rt_info>, or an ONNX model's metadata: "model_info/labels"."""
        value = call("model_info", self.handle, text(key))
        return None if value is None else value.decode("utf-8", "replace")

    def compile(self, device: str = "GPU", config: Mapping[str, Any] | None = None, **keys: Any) -> CompiledModel:
        """Compiles it for a device ("GPU", "CPU", "AUTO", "MULTI:GPU.0,GPU.1", "HETERO:GPU,CPU").

        Keys of the engine are given by name, PERFORMANCE_HINT="THROUGHPUT"; True and False are YES and NO.
        """
        with _config({**(config or {}), **keys}) as settings:
            return CompiledModel(made("compile", self.handle, text(device), settings))

    def compile_shared(self, context: int, device: int | None = None, queue: int | None = None,
                       config: Mapping[str, Any] | None = None, **keys: Any) -> CompiledModel:
        """Compiles it in an OpenCL context of yours, all by number (pyopencl: ``context.int_ptr``).

        ``device``: one of the context's; None: its only one. ``queue``: one in order, to which requests enqueue all that they do;
        None: queues of the model's own.
        """
        with _config({**(config or {}), **keys}) as settings:
            return CompiledModel(made("compile_shared", self.handle, context, device, queue, settings))

    def query(self, device: str = "GPU", config: Mapping[str, Any] | None = None, **keys: Any) -> list[Layer]:
        """Which device of a list ("HETERO:GPU,CPU"; or one device) computes which layer, and why not. Compiles nothing."""
        with _config({**(config or {}), **keys}) as settings:
            handle = made("query", self.handle, text(device), settings)
        try:
            layers = []
            for index in range(call("layers_count", handle)):
                layer = LayerText()
                call("layers_at", handle, index, ctypes.byref(layer))
                name, kind, where, reason = (part.decode("utf-8", "replace")
                                             for part in (layer.name, layer.type, layer.device, layer.reason))
                layers.append(Layer(name, kind, where, bool(layer.on_host), reason))
            return layers
        finally:
            call("layers_destroy", handle)

    def with_devices(self, devices: Mapping[str, str]) -> Model:
        """The model with a device for each layer that query() lists, by the layer's name; HETERO obeys them."""
        names, places = (ctypes.c_char_p * len(devices))(), (ctypes.c_char_p * len(devices))()
        for i, (name, device) in enumerate(devices.items()):
            names[i], places[i] = text(name), text(device)
        return self._of(made("model_with_devices", self.handle, names, places, len(devices)))

    @classmethod
    def _of(cls, handle: ctypes.c_void_p) -> Model:
        model = cls.__new__(cls)
        Handle.__init__(model, handle)
        return model


class CompiledModel(Handle):
    """A model on a device, which threads may share. Call it for one inference."""

    _destroy = "compiled_destroy"

    def __init__(self, handle: ctypes.c_void_p) -> None:
        super().__init__(handle)
        self.inputs: tuple[Port, ...] = self._ports(_INPUT)
        self.outputs: tuple[Port, ...] = self._ports(_OUTPUT)
        #: Values that a request keeps from one inference to the next (ReadValue and Assign of an IR).
        self.states: tuple[Port, ...] = self._ports(_STATE)
        #: The device: "CPU.0".
        self.device: str = call("compiled_device", handle).decode()
        #: How many requests in flight keep the device busy.
        self.optimal_requests: int = call("compiled_optimal_requests", handle)

    def _ports(self, direction: int) -> tuple[Port, ...]:
        ports = []
        for index in range(call("compiled_count", self.handle, direction)):
            port = PortText()
            call("compiled_port", self.handle, direction, index, ctypes.byref(port))
            shape = tuple(port.shape[i] for i in range(port.rank))
            ports.append(Port(port.name.decode("utf-8", "replace"), TYPES[port.type][0], shape))
        return tuple(ports)

    @property
    def warnings(self) -> list[str]:
        """Settings that have no effect on this device, one line each."""
        lines: list[str] = []
        while (line := call("compiled_warning", self.handle, len(lines))) is not None:
            lines.append(line.decode("utf-8", "replace"))
        return lines

    @property
    def context(self) -> int:
        """The cl_context that the model uses, as a number. Models of one device share one."""
        return made("compiled_context", self.handle).value or 0

    def _index(self, direction: int, name: int | str) -> int:
        if isinstance(name, int):
            return name
        index = ctypes.c_size_t()
        call("compiled_find", self.handle, direction, text(name), ctypes.byref(index))
        return index.value

    def input_index(self, name: int | str) -> int:
        """The number of an input, by its name or a further name of its tensor."""
        return self._index(_INPUT, name)

    def output_index(self, name: int | str) -> int:
        """Likewise, of an output."""
        return self._index(_OUTPUT, name)

    def state_index(self, name: int | str) -> int:
        """Likewise, of a state."""
        return self._index(_STATE, name)

    def create_request(self) -> Request:
        """A request with memory of its own, for one inference at a time."""
        return Request(self)

    def __call__(self, *values: Any, **named: Any) -> list[Any]:
        """One inference: inputs in their order or by name; gives all outputs in their order."""
        with self.create_request() as request:
            return request.infer(*values, **named)
