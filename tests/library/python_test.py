#!/usr/bin/env python3
"""The Python package: the bundled detector finds a ball by every way in and out, with NumPy and without; and what pip installs is the
package.

    python_test.py SOURCE      CLINFER_LIBRARY, OCL_ICD_VENDORS as in the environment; CLINFER_PYTHON: a Python with NumPy and pip
"""
import array
import asyncio
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
MODEL = SOURCE / "pipelines/models/ball.xml"
WIDTH, HEIGHT = 256, 192


def ball_at(x, y, width=WIDTH, height=HEIGHT, radius=16):
    """A white ball on black, a byte a pixel."""
    pixels = bytearray(width * height)
    for row in range(max(y - radius, 0), min(y + radius, height)):
        half = int((radius ** 2 - (row - y) ** 2) ** .5)
        pixels[row * width + x - half:row * width + x + half] = b"\xff" * (2 * half)
    return bytes(pixels)


def tensor_of(pixels):
    """The picture as floats in the network's shape."""
    return memoryview(array.array("f", list(pixels * 3))).cast("B").cast("f", (1, 3, HEIGHT, WIDTH))


def small(layers, edges):
    """A model as text; a layer: (type, opset, attributes, inputs, shape)."""
    def port(number, shape):
        return f"<port id='{number}' precision='FP32'>" + "".join(f"<dim>{dim}</dim>" for dim in shape) + "</port>"
    text = ""
    for number, (kind, opset, attributes, inputs, shape) in enumerate(layers):
        ins = "".join(port(i, shape) for i in range(inputs))
        out = "" if kind in ("Result", "Assign") else f"<output>{port(inputs, shape)}</output>"
        text += (f"<layer id='{number}' name='{kind}{number}' type='{kind}' version='opset{opset}'><data {attributes}/>"
                 + (f"<input>{ins}</input>" if ins else "") + out + "</layer>")
    wires = "".join("<edge from-layer='%d' from-port='%d' to-layer='%d' to-port='%d'/>" % edge for edge in edges)
    return f"<net name='small' version='11'><layers>{text}</layers><edges>{wires}</edges></net>"


def floats(*values, shape):
    return memoryview(array.array("f", values)).cast("B").cast("f", shape)


