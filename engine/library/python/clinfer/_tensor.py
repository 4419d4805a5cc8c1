"""Tensors between Python's buffer protocol and clinfer_tensor."""
from __future__ import annotations

import ctypes
from math import prod
from typing import Any

from clinfer._library import Tensor

try:
    import numpy
except ImportError:  # outputs are memoryviews then
    numpy = None  # type: ignore[assignment]

# By clinfer_type: name, format of the struct module.
TYPES = (("f32", "f"), ("f16", "e"), ("f64", "d"), ("i8", "b"), ("u8", "B"), ("i16", "h"), ("u16", "H"), ("i32", "i"),
         ("u32", "I"), ("i64", "q"), ("u64", "Q"), ("bool", "?"))
BY_NAME = {name: number for number, (name, _) in enumerate(TYPES)}
_SIZES = {"l": ("i32", "i64"), "L": ("u32", "u64")}  # long is of four bytes or eight
_BY_FORMAT = {form: number for number, (_, form) in enumerate(TYPES)} | {"c": BY_NAME["u8"]}


def _type_of(view: memoryview) -> int:
    form = view.format.lstrip("@=<")
    if form in _SIZES:
        return BY_NAME[_SIZES[form][view.itemsize == 8]]
    if form not in _BY_FORMAT:
        raise TypeError(f"elements of the format {view.format!r} are no tensor's; numbers of this machine's byte order are")
    return _BY_FORMAT[form]


def contiguous(value: Any) -> memoryview:
    """The bytes of an object in order, copied only where they do not lie so."""
    view = memoryview(value)
    if view.c_contiguous:
        return view
    copy = memoryview(view.tobytes())
    return copy.cast(view.format.lstrip("@=<"), view.shape) if view.nbytes else copy


def to_c(value: Any) -> tuple[Tensor, Any]:
    """A tensor of the library that views the object, and what must live as long."""
    view = contiguous(value)
    shape = (ctypes.c_int64 * max(view.ndim, 1))(*view.shape)
    raw = view.cast("B") if view.nbytes else memoryview(bytearray(1))
    whole = ctypes.c_char * len(raw)
    data = whole.from_buffer_copy(raw) if raw.readonly else whole.from_buffer(raw)  # ctypes views writable memory only
    return Tensor(ctypes.addressof(data), view.nbytes, shape, view.ndim, _type_of(view)), (view, shape, data)


def shaped(memory: Any, number: int, shape: tuple[int, ...]) -> Any:
    """Memory as an array of a type and shape: NumPy's where it is installed, else a memoryview."""
    name, form = TYPES[number]
    if numpy is not None:
        return numpy.frombuffer(memory, dtype="bool" if name == "bool" else form, count=prod(shape)).reshape(shape)
    view = memoryview(memory).cast("B")
    return view.cast(form, shape) if view.nbytes and shape else view.cast(form) if view.nbytes else view


def from_c(tensor: Tensor) -> Any:
    """A copy of a tensor of the library."""
    shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    return shaped(bytearray(ctypes.string_at(tensor.data, tensor.bytes)), tensor.type, shape)
