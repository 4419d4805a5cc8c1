"""Neural networks by OpenCL: models, requests and tensors of clinfer's engine.

    import clinfer
    with clinfer.Model("model.xml").compile("GPU") as model:
        scores = model(picture)[0]

Inputs are anything with the buffer protocol (NumPy arrays, memoryviews, array.array, bytes). Outputs are NumPy
arrays where NumPy is installed, else memoryviews of the same shape. Needs the library libclinfer.so.0; the
environment variable CLINFER_LIBRARY names another file.
"""
from clinfer._dlpack import DeviceTensor
from clinfer._library import Error, api_version, version
from clinfer._model import CompiledModel, Device, Layer, Model, Port, devices
from clinfer._request import AsyncQueue, Request

__all__ = ["AsyncQueue", "CompiledModel", "Device", "DeviceTensor", "Error", "Layer", "Model", "Port", "Request", "api_version", "devices",
           "version"]
__version__ = version()
