// The public list of devices.
#include "engine/ocl/device.h"

namespace clinfer {

DeviceList list_devices() {
  DeviceList list;
  for (const ocl::Device& device : ocl::devices().usable) list.devices.push_back(device.info);
  list.refused = ocl::devices().refused;
  return list;
}

}  // namespace clinfer
