#!/usr/bin/env python3
"""Installs clinfer into a folder, builds the examples against that by pkg-config alone, and runs them.

    installed.py BUILD SOURCE      CXX, OCL_ICD_VENDORS as in the environment
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HEADERS = ["async.h", "clinfer.h", "engine.h", "error.h", "frame.h", "no_answer.h", "opencl.h", "query.h", "tensor.h"]
# Calls, or takes the address of, each function that the public headers declare and that is no member of an interface.
EVERY_FUNCTION = r"""
#include <clinfer/async.h>
#include <clinfer/clinfer.h>
#include <clinfer/opencl.h>
#include <iostream>
using namespace clinfer;
int main(int argc, char** argv) try {
  if (list_devices().devices.empty()) return 2;
  Config config;
  config.set("PERF_COUNT", "NO");
  if (config.tuning_mode_in_force() != TuningMode::disabled) return 3;
  InputShapes shapes;
  shapes.add("64x48");
  Tensor tensor = Tensor::allocate(ElementType::f32, {2, 3});
  tensor = Tensor::of<float>(ElementType::f16, {2, 3}, {0, 1, 2, 3, 4, 5}).convert(ElementType::f32).reshaped({3, 2});
  if (tensor.data<float>()[5] != 5 || tensor.to_ints()[4] != 4 || tensor.to_floats().size() != 6) return 4;
  tensor = Tensor::view(ElementType::f32, {6}, tensor.raw(), nullptr);
  const Shape shape{1, 3, 4, 5};
  const TensorDesc desc = TensorDesc::channels_last(ElementType::f32, shape), rows = TensorDesc::row_major(ElementType::f32, shape);
  if (!desc.is_channels_last() || !rows.is_row_major() || !desc.is_dense() || desc.span() != count(shape) ||
      desc.byte_range().second != 240 || row_major_strides(shape)[3] != 1 || channels_last_strides(shape)[1] != 1)
    return 5;
  std::vector<float> buffer(60);
  scatter_to(Tensor::allocate(ElementType::f32, shape), desc, buffer.data());
  if (gather_from(desc, buffer.data(), ElementType::f16).bytes() != 120) return 6;
  if (half_to_float(float_to_half(0.5f)) != 0.5f || size_of(ElementType::i64) != 8 || !is_float(ElementType::f16)) return 7;
  std::cout << name_of(ElementType::u8) << " " << to_string(shape) << " " << name_of(LayerTuning::Source::shipped) << " "
            << printable("a\nb") << "\n";
  Frame frame;
  frame.width = frame.height = 8;
  if (placement_of(frame, {}, 4, 4).x_scale != 2 || plane_sizes(frame)[1].rows != 4) return 8;
  const std::shared_ptr<const Model> model = Model::with_picture(Model::read(argc > 1 ? argv[1] : ""));
  const auto first = CompiledModel::compile_first_tier(model, config);
  (void)&CompiledModel::compile, (void)&Model::read_bytes;
  if (clinfer_api_version() != CLINFER_API_VERSION) return 11;
  {
    std::atomic<int> found = 0;
    AsyncQueue queue(first, 2);
    for (int n = 0; n < 3; ++n)
      queue.start([](InferRequest& request) { request.input_memory(0); },
                  [&](InferRequest& request, std::exception_ptr error) { found += !error && !request.output(0).empty(); });
    queue.wait();
    AsyncRequest request(first->create_request());
    request.set_completed([&](InferRequest&, std::exception_ptr) { ++found; });
    request.start();
    if (queue.size() != 2 || !request.wait() || found != 4) return 12;
    request.cancel();
  }
  try {
    opencl::context_of(*first);
    return 9;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) return 10;
  }
  try {
    throw NoAnswer("nothing");
  } catch (const Error&) {
  }
  (void)&opencl::compile, (void)&opencl::device_of, (void)&opencl::queue_of, (void)&opencl::set_input;
  (void)&opencl::import_buffer, (void)&opencl::import_images, (void)&opencl::set_image, (void)&opencl::set_output;
  (void)&opencl::output_buffer, (void)&opencl::set_output_image, (void)&opencl::explain;
  (void)&opencl::set_input_pointer, (void)&opencl::set_output_pointer;
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
"""


def run(command, environment, **options):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main():
    build, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    model = source / "pipelines/models/ball.xml"
    environment = dict(os.environ)
    for name in ("PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "GST_PLUGIN_PATH", "CPATH", "DESTDIR"):
        environment.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        environment["XDG_CACHE_HOME"] = str(folder / "cache")
        run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder / "root"], environment)
        config = next((folder / "root").rglob("clinfer.pc"))
        prefix = next((folder / "root").rglob("include")).parent
        environment["PKG_CONFIG_PATH"] = str(config.parent)
        environment["LD_LIBRARY_PATH"] = str(config.parent.parent)

        def flags(package):
            # Our folder is not the one that the installation was configured for.
            where = [f"--define-variable=prefix={prefix}"] if package == "clinfer" else []
            return run(["pkg-config", *where, "--cflags", "--libs", package], environment).split()

        def compile_(text, out, *packages):
            run([*environment.get("CXX", "c++").split(), "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", text, "-o", out,
                 *(flag for package in packages for flag in flags(package))], environment, cwd=folder)

        page = (prefix / "share/man/man1/clinfer.1").read_text()
        commands = re.findall(r"^  (\w+)  ", run([prefix / "bin/clinfer", "--help"], environment), re.M)
        described = re.findall(r"^\.B (\w+)$", page.partition(".SH COMMANDS")[2].partition("\n.SH ")[0], re.M)
        if not commands or described != commands:
            sys.exit(f"the manual page describes {described}, the program has {commands}")
        print("ok   manual page")
        found = sorted(p.name for p in (prefix / "include/clinfer").iterdir())
        if found != HEADERS:
            sys.exit(f"public headers are {found}, not {HEADERS}")
        for header in HEADERS:  # each by itself
            (folder / "one.cpp").write_text(f"#include <clinfer/{header}>\nint main() {{}}\n")
            compile_("one.cpp", "one", "clinfer")
        (folder / "one.c").write_text("#include <clinfer/clinfer.h>\nint main(void) { return clinfer_version()[0] == 0; }\n")
        run([*environment.get("CC", "cc").split(), "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "one.c", "-o", "one_c",
             *flags("clinfer")], environment, cwd=folder)
        run([folder / "one_c"], environment)
        print("ok   headers")
        (folder / "every.cpp").write_text(EVERY_FUNCTION)
        compile_("every.cpp", "every", "clinfer")
        text = run([folder / "every", model], environment)
        if text != "u8 [1,3,4,5] shipped a b\n":
            sys.exit(f"every function: {text!r}")
        print("ok   every function")

        by_cmake(folder, prefix, model, environment)
        examples = source / "pipelines/examples"
        compile_(examples / "share_buffers.cpp", "share_buffers", "clinfer")
        text = run([folder / "share_buffers", model], environment)
        check_places("share_buffers", [line.split()[-1] for line in text.splitlines()], [100, 140, 180], 120)
        if not (build / "gst").is_dir() or not shutil.which("gst-launch-1.0"):
            print("skip decode_and_infer: without GStreamer")
            return
        compile_(examples / "decode_and_infer.cpp", "decode_and_infer", "clinfer", "gstreamer-video-1.0")
        # The ball of three frames at the moments that videotestsrc's own element finds it, too.
        line = "videotestsrc pattern=ball num-buffers=3 ! video/x-raw,width=320,height=240"
        text = run([folder / "decode_and_infer", model, line], environment)
        print(text, end="")
        if text.count("class 1, 0.9") + text.count("class 1, 1.0") != 3:
            sys.exit(f"decode_and_infer: {text!r}")
        failing = subprocess.run([folder / "decode_and_infer", model, "filesrc location=/nowhere"], env=environment, capture_output=True,
                                 text=True, timeout=300)
        if failing.returncode != 1 or not failing.stderr.strip():
            sys.exit(f"decode_and_infer of a file that is not there: {failing}")
        print("ok   decode_and_infer")


def by_cmake(folder, prefix, model, environment):
    """Builds a program by find_package(), which refuses a version that is too new or has another interface."""
    if not shutil.which("cmake"):
        print("skip cmake: it is not installed")
        return
    project = folder / "cmake"
    project.mkdir()

    def configure(version):
        (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.18)
project(every CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(clinfer {version} REQUIRED)
add_executable(every ../every.cpp)
target_link_libraries(every PRIVATE clinfer::clinfer)
""")
        return subprocess.run(["cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}"], env=environment,
                              capture_output=True, text=True, timeout=300)

    for version in ("0.1", "99.0"):
        refused = configure(version)
        if refused.returncode == 0 or "clinferConfig.cmake" not in refused.stderr:
            sys.exit(f"cmake: version {version} was taken: {refused.stdout}{refused.stderr}")
    done = configure("0.2")
    if done.returncode != 0:
        sys.exit(f"cmake: {done.stdout}{done.stderr}")
    run(["cmake", "--build", project / "build"], environment)
    if run([project / "build/every", model], environment) != "u8 [1,3,4,5] shipped a b\n":
        sys.exit("cmake: the program does not work")
    print("ok   cmake")


def check_places(name, places, wanted_x, wanted_y):
    found = [tuple(map(float, place.split(","))) for place in places]
    if len(found) != len(wanted_x) or any(abs(x - want) > 6 or abs(y - wanted_y) > 6 for (x, y), want in zip(found, wanted_x)):
        sys.exit(f"{name}: objects at {found}, right is x {wanted_x}, y {wanted_y}")
    print(f"ok   {name}: {places}")


if __name__ == "__main__":
    main()
