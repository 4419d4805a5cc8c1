"""DLPack: tensors of other packages as inputs, and outputs on the device for other packages, without a copy on the host."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from clinfer._library import Tensor
from clinfer._tensor import BY_NAME, TYPES

if TYPE_CHECKING:
    from clinfer._request import Request

_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
OPENCL = 4  # kDLOpenCL: data is a cl_mem
ONEAPI = 14  # kDLOneAPI: data points to unified shared memory
_NAME = b"dltensor"
_SIZES = tuple(1 if name == "bool" else int(name[1:]) // 8 for name, _ in TYPES)
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # signed, unsigned, float, bool


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _DataType), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_pointer_of_id = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))

_live: dict[int, Any] = {}  # what exported tensors need, by address


@_DELETER
def _delete(managed: Any) -> None:
    _live.pop(ctypes.addressof(managed.contents), None)


@_DESTRUCTOR
def _destroy(capsule: int) -> None:
    if _is_valid(capsule, _NAME):  # nobody has taken it
        _live.pop(_pointer_of_id(capsule, _NAME), None)


def _type_of(dtype: _DataType) -> int:
    for number, (name, _) in enumerate(TYPES):
        kind, bits = ("b", 8) if name == "bool" else (name[0], int(name[1:]))
        if (dtype.code, dtype.bits, dtype.lanes) == (_CODES[kind], bits, 1):
            return number
    raise TypeError(f"a DLPack tensor of code {dtype.code}, {dtype.bits} bits and {dtype.lanes} lanes is no tensor here")


class Import:
    """A tensor of another package, as long as this object lives."""

    def __init__(self, value: Any) -> None:
        self._capsule = value.__dlpack__()
        tensor = _Managed.from_address(_pointer(self._capsule, _NAME)).tensor
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.type = _type_of(tensor.dtype)
        self.in_buffer = tensor.device_type == OPENCL
        self.in_usm = tensor.device_type == ONEAPI
        if tensor.device_type not in (*_HOST, OPENCL, ONEAPI):
            raise TypeError(f"the tensor lies on a device of DLPack's type {tensor.device_type}; here are host memory, OpenCL and "
                            "oneAPI")
        step = 1
        for i in reversed(range(tensor.ndim)):
            if tensor.strides and self.shape[i] > 1 and tensor.strides[i] != step:
                raise TypeError("the tensor does not lie row by row: make it contiguous")
            step *= self.shape[i]
        self.data, self.offset = tensor.data or 0, tensor.byte_offset
        self.bytes = step * _SIZES[self.type]

    def as_c(self) -> Tensor:
        """The tensor in host memory as the library takes it."""
        self._shape = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        return Tensor(self.data + self.offset, self.bytes, self._shape, len(self.shape), self.type)


class DeviceTensor:
    """An output of a request, in a buffer of OpenCL that the request owns: valid until the request is closed.

    It may be an input of another request (``set_input()``), and of packages that take DLPack tensors of OpenCL. Each inference
    writes it anew.
    """

    def __init__(self, request: Request, cl_mem: int, type: str, shape: tuple[int, ...]) -> None:
        self._request = request
        #: The cl_mem, as a number.
        self.cl_mem = cl_mem
        self.type = type
        self.shape = shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return OPENCL, 0

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        kind = "b" if self.type == "bool" else self.type[0]
        bits = 8 * _SIZES[BY_NAME[self.type]]
        shape = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        managed = _Managed()
        managed.tensor = _DLTensor(self.cl_mem, OPENCL, 0, len(self.shape), _DataType(_CODES[kind], bits, 1), shape, None, 0)
        managed.deleter = _delete
        address = ctypes.addressof(managed)
        _live[address] = (managed, shape, self)
        return _new(address, _NAME, _destroy)
