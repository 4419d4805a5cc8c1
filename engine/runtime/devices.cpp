// The public list of devices.
#include "engine/ocl/device.h"
#include "kernels/base/default_floats.h"

namespace clinfer {

DeviceList list_devices() {
  const DefaultFloats floats;
  DeviceList list;
  for (const ocl::Device& device : ocl::devices().usable) list.devices.push_back(device.info);
  list.refused = ocl::devices().refused;
  return list;
}

}  // namespace clinfer