def listed(tensor):
    return list(memoryview(tensor).cast("B").cast("f"))


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = clinfer.Model(MODEL).compile("CPU", PERFORMANCE_HINT="LATENCY", PERF_COUNT=False)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def expect_ball(self, rows, x, y):
        first = [float(value) for value in memoryview(rows).cast("B").cast("f")[:7]]
        self.assertEqual(memoryview(rows).shape, self.model.outputs[0].shape)
        self.assertEqual(first[:2], [0, 1])
        self.assertGreater(first[2], .5)
        self.assertAlmostEqual((first[3] + first[5]) / 2 * WIDTH, x, delta=6)
        self.assertAlmostEqual((first[4] + first[6]) / 2 * HEIGHT, y, delta=6)

    def test_facts(self):
        self.assertRegex(clinfer.__version__, r"^\d+\.\d+\.\d+$")
        self.assertGreaterEqual(clinfer.api_version(), 1)
        devices = clinfer.devices()
        self.assertIn("CPU.0", [device.id for device in devices])
        self.assertTrue(all(device.memory > 0 and device.name for device in devices))
        self.assertEqual(self.model.inputs, (clinfer.Port("image", "f32", (1, 3, HEIGHT, WIDTH)),))
        self.assertEqual(self.model.device, "CPU.0")
        self.assertIsInstance(self.model.warnings, list)
        with clinfer.Model(MODEL) as model:
            self.assertEqual(model.info("model_info/labels"), "background ball")
            self.assertIsNone(model.info("no/such"))

    def test_calls(self):
        tensor = tensor_of(ball_at(60, 50))
        self.expect_ball(self.model(tensor)[0], 60, 50)
        self.expect_ball(self.model(image=tensor)[0], 60, 50)
        with clinfer.Model(MODEL, {"image": (1, 3, HEIGHT, WIDTH)}).compile("CPU") as other:
            self.expect_ball(other(tensor)[0], 60, 50)

    def test_types(self):
        pixels = ball_at(60, 50) * 3
        as_bytes = memoryview(pixels).cast("B", (1, 3, HEIGHT, WIDTH))  # converted, and read-only
        self.expect_ball(self.model(as_bytes)[0], 60, 50)
        doubles = memoryview(array.array("d", list(pixels))).cast("B").cast("d", (1, 3, HEIGHT, WIDTH))
        self.expect_ball(self.model(doubles)[0], 60, 50)
        if numpy is not None:
            picture = numpy.frombuffer(pixels, "u1").reshape(1, 3, HEIGHT, WIDTH)
            for value in (picture.astype("f2"), picture.astype("i8"), picture.astype("<f4"),
                          numpy.ascontiguousarray(picture[:, :, :, ::-1])[:, :, :, ::-1]):
                self.expect_ball(self.model(value)[0], 60, 50)
            self.assertIsInstance(self.model(picture)[0], numpy.ndarray)
            with self.assertRaises(TypeError):
                self.model(picture.astype("c8"))

    def test_inputs_stay(self):
        with self.model.create_request() as request:
            request.set_input("image", tensor_of(ball_at(60, 50)))
            for _ in range(2):
                request.start()
                self.assertTrue(request.wait())
                self.expect_ball(request.output(), 60, 50)
            memory = request.input_memory(0)
            for x in (180, 60):
                memoryview(memory).cast("B")[:] = tensor_of(ball_at(x, 120)).cast("B")
                self.expect_ball(request.infer()[0], x, 120)
            kept = request.output(0)
            request.infer(tensor_of(ball_at(60, 50)))
            self.expect_ball(kept, 60, 120)

    def test_memory(self):
        with self.model.create_request() as request:
            given = tensor_of(ball_at(60, 50))
            wanted = listed(request.infer(given)[0])
            there, rows = array.array("f", given.cast("B").cast("f")), array.array("f", [0] * len(wanted))
            place, result = memoryview(there).cast("B").cast("f", given.shape), memoryview(rows).cast("B").cast(
                "f", self.model.outputs[0].shape)
            request.set_input_memory("image", place)
            request.set_output_memory(0, result)
            for x in (180, 60):
                place.cast("B")[:] = tensor_of(ball_at(x, 120)).cast("B")
                request.start()
                self.assertTrue(request.wait())
                self.expect_ball(result, x, 120)
            self.assertRegex("".join(request.explain()), "channels last.*the host computes it")
            with self.assertRaisesRegex(clinfer.Error, "goes to memory of the application"):
                request.output(0)
            with self.assertRaises(BufferError):
                there.append(0)  # the request keeps it
            request.set_output_memory(0, None)
            self.assertEqual(listed(request.infer(given)[0]), wanted)
            address = there.buffer_info()[0]
            request.set_input_pointer("image", "host", address, given.nbytes)
            self.expect_ball(request.infer()[0], 60, 120)
            with self.assertRaisesRegex(clinfer.Error, "needs 589824 bytes"):
                request.set_input_pointer(0, "host", address, given.nbytes - 4)
            with self.assertRaisesRegex(ValueError, "is .1, 3, 192, 256. of f32, the array is"):
                request.set_input_memory(0, place.cast("B"))
            with self.assertRaisesRegex(ValueError, "read-only"):
                request.set_output_memory(0, result.toreadonly())
            with self.assertRaises(KeyError):
                request.set_input_pointer(0, "nothing", address, given.nbytes)
            self.expect_ball(request.infer()[0], 60, 120)

    def test_shared_virtual_memory(self):
        opencl = ctypes.CDLL("libOpenCL.so.1")
        opencl.clSVMAlloc.restype = ctypes.c_void_p
        opencl.clSVMAlloc.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint]
        opencl.clSVMFree.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        with clinfer.Model(MODEL) as model, model.compile_shared(self.model.context) as shared:
            self.assertEqual(shared.context, self.model.context)
            given = tensor_of(ball_at(60, 50))
            with shared.create_request() as request:
                memory = opencl.clSVMAlloc(shared.context, 1, given.nbytes, 0)
                if not memory:
                    self.skipTest("the device has no shared virtual memory")
                ctypes.memmove(memory, given.tobytes(), given.nbytes)  # a CPU has it where the host does
                request.set_input_pointer("image", "svm", memory, given.nbytes)
                self.expect_ball(request.infer()[0], 60, 50)
                request.set_input("image", tensor_of(ball_at(180, 120)))
                self.expect_ball(request.infer()[0], 180, 120)
            opencl.clSVMFree(shared.context, memory)
            with self.assertRaisesRegex(clinfer.Error, "no OpenCL context"):
                model.compile_shared(0)

    def test_pictures(self):
        with self.model.create_request() as request:
            grey = ball_at(360, 240, 2 * WIDTH, 2 * HEIGHT, 32)
            request.set_picture("image", memoryview(grey).cast("B", (2 * HEIGHT, 2 * WIDTH)), "grey")
            self.expect_ball(request.infer()[0], 180, 120)
            rgb = bytes(value for value in ball_at(60, 50) for _ in range(3))
            request.set_picture(0, memoryview(rgb).cast("B", (HEIGHT, WIDTH, 3)), "rgb", colors="bgr")
            self.expect_ball(request.infer()[0], 60, 50)
            with self.assertRaisesRegex(ValueError, r"\[height, width, 3\]"):
                request.set_picture(0, memoryview(grey).cast("B", (2 * HEIGHT, 2 * WIDTH)), "rgb")

    def test_from_memory(self):
        xml, weights = MODEL.read_bytes(), MODEL.with_suffix(".bin").read_bytes()
        for text in (xml, xml.decode(), bytearray(xml)):
            with clinfer.Model.from_bytes(text, weights).compile("CPU") as model:
                self.expect_ball(model(tensor_of(ball_at(60, 50)))[0], 60, 50)
        with self.assertRaisesRegex(clinfer.Error, "mine") as refused:
            clinfer.Model.from_bytes(xml, name="mine")
        self.assertEqual(refused.exception.code, "BAD_MODEL")

    def test_dlpack(self):
        text = small([("Parameter", 1, "element_type='f32' shape='2,3'", 0, (2, 3)), ("ReLU", 1, "", 1, (2, 3)), ("Result", 1, "", 1, (2, 3))],
                     [(0, 0, 1, 0), (1, 1, 2, 0)])
        config = {"INFERENCE_PRECISION": "f32"}
        with (clinfer.Model.from_bytes(text) as model, model.compile("CPU", config) as first, model.compile("CPU", config) as second,
              first.create_request() as a, second.create_request() as b):
            a.set_input(0, floats(-1, 2, -3, 4, -5, 6, shape=(2, 3)))
            on_device = a.output_tensor()
            self.assertEqual((on_device.type, on_device.shape, on_device.__dlpack_device__()), ("f32", (2, 3), (4, 0)))
            on_device.__dlpack__()  # nobody takes it
            b.set_input(0, on_device)
            a.start()
            a.wait()
            self.assertEqual(listed(b.infer()[0]), [0, 2, 0, 4, 0, 6])
            self.assertEqual(listed(b.infer(floats(*range(6), shape=(2, 3)))[0]), [0, 1, 2, 3, 4, 5])
            with self.assertRaisesRegex(ValueError, "input image"):
                self.model.create_request().set_input(0, on_device)
            if numpy is None:
                return

            class Other:  # a tensor of another package, which has no buffer
                def __init__(self, array):
                    self.array = array

                def __dlpack__(self, **_):
                    return self.array.__dlpack__()

                def __dlpack_device__(self):
                    return self.array.__dlpack_device__()

            values = numpy.arange(-3, 3, dtype="f4").reshape(2, 3)
            for array in (values, values.astype("i4"), values.astype("f2")):
                self.assertEqual(listed(b.infer(Other(array))[0]), [0, 0, 0, 0, 1, 2])
            with self.assertRaisesRegex(TypeError, "contiguous"):
                b.set_input(0, Other(numpy.zeros((3, 2), "f4").T))

    def test_states(self):
        text = small([("Parameter", 1, "element_type='f32' shape='1,2'", 0, (1, 2)),
                      ("ReadValue", 6, "variable_id='total' variable_type='f32' variable_shape='1,2'", 0, (1, 2)),
                      ("Add", 1, "", 2, (1, 2)), ("Assign", 6, "variable_id='total'", 1, (1, 2)), ("Result", 1, "", 1, (1, 2))],
                     [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (2, 2, 4, 0)])
        with clinfer.Model.from_bytes(text).compile("CPU") as model, model.create_request() as request:
            self.assertEqual(model.states, (clinfer.Port("total", "f32", (1, 2)),))
            one = floats(1, 2, shape=(1, 2))
            self.assertEqual(listed(request.infer(one)[0]), [1, 2])
            self.assertEqual(listed(request.infer(one)[0]), [2, 4])
            self.assertEqual(listed(request.state("total")), [2, 4])
            request.reset_states()
            self.assertEqual(listed(request.state()), [0, 0])
            self.assertEqual(listed(request.infer(one)[0]), [1, 2])
            request.set_state("total", floats(10, 20, shape=(1, 2)))
            self.assertEqual(listed(request.infer(one)[0]), [11, 22])
            with self.assertRaisesRegex(clinfer.Error, "there are total"):
                request.state("other")
        self.assertEqual(self.model.states, ())

    def test_open_shapes(self):
        text = small([("Parameter", 1, "element_type='f32' shape='?,2'", 0, (-1, 2)), ("ReLU", 1, "", 1, (-1, 2)),
                      ("Result", 1, "", 1, (-1, 2))], [(0, 0, 1, 0), (1, 1, 2, 0)])
        with clinfer.Model.from_bytes(text).compile("CPU") as model, model.create_request() as request:
            for rows in (1, 3, 2, 3):
                output = request.infer(floats(*range(-1, 2 * rows - 1), shape=(rows, 2)))[0]
                self.assertEqual(memoryview(output).shape, (rows, 2))
                self.assertEqual(listed(output), [0, *range(0, 2 * rows - 1)])
            with self.assertRaisesRegex(clinfer.Error, r"\[\?,2\]"):
                request.infer(floats(1, 2, 3, shape=(1, 3)))

    def test_layers(self):
        with clinfer.Model(MODEL) as model:
            layers = model.query("CPU")
            self.assertGreater(len(layers), 5)
            for layer in layers:
                self.assertEqual((layer.device, layer.on_host), ("CPU.0", layer.reason != ""))
            with model.with_devices({layer.name: "CPU" for layer in layers}) as placed, placed.compile("HETERO:CPU") as compiled:
                self.expect_ball(compiled(tensor_of(ball_at(60, 50)))[0], 60, 50)
            with self.assertRaisesRegex(clinfer.Error, "no layer"):
                model.with_devices({"nowhere": "CPU"})

    def test_calls_back(self):
        seen, over = [], threading.Event()

        def done(request, error):
            seen.append((error, request.output()))
            if len(seen) < 3:
                request.start()
            else:
                over.set()

        with self.model.create_request() as request:
            request.set_callback(done)
            request.set_input(0, tensor_of(ball_at(60, 50)))
            request.start()
            self.assertTrue(over.wait(60))
            request.wait()
            request.set_callback(None)
            request.infer()
        self.assertEqual([error for error, _ in seen], [None] * 3)
        for _, rows in seen:
            self.expect_ball(rows, 60, 50)

    def test_queue(self):
        results = {}
        places = [30 + 7 * n for n in range(12)]
        with clinfer.AsyncQueue(self.model, 2) as queue:
            self.assertEqual(len(queue), 2)
            for x in places:
                queue.start(lambda request, error, x=x: results.__setitem__(x, request.output()), tensor_of(ball_at(x, 50)))
        self.assertEqual(sorted(results), places)
        for x, rows in results.items():
            self.expect_ball(rows, x, 50)
        queue = clinfer.AsyncQueue(self.model, 1)
        with self.assertRaises(clinfer.Error):
            queue.start(lambda *_: None, b"too short")
        queue.start(lambda *_: 1 / 0, tensor_of(ball_at(60, 50)))
        with self.assertRaises(ZeroDivisionError):
            queue.close()

    def test_await(self):
        async def several():
            requests = [self.model.create_request() for _ in range(3)]
            rows = await asyncio.gather(*(request.infer_async(tensor_of(ball_at(60 + 40 * n, 50)))
                                          for n, request in enumerate(requests)))
            for request in requests:
                request.close()
            return rows

        for n, rows in enumerate(asyncio.run(several())):
            self.expect_ball(rows[0], 60 + 40 * n, 50)

    def test_buffers(self):
        with self.model.create_request() as request, self.model.create_request() as other:
            request.set_input(0, tensor_of(ball_at(60, 50)))
            self.assertEqual(request.explain(), [])
            self.assertGreater(request.output_buffer(0), 0)
            self.assertRegex("".join(request.explain()), "output 0 .*: copied, since")
            request.start()
            request.wait()
            with self.assertRaisesRegex(clinfer.Error, "memory of the device"):
                request.output(0)
            with self.assertRaisesRegex(clinfer.Error, "needs"):
                other.set_input_buffer(0, request.output_buffer(0))
            request.set_output_buffer(0, None)
            self.expect_ball(request.infer()[0], 60, 50)

    def test_refusals(self):
        for call, code, text in (
                (lambda: clinfer.Model("/nowhere/model.xml"), "NOT_FOUND", "/nowhere/model.xml"),
                (lambda: clinfer.Model(MODEL).compile("CPU", NO_SUCH_KEY=1), "BAD_ARGUMENT", "NO_SUCH_KEY"),
                (lambda: clinfer.Model(MODEL).compile("GPU.77"), "NO_DEVICE", "GPU.77"),
                (lambda: self.model(b"12345678"), "BAD_ARGUMENT", "is \\[1,3,192,256\\]"),
                (lambda: self.model(sound=b"1"), "BAD_ARGUMENT", "there are image")):
            with self.assertRaisesRegex(clinfer.Error, text) as refused:
                call()
            self.assertEqual(refused.exception.code, code)
        request = self.model.create_request()
        request.close()
        request.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            request.start()

    def test_forks(self):
        """The drivers' threads are not in a fork: it is told so at once, and may go; the parent goes on."""
        request = self.model.create_request()
        request.infer(tensor_of(ball_at(60, 50)))
        for call in (lambda: request.infer(tensor_of(ball_at(60, 50))), lambda: clinfer.Model(MODEL).compile("CPU"), clinfer.devices):
            begin = time.monotonic()
            child = os.fork()
            if child == 0:
                try:
                    call()
                    os._exit(1)
                except clinfer.Error as error:
                    os._exit(0 if error.code == "NO_DEVICE" and "fork" in str(error) else 2)
                finally:
                    os._exit(3)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            self.assertEqual(status, 0)
            self.assertLess(time.monotonic() - begin, 5)
        self.expect_ball(request.infer(tensor_of(ball_at(60, 50)))[0], 60, 50)


