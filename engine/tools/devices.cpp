// clinfer devices: what there is, what was refused and why.
#include <iostream>

#include "engine/tools/commands.h"
#include "tuning/json_text.h"

namespace clinfer {

namespace {

std::string kind_of(const DeviceInfo& device) {
  if (device.is_cpu) return "CPU";
  return device.is_integrated ? "integrated GPU" : "discrete GPU";
}

void print_text(const DeviceList& list) {
  for (const DeviceInfo& device : list.devices) {
    std::cout << device.id << "  " << device.name << "\n"
              << "    " << kind_of(device) << " of " << device.vendor << ", "
              << device.compute_units << " compute units, " << (device.memory >> 20)
              << " MiB, activations in " << (device.fp16 ? "f16" : "f32") << "\n"
              << "    " << device.version << ", driver " << device.driver << ", platform "
              << device.platform << "\n";
  }
  for (const std::string& reason : list.refused) std::cout << "refused: " << reason << "\n";
}

void print_json(const DeviceList& list) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  std::cout << "{\"devices\":[";
  for (size_t i = 0; i < list.devices.size(); ++i) {
    const DeviceInfo& d = list.devices[i];
    std::cout << (i ? "," : "") << "{\"id\":" << json_text(d.id)
              << ",\"name\":" << json_text(d.name) << ",\"vendor\":" << json_text(d.vendor)
              << ",\"platform\":" << json_text(d.platform) << ",\"driver\":" << json_text(d.driver)
              << ",\"version\":" << json_text(d.version) << ",\"cpu\":" << flag(d.is_cpu)
              << ",\"integrated\":" << flag(d.is_integrated) << ",\"fp16\":" << flag(d.fp16)
              << ",\"compute_units\":" << d.compute_units << ",\"memory\":" << d.memory << "}";
  }
  std::cout << "],\"refused\":[";
  for (size_t i = 0; i < list.refused.size(); ++i)
    std::cout << (i ? "," : "") << json_text(list.refused[i]);
  std::cout << "]}\n";
}

void run(const Arguments& arguments) {
  const DeviceList list = list_devices();
  if (arguments.has("--json"))
    print_json(list);
  else
    print_text(list);
  if (list.devices.empty())
    throw Error(
        ErrorCode::no_device,
        std::string("no OpenCL device can be used; ") +
            (list.refused.empty() ? "install the GPU's OpenCL driver, or PoCL to run on the CPU"
                                  : "what was refused, and why, is said above"));
}

}  // namespace

Command devices_command() {
  return {{"devices",
           "what devices there are, and which were refused and why",
           {},
           {{"--json", "", "as one line of JSON"}}},
          run};
}

}  // namespace clinfer
