// Shares OpenCL memory with the engine: a kernel of this program draws frames into a buffer, the engine infers them where
// they lie, and another kernel of this program reads the network's output on the device. No frame and no tensor passes
// through host memory.
//
//   c++ -std=c++20 share_buffers.cpp -o share_buffers $(pkg-config --cflags --libs clinfer)
//   ./share_buffers pipelines/models/ball.xml
//
// The model is a detector with rows of [image, class, confidence, x0, y0, x1, y1] (SSD), such as the bundled one.
#include <clinfer/engine.h>
#include <clinfer/opencl.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kWidth = 320, kHeight = 240, kFrames = 3;

constexpr const char* kSource = R"(
// A white ball on black, in BGRx.
kernel void draw(global uchar4* frame, int width, int ball_x, int ball_y) {
  int x = get_global_id(0), y = get_global_id(1);
  int dx = x - ball_x, dy = y - ball_y;
  frame[y * width + x] = (uchar4)(dx * dx + dy * dy < 20 * 20 ? 255 : 0);
}
// The row with the highest confidence.
kernel void best_row(global const float* rows, int count, global float* best) {
  int at = 0;
  for (int i = 1; i < count && rows[7 * i] >= 0; ++i)
    if (rows[7 * i + 2] > rows[7 * at + 2]) at = i;
  for (int j = 0; j < 7; ++j) best[j] = rows[7 * at + j];
})";

void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS)
    throw std::runtime_error(std::string(what) + " gave " + std::to_string(status));
}

// The first GPU, or the first device of any kind.
cl_device_id find_device() {
  cl_uint count = 0;
  check(clGetPlatformIDs(0, nullptr, &count), "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  cl_device_id device = nullptr;
  for (const cl_device_type type :
       {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_ALL}})
    for (const cl_platform_id platform : platforms)
      if (clGetDeviceIDs(platform, type, 1, &device, nullptr) == CL_SUCCESS) return device;
  throw std::runtime_error("there is no OpenCL device");
}

cl_kernel make_kernel(cl_program program, const char* name) {
  cl_int status = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, name, &status);
  check(status, name);
  return kernel;
}

template <typename... Arguments>
void set_arguments(cl_kernel kernel, const Arguments&... arguments) {
  cl_uint index = 0;
  (check(clSetKernelArg(kernel, index++, sizeof(arguments), &arguments), "clSetKernelArg"), ...);
}

int run(const char* path) {
  cl_int status = CL_SUCCESS;
  const cl_device_id device = find_device();
  const cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  const cl_command_queue queue =
      clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  check(status, "clCreateCommandQueueWithProperties");
  const char* source = kSource;
  const cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  check(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), "clBuildProgram");
  const cl_kernel draw = make_kernel(program, "draw"), best_row = make_kernel(program, "best_row");
  const cl_mem frame =
      clCreateBuffer(context, CL_MEM_READ_WRITE, kWidth * kHeight * 4, nullptr, &status);
  check(status, "clCreateBuffer");
  const cl_mem best =
      clCreateBuffer(context, CL_MEM_READ_WRITE, 7 * sizeof(float), nullptr, &status);
  check(status, "clCreateBuffer");

  int found = 0;
  {
    // The model and all that it gives go before the objects that it shares are released.
    const auto model =
        clinfer::opencl::compile(clinfer::Model::read(path), {}, {context, device, queue});
    const auto request = model->create_request();
    const cl_mem rows = clinfer::opencl::output_buffer(*request, 0);
    const auto count = static_cast<cl_int>(model->outputs()[0].shape[2]);

    clinfer::Frame picture;
    picture.format = clinfer::PixelFormat::bgrx;
    picture.width = kWidth, picture.height = kHeight;
    picture.strides[0] = kWidth * 4;
    clinfer::ImportedPlanes planes;
    planes.memories[0] = clinfer::opencl::import_buffer(*model, frame);

    for (cl_int n = 0; n < kFrames; ++n) {
      set_arguments(draw, frame, cl_int{kWidth}, cl_int{100 + 40 * n}, cl_int{120});
      const size_t size[] = {kWidth, kHeight}, one = 1;
      check(clEnqueueNDRangeKernel(queue, draw, 2, nullptr, size, nullptr, 0, nullptr, nullptr),
            "draw");
      // All on one queue, in this order: no events are needed.
      request->set_memory(0, planes, picture, {});
      request->start();
      request
          ->wait();  // only for layers that run on the host: see set_output() in clinfer/opencl.h
      set_arguments(best_row, rows, count, best);
      check(clEnqueueNDRangeKernel(queue, best_row, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
            "best_row");
      float row[7] = {};
      check(clEnqueueReadBuffer(queue, best, CL_TRUE, 0, sizeof row, row, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
      std::printf("%s: object at %.0f,%.0f\n", model->device().id.c_str(),
                  (row[3] + row[5]) / 2 * kWidth, (row[4] + row[6]) / 2 * kHeight);
      found += row[0] == 0 && row[2] >= 0.5f;
    }
  }
  for (const cl_mem memory : {frame, best}) clReleaseMemObject(memory);
  for (const cl_kernel kernel : {draw, best_row}) clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return found == kFrames ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.xml\n", argv[0]);
    return 2;
  }
  return run(argv[1]);
} catch (const std::exception& error) {  // clinfer::Error is one
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