def installed():
    """What pip makes of this repository can be imported from where it is put, and has the library's version."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PIP_TARGET")}
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "install", "--no-index", "--no-deps", "--quiet",
               "--root-user-action", "ignore"]
        if subprocess.run(pip[:3] + ["--version"], capture_output=True).returncode != 0:
            print("skip pip install: there is no pip")
            return
        subprocess.run([*pip, "--target", folder, SOURCE], check=True, env=environment, timeout=300)
        environment["PYTHONPATH"] = folder
        text = subprocess.run([sys.executable, "-c", "import clinfer, importlib.metadata as m; print(clinfer.__file__); "
                               "print(clinfer.version() == m.version('clinfer'), len(clinfer.devices()) > 0)"],
                              check=True, env=environment, capture_output=True, text=True, timeout=300, cwd=folder).stdout.split("\n")
        if not text[0].startswith(folder) or text[1] != "True True" or not (pathlib.Path(folder) / "clinfer/py.typed").is_file():
            sys.exit(f"pip install . gives {text}")
        print("ok   pip install .")


if __name__ == "__main__":
    sys.path.insert(0, str(SOURCE / "engine/library/python"))
    sys.dont_write_bytecode = True
    if "--without-numpy" in sys.argv:
        sys.modules["numpy"] = None
    import clinfer
    try:
        import numpy
    except ImportError:
        numpy = None
    outcome = unittest.main(argv=sys.argv[:1], exit=False).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    print(f"ok   {'with' if numpy is not None else 'without'} NumPy")
    other = os.environ.get("CLINFER_PYTHON")
    if "--without-numpy" not in sys.argv:
        installed()
        if numpy is None and other:  # a virtual environment links to the same program
            sys.exit(subprocess.run([other, *sys.argv]).returncode)
        if numpy is not None:
            sys.exit(subprocess.run([sys.executable, *sys.argv, "--without-numpy"]).returncode)
