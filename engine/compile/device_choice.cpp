// Parses lists of devices as users write them.
#include "engine/compile/device_choice.h"

#include <algorithm>
#include <cctype>

#include "engine/ocl/device.h"

namespace clinfer {

namespace {

struct KindName {
  const char* name;
  DeviceChoice::Kind kind;
};
constexpr KindName kKinds[] = {{"MULTI", DeviceChoice::Kind::multi},
                               {"AUTO", DeviceChoice::Kind::automatic},
                               {"HETERO", DeviceChoice::Kind::hetero},
                               {"BATCH", DeviceChoice::Kind::batch}};
constexpr unsigned kImages = 8, kMostImages = 256;  // of a batch

// Takes "(4)" from the end of BATCH's device. Returns the number of images.
unsigned take_images(const std::string& text, std::string& device) {
  const size_t open = device.find('(');
  if (open == std::string::npos) return kImages;
  const std::string digits = device.substr(open + 1, device.size() - open - 2);
  const bool number = device.back() == ')' && !digits.empty() && digits.size() < 4 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  const unsigned images = number ? static_cast<unsigned>(std::stoul(digits)) : 0;
  if (images < 2 || images > kMostImages)
    throw Error(ErrorCode::bad_argument, "device=" + text + ": write BATCH:GPU(8), with 2 to " +
                                             std::to_string(kMostImages) + " images");
  device.erase(open);
  return images;
}

std::vector<std::string> split_list(const std::string& text, const std::string& list) {
  std::vector<std::string> names;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    std::string name = list.substr(at, end - at);
    name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
    name.erase(name.find_last_not_of(' ') + 1);
    if (name.empty())
      throw Error(ErrorCode::bad_argument, "device=" + text + ": a device is missing; write " +
                                               text.substr(0, text.find(':')) +
                                               ":GPU.0,GPU.1 by the names that "
                                               "`clinfer devices` lists");
    names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

// Returns the devices for AUTO without a list: the first GPU, and the first CPU device, which
// serves until the GPU is ready.
std::vector<std::string> best_devices() {
  std::vector<std::string> names;
  for (const bool cpu : {false, true})
    for (const ocl::Device& device : ocl::devices().usable)
      if (device.info.is_cpu == cpu) {
        names.push_back(device.info.id);
        break;
      }
  if (names.empty()) names.push_back("GPU");  // leads to an error that lists the devices
  return names;
}

// Returns the full name of the device that a setting is for. Unknown devices keep their names.
std::string full_name(const std::string& name) {
  return name == "GPU" || name == "CPU" ? name + ".0" : name;
}

// Translates a device's name from elsewhere, such as PyTorch's "cuda:0" or one in lower case.
// Returns "" for an unknown name.
std::string name_here(const std::string& text) {
  std::string name;
  for (const char c : text)
    name += c == ':' ? '.' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string kind = name.substr(0, dot), number = name.substr(dot);
  if (number.find_first_not_of(".0123456789") != std::string::npos || number == ".") return {};
  for (const char* gpu : {"GPU", "CUDA", "XPU", "OPENCL", "NVIDIA"})
    if (kind == gpu) return "GPU" + number;
  return kind == "CPU" ? name : "";
}

}  // namespace

DeviceChoice choose_devices(const std::string& text) {
  DeviceChoice choice;
  if (const std::string name = name_here(text); !name.empty() && name != text)
    throw Error(ErrorCode::bad_argument, "device=" + text + ": its name here is " + name +
                                             "; `clinfer devices` lists the names");
  const std::string head = text.substr(0, text.find(':'));
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const KindName& known) { return head == known.name; });
  if (kind == std::end(kKinds)) {
    if (text.find_first_of(":,") != std::string::npos)
      throw Error(ErrorCode::bad_argument,
                  "device=" + text +
                      ": several devices are written MULTI:A,B, AUTO:A,B or "
                      "HETERO:A,B, and batches BATCH:A");
    choice.devices = {text};
    return choice;
  }
  choice.kind = kind->kind;
  std::vector<std::string> names;
  if (text.size() > head.size())
    names = split_list(text, text.substr(head.size() + 1));
  else if (choice.kind == DeviceChoice::Kind::automatic)
    names = best_devices();
  else
    throw Error(ErrorCode::bad_argument,
                "device=" + text + ": name the devices, as in " + text + ":GPU,CPU");
  if (choice.kind == DeviceChoice::Kind::batch) {
    if (names.size() != 1)
      throw Error(ErrorCode::bad_argument, "device=" + text + ": BATCH is for one device");
    choice.images = take_images(text, names[0]);
  }
  for (const std::string& name : names) {
    const ocl::Device& device = ocl::select_device(name);
    if (std::string note = ocl::note_of_stand_in(name, device.info); !note.empty())
      choice.warnings.push_back(std::move(note));
    if (std::find(choice.devices.begin(), choice.devices.end(), device.info.id) ==
        choice.devices.end())
      choice.devices.push_back(device.info.id);
    else
      choice.warnings.push_back("device=" + text + ": " + name + " is " + device.info.id +
                                ", which is in the list already");
  }
  return choice;
}

Config with_fallback(const Config& config) {
  Config with = config;
  if (with.device.substr(0, with.device.find(':')) != "HETERO") return with;
  for (const Config::DeviceSetting& setting : config.device_settings)
    if (setting.key == "TARGET_FALLBACK") with.device = "HETERO:" + setting.value;
  std::erase_if(with.device_settings, [](const Config::DeviceSetting& setting) {
    return setting.key == "TARGET_FALLBACK";
  });
  return with;
}

Config config_for(const Config& config, const std::string& device) {
  Config one = config;
  one.device = device;
  one.device_settings.clear();
  for (const Config::DeviceSetting& setting : config.device_settings)
    if (full_name(setting.device) == full_name(device)) one.set(setting.key, setting.value);
  return one;
}

std::vector<std::string> idle_settings(const Config& config,
                                       const std::vector<std::string>& devices) {
  std::vector<std::string> warnings;
  for (const Config::DeviceSetting& setting : config.device_settings)
    if (std::none_of(devices.begin(), devices.end(), [&](const std::string& device) {
          return full_name(device) == full_name(setting.device);
        }))
      warnings.push_back(setting.device + "." + setting.key + " has no effect: device=" +
                         config.device + " does not use " + setting.device);
  return warnings;
}

}  // namespace clinfer
