"""Requests: one inference at a time, waited for, awaited or told by a call; and a queue of them."""
from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clinfer._dlpack import DeviceTensor, Import
from clinfer._library import CALLBACK, Error, Handle, Picture, Tensor, call, error_of, made
from clinfer._tensor import BY_NAME, contiguous, from_c, shaped, to_c

if TYPE_CHECKING:
    from clinfer._model import CompiledModel, Port

_FORMATS = {"rgb": (6, 3), "bgr": (7, 3), "rgbx": (8, 4), "bgrx": (9, 4), "grey": (12, 1), "gray": (12, 1)}
_RESIZE = {"stretch": 0, "letterbox": 1, "crop": 2}
_POINTERS = {"host": 0, "svm": 1, "usm": 2}
_COLORS = {"bgr": 0, "rgb": 1, "grey": 2, "gray": 2}


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


class Request(Handle):
    """One inference in flight, with memory of its own. What an input was set to stays until it is set anew.

    One thread uses it at a time; ``cancel()`` may come from any.
    """

    _destroy = "request_destroy"

    def __init__(self, model: CompiledModel) -> None:
        super().__init__(made("request_create", model.handle))
        self._model = model
        self._frames: dict[tuple[int, int], Any] = {}  # read until wait() has returned
        # Memory of others that inputs and outputs lie in.
        self._inputs: dict[int, Any] = {}
        self._outputs: dict[int, Any] = {}
        self._callback: Any = None

    def set_input(self, name: int | str, value: Any) -> None:
        """Copies a value of the input's shape; its type is converted where it is another one.

        Where the model's file leaves dimensions open, each inference may have other sizes there. Tensors of other packages are
        taken by DLPack; those in a buffer of OpenCL (``output_tensor()``) or in unified shared memory, of the model's context, stay
        on the device, and each start reads them.
        """
        index = self._model.input_index(name)
        if hasattr(value, "__dlpack_device__") and not _has_buffer(value):
            kept = Import(value)
            if kept.in_buffer or kept.in_usm:
                port = self._model.inputs[index]
                if (kept.shape, kept.type) != (port.shape, BY_NAME[port.type]):
                    raise ValueError(f"input {port.name} is {list(port.shape)} of {port.type}, the tensor is {list(kept.shape)}")
                if kept.in_buffer:
                    call("request_set_input_buffer", self.handle, index, kept.data, kept.offset)
                else:
                    call("request_set_input_pointer", self.handle, index, _POINTERS["usm"], kept.data + kept.offset, kept.bytes)
                self._inputs[index] = kept
                return
            tensor = kept.as_c()
        else:
            tensor, kept = to_c(value)
        call("request_set_input", self.handle, index, ctypes.byref(tensor))
        self._inputs.pop(index, None)

    def input_memory(self, name: int | str) -> Any:
        """An array to write the input to before each start, without a copy. Lives as long as the request."""
        index = self._model.input_index(name)
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        call("request_input_memory", self.handle, index, ctypes.byref(data), ctypes.byref(size))
        port = self._model.inputs[index]
        memory = (ctypes.c_char * size.value).from_address(data.value or 0)
        memory._request = self  # type: ignore[attr-defined]
        return shaped(memory, BY_NAME[port.type], port.shape)

    def set_picture(self, name: int | str, pixels: Any, format: str = "bgr", image: int = 0, resize: str = "stretch",
                    colors: str = "bgr") -> None:
        """Makes an image of the batch from a picture of any size, [height, width, channels] of bytes, on the device.

        ``format``: the order of its channels (rgb, bgr, rgbx, bgrx, grey); ``colors``: the order that the network wants;
        ``resize``: stretch, letterbox or crop. The picture must not change until the inference is over.
        """
        index = self._model.input_index(name)
        view = contiguous(pixels)
        number, channels = _FORMATS[format]
        fits = view.shape[2:] == (channels,) or (view.ndim == 2 and channels == 1)
        if view.itemsize != 1 or not fits:
            raise ValueError(f"a {format} picture is bytes of [height, width, {channels}], "
                             f"not {view.format} of {list(view.shape)}")
        height, width = view.shape[:2]
        tensor, kept = to_c(view)
        picture = Picture(number, width, height, resize=_RESIZE[resize], color=_COLORS[colors])
        picture.planes[0] = ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_uint8))
        picture.strides[0] = width * channels
        call("request_set_picture", self.handle, index, image, ctypes.byref(picture))
        self._frames[index, image] = kept

    def set_input_buffer(self, name: int | str, cl_mem: int, offset: int = 0) -> None:
        """A cl_mem of the model's context, as a number (pyopencl: ``buffer.int_ptr``); each start reads what it holds."""
        call("request_set_input_buffer", self.handle, self._model.input_index(name), cl_mem, offset)

    def set_output_buffer(self, name: int | str, cl_mem: int | None, offset: int = 0) -> None:
        """Sends an output to a cl_mem of the model's context from now on; None: to host memory again."""
        call("request_set_output_buffer", self.handle, self._model.output_index(name), cl_mem, offset)

    def set_input_memory(self, name: int | str, value: Any) -> None:
        """An array of the input's type and shape that each start reads where it lies; on a CPU without a copy, where it can.

        It may be written anew between two inferences. ``explain()`` says why it is copied.
        """
        index = self._model.input_index(name)
        tensor, kept = self._in_memory(value, self._model.inputs[index], f"input {name}")
        call("request_set_input_pointer", self.handle, index, _POINTERS["host"], tensor.data, tensor.bytes)
        self._inputs[index] = kept

    def set_output_memory(self, name: int | str, value: Any) -> None:
        """An array that each inference writes an output to; None: to the request's memory again.

        It has the shape and type of ``output()``, where floats are f32.
        """
        index = self._model.output_index(name)
        if value is None:
            call("request_set_output_pointer", self.handle, index, _POINTERS["host"], None, 0)
            self._outputs.pop(index, None)
            return
        port = self._model.outputs[index]
        port = replace(port, type="f32" if port.type in ("f16", "f64") else port.type)
        tensor, kept = self._in_memory(value, port, f"output {name}")
        call("request_set_output_pointer", self.handle, index, _POINTERS["host"], tensor.data, tensor.bytes)
        self._outputs[index] = kept

    @staticmethod
    def _in_memory(value: Any, port: Port, what: str) -> tuple[Tensor, Any]:
        view = memoryview(value)
        if view.readonly or not view.c_contiguous:
            raise ValueError(f"the array for {what} {'is read-only' if view.readonly else 'does not lie row by row'}")
        tensor, kept = to_c(view)
        if (view.shape, tensor.type) != (port.shape, BY_NAME[port.type]):
            raise ValueError(f"{what} is {list(port.shape)} of {port.type}, the array is {list(view.shape)} of {view.format}")
        return tensor, kept

    def set_input_pointer(self, name: int | str, kind: str, address: int, size: int) -> None:
        """Memory at an address, of ``size`` bytes, that each start reads: ``kind`` is host, svm or usm.

        svm is shared virtual memory of OpenCL, usm unified shared memory, both of the model's context. The memory must stay
        allocated until the input is set anew or the request is closed.
        """
        call("request_set_input_pointer", self.handle, self._model.input_index(name), _POINTERS[kind], address, size)

    def set_output_pointer(self, name: int | str, kind: str, address: int | None, size: int = 0) -> None:
        """Sends an output to memory at an address, likewise; None: to host memory again."""
        call("request_set_output_pointer", self.handle, self._model.output_index(name), _POINTERS[kind], address, size)

    def output_buffer(self, name: int | str) -> int:
        """Sends an output to a cl_mem that the request owns, and returns that as a number."""
        return made("request_output_buffer", self.handle, self._model.output_index(name)).value or 0

    def output_tensor(self, name: int | str = 0) -> DeviceTensor:
        """Sends an output to a buffer that the request owns, from now on, and returns that as a DLPack tensor of OpenCL."""
        index = self._model.output_index(name)
        port = self._model.outputs[index]
        return DeviceTensor(self, self.output_buffer(index), "f32" if port.type in ("f16", "f64") else port.type, port.shape)

    def explain(self) -> list[str]:
        """Why inputs and outputs in memory of others are copied, one line each; empty where none is."""
        lines: list[str] = []
        while (line := call("request_explanation", self.handle, len(lines))) is not None:
            lines.append(line.decode("utf-8", "replace"))
        return lines

    def set_callback(self, function: Callable[[Request, Error | None], None] | None) -> None:
        """Calls ``function(request, error)`` on a thread of the request's own after each inference; None: nothing.

        It may read outputs, set inputs and start the next one; it must neither wait nor close the request.
        """
        def completed(_user: int, _request: int, status: int) -> None:
            assert function is not None
            function(self, error_of(status) if status else None)

        callback = CALLBACK(completed) if function else CALLBACK()
        call("request_set_callback", self.handle, callback, None)
        self._callback = callback

    def start(self) -> None:
        """Begins an inference and returns at once."""
        call("request_start", self.handle)

    def wait(self, timeout: float | None = None) -> bool:
        """Sleeps until the inference is over, or so many seconds: False then. Raises what it failed with."""
        done = ctypes.c_int()
        milliseconds = -1 if timeout is None else max(0, int(timeout * 1000))
        call("request_wait", self.handle, milliseconds, ctypes.byref(done))
        return bool(done.value)

    def cancel(self) -> None:
        """Makes the inference in flight end soon; waiting for it raises Error with the code "CANCELLED"."""
        call("request_cancel", self.handle)

    def output(self, name: int | str = 0) -> Any:
        """A copy of an output of the last inference."""
        tensor = Tensor()
        call("request_output", self.handle, self._model.output_index(name), ctypes.byref(tensor))
        return from_c(tensor)

    @property
    def outputs(self) -> list[Any]:
        """Copies of all outputs."""
        return [self.output(i) for i in range(len(self._model.outputs))]

    def reset_states(self) -> None:
        """Gives all states their initial values, as at first: where another sequence begins."""
        call("request_reset_states", self.handle)

    def state(self, name: int | str = 0) -> Any:
        """A copy of a state (``CompiledModel.states``), which the last inference has left."""
        tensor = Tensor()
        call("request_state", self.handle, self._model.state_index(name), ctypes.byref(tensor))
        return from_c(tensor)

    def set_state(self, name: int | str, value: Any) -> None:
        """Sets a state, as by an inference; the type is converted where it is another one."""
        tensor, kept = to_c(value)
        call("request_set_state", self.handle, self._model.state_index(name), ctypes.byref(tensor))
        del kept

    def _set(self, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        for index, value in enumerate(values):
            self.set_input(index, value)
        for name, value in named.items():
            self.set_input(name, value)

    def infer(self, *values: Any, **named: Any) -> list[Any]:
        """Sets inputs in their order or by name, computes, and gives all outputs."""
        self._set(values, named)
        call("request_infer", self.handle)
        return self.outputs

    async def infer_async(self, *values: Any, **named: Any) -> list[Any]:
        """As infer(), while the event loop does other work. A task that is cancelled cancels the inference."""
        self._set(values, named)
        self.start()
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.wait)
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.outputs


