// An OpenCL layer that makes each queue of a device compute on one of its cores, so that the work-groups of a
// launch run one after the other. Queues of parts of a device stay as they are.
#include "tests/opencl_layer.h"

namespace {

cl_device_id one_core_of(cl_device_id device) {
  cl_device_id whole = nullptr;
  g_next->clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof whole, &whole, nullptr);
  if (whole != nullptr) return device;
  const cl_device_partition_property one[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1,
                                              CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id core = nullptr;
  return g_next->clCreateSubDevices(device, one, 1, &core, nullptr) == CL_SUCCESS ? core : device;
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* status) {
  return g_next->clCreateCommandQueue(context, one_core_of(device), properties, status);
}

cl_command_queue CL_API_CALL create_queue_with(cl_context context, cl_device_id device,
                                               const cl_queue_properties* properties,
                                               cl_int* status) {
  return g_next->clCreateCommandQueueWithProperties(context, one_core_of(device), properties,
                                                    status);
}

}  // namespace

void replace_calls(cl_icd_dispatch& table) {
  table.clCreateCommandQueue = create_queue;
  table.clCreateCommandQueueWithProperties = create_queue_with;
}
