// Finds a device's traits for code outside of ocl/.
#include "engine/ocl/choose.h"

#include "engine/ocl/device.h"

namespace clinfer::ocl {

ChosenDevice choose_device(const std::string& name) {
  const Device& device = select_device(name);
  return {device.info, Context::create(device)->traits};
}

std::string full_device_name(const std::string& name) try {
  return select_device(name).info.id;
} catch (const Error&) {
  return "";
}

}  // namespace clinfer::ocl
