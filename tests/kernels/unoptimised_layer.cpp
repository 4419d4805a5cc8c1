// An OpenCL layer that builds all programs without optimisation, where a driver takes longer to compile kernels than
// to run them.
#include <string>

#include "tests/opencl_layer.h"

namespace {

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices,
                         const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                         void* data) {
  const std::string all = std::string(options == nullptr ? "" : options) + " -cl-opt-disable";
  return g_next->clBuildProgram(program, count, devices, all.c_str(), notify, data);
}

}  // namespace

void replace_calls(cl_icd_dispatch& table) { table.clBuildProgram = build; }