class AsyncQueue:
    """Requests of a model that take turns: each inference goes to whichever is free.

        with clinfer.AsyncQueue(model) as queue:
            for picture in pictures:
                queue.start(done, picture)

    ``done(request, error)`` is called on a thread of the request's own; the end of the block waits for all.
    """

    def __init__(self, model: CompiledModel, requests: int = 0) -> None:
        self._all = [model.create_request() for _ in range(requests or model.optimal_requests)]
        self._idle = list(self._all)
        self._changed = threading.Condition()
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        return len(self._all)

    def start(self, done: Callable[[Request, Error | None], None], *values: Any, **named: Any) -> None:
        """Sleeps until a request is free, sets its inputs and starts it. Not within ``done``."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle)
            request = self._idle.pop()

        def completed(request: Request, error: Error | None) -> None:
            try:
                done(request, error)
            except BaseException as failure:  # is raised by wait(): this thread has nobody above it
                self._failure = self._failure or failure
            self._give_back(request)

        try:
            try:
                request.wait()  # until its thread has come back from the call that freed it
            except Error:
                pass  # the call was told
            request._set(values, named)
            request.set_callback(completed)
            request.start()
        except BaseException:
            self._give_back(request)
            raise

    def _give_back(self, request: Request) -> None:
        with self._changed:
            self._idle.append(request)
            self._changed.notify_all()

    def wait(self) -> None:
        """Sleeps until all that was started is over. Raises the first exception that ``done`` raised."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._idle) == len(self._all))
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Waits for all, and destroys the requests."""
        try:
            self.wait()
        finally:
            for request in self._all:
                request.close()

    def __enter__(self) -> AsyncQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
