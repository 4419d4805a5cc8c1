// Implements the meters: NVML, powercap and hwmon.
#include "engine/power.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/ocl/device.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Thrown where there is no meter.
struct NoMeter {
  std::string why;
};

double seconds_since(Clock::time_point& last) {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(last, now)).count();
}

// ---- NVML: by the names and types of NVIDIA's documentation -------------------------------------

constexpr int kNvmlSuccess = 0;
struct NvmlDevice;

template <typename Function>
Function* function(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  if (found == nullptr) throw NoMeter{std::string("NVML has no ") + name};
  return found;
}

class NvmlMeter final : public PowerMeter {
 public:
  NvmlMeter(const std::string& file, const std::string& uuid) {
    // The library stays open, as drivers expect.
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw NoMeter{"NVML cannot be opened: " + std::string(dlerror())};
    if (function<int()>(library, "nvmlInit_v2")() != kNvmlSuccess)
      throw NoMeter{"NVML does not start"};
    const auto find =
        function<int(const char*, NvmlDevice**)>(library, "nvmlDeviceGetHandleByUUID");
    if (find(uuid.c_str(), &device_) != kNvmlSuccess)
      throw NoMeter{"NVML does not know the device " + uuid};
    energy_ = function<Energy>(library, "nvmlDeviceGetTotalEnergyConsumption");
    power_ = function<Power>(library, "nvmlDeviceGetPowerUsage");
    unsigned long long energy = 0;
    counts_ = energy_(device_, &energy) == kNvmlSuccess;
    before_ = energy;
    unsigned power = 0;
    if (!counts_ && power_(device_, &power) != kNvmlSuccess)
      throw NoMeter{"NVML does not measure the power of the device " + uuid};
  }

  std::optional<double> joules() override {
    const double seconds = seconds_since(last_);
    if (counts_) {
      unsigned long long millijoules = 0;
      if (energy_(device_, &millijoules) != kNvmlSuccess) return std::nullopt;
      return static_cast<double>(millijoules - std::exchange(before_, millijoules)) / 1e3;
    }
    unsigned milliwatts = 0;
    if (power_(device_, &milliwatts) != kNvmlSuccess) return std::nullopt;
    return milliwatts / 1e3 * seconds;
  }

 private:
  using Energy = int(NvmlDevice*, unsigned long long*);
  using Power = int(NvmlDevice*, unsigned*);
  NvmlDevice* device_ = nullptr;
  Energy* energy_ = nullptr;
  Power* power_ = nullptr;
  bool counts_ = false;  // GPUs before Volta only tell their power
  unsigned long long before_ = 0;
  Clock::time_point last_ = Clock::now();
};

// ---- files --------------------------------------------------------------------------------------

std::string text_in(const fs::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  return text;
}

std::optional<double> number_in_file(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

// Returns the folders below `folder` in the order of their names.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// A file that counts microjoules, or tells microwatts.
class FileMeter final : public PowerMeter {
 public:
  // `largest`: the count after which it begins at 0 again; 0: it never does.
  FileMeter(fs::path file, bool counts, double largest)
      : file_(std::move(file)), counts_(counts), largest_(largest) {
    const std::optional<double> first = number_in_file(file_);
    if (!first)
      throw NoMeter{file_.string() +
                    " cannot be read; the kernel lets root alone read it as a rule"};
    before_ = *first;
  }

  std::optional<double> joules() override {
    const double seconds = seconds_since(last_);
    const std::optional<double> now = number_in_file(file_);
    if (!now) return std::nullopt;
    if (!counts_) return *now / 1e6 * seconds;
    double taken = *now - std::exchange(before_, *now);
    if (taken < 0) taken += largest_;
    return std::max(taken, 0.0) / 1e6;
  }

 private:
  const fs::path file_;
  const bool counts_;
  const double largest_;
  double before_ = 0;
  Clock::time_point last_ = Clock::now();
};

class SumOfMeters final : public PowerMeter {
 public:
  explicit SumOfMeters(std::vector<std::unique_ptr<PowerMeter>> meters)
      : meters_(std::move(meters)) {}
  std::optional<double> joules() override {
    std::optional<double> sum = 0.0;
    for (const auto& meter : meters_) {
      const std::optional<double> one = meter->joules();
      sum = sum && one ? std::optional(*sum + *one) : std::nullopt;
    }
    return sum;
  }

 private:
  const std::vector<std::unique_ptr<PowerMeter>> meters_;
};

// The processor's packages. ("intel-rapl" is the kernel's name for AMD's as well.)
std::unique_ptr<PowerMeter> processor_meter(const fs::path& sysfs) {
  std::vector<std::unique_ptr<PowerMeter>> meters;
  std::set<std::string> names;  // two interfaces may tell of the same package
  for (const fs::path& zone : folders_in(sysfs / "class/powercap")) {
    const std::string name = text_in(zone / "name");
    if (!name.starts_with("package") || !names.insert(name).second) continue;
    meters.push_back(std::make_unique<FileMeter>(
        zone / "energy_uj", true, number_in_file(zone / "max_energy_range_uj").value_or(0)));
  }
  if (meters.empty())
    throw NoMeter{(sysfs / "class/powercap").string() + " has no package of a processor (RAPL)"};
  return std::make_unique<SumOfMeters>(std::move(meters));
}

// Returns "0000:03:00.0"; "" if the driver does not tell it.
std::string bus_address(const ocl::Device& device) {
  constexpr cl_device_info kBus = 0x410F;  // CL_DEVICE_PCI_BUS_INFO_KHR
  std::array<cl_uint, 4> bus{};            // domain, bus, device, function
  if (!ocl::has_extension(device.device.getInfo<CL_DEVICE_EXTENSIONS>(), "cl_khr_pci_bus_info") ||
      clGetDeviceInfo(device.device(), kBus, sizeof bus, bus.data(), nullptr) != CL_SUCCESS)
    return "";
  char text[64];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", bus[0], bus[1], bus[2], bus[3]);
  return text;
}

// The meter of a GPU's driver. Without the address of the device, there must be only one.
std::unique_ptr<PowerMeter> card_meter(const fs::path& sysfs, const std::string& address) {
  std::vector<fs::path> cards;
  for (const fs::path& meter : folders_in(sysfs / "class/hwmon")) {
    const std::string name = text_in(meter / "name");
    if (name != "i915" && name != "xe" && name != "amdgpu") continue;
    std::error_code none;
    if (address.empty() || fs::canonical(meter / "device", none).filename() == address)
      cards.push_back(meter);
  }
  const std::string folder = (sysfs / "class/hwmon").string();
  if (cards.empty()) throw NoMeter{folder + " has no meter of the GPU"};
  if (cards.size() > 1)
    throw NoMeter{folder + " has several GPUs, and the driver does not tell which one this is"};
  std::error_code none;
  for (const char* file : {"energy1_input", "power1_average", "power1_input"})
    if (fs::exists(cards[0] / file, none))
      return std::make_unique<FileMeter>(cards[0] / file, *file == 'e', 0);
  throw NoMeter{cards[0].string() + " measures no power"};
}

std::string nvml_name(const std::array<unsigned char, 16>& uuid) {
  std::string name = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    char text[4];
    std::snprintf(text, sizeof text, "%02x", uuid[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) name += "-";
    name += text;
  }
  return name;
}

// Adds the meter of a device to `meters` unless another device shares it.
void add_meter(const DeviceInfo& info, const PowerSources& sources,
               std::vector<std::unique_ptr<PowerMeter>>& meters, std::set<std::string>& texts) {
  const std::vector<ocl::Device>& usable = ocl::devices().usable;
  const auto device = std::find_if(usable.begin(), usable.end(), [&](const ocl::Device& other) {
    return other.info.id == info.id;
  });
  if (device == usable.end()) throw NoMeter{"it is not there any more"};
  if (info.is_cpu || info.is_integrated) {
    if (texts.insert("RAPL, the processor").second)
      meters.push_back(processor_meter(sources.sysfs));
  } else if (const auto uuid = ocl::uuid_of(*device);
             uuid && info.vendor.find("NVIDIA") != std::string::npos) {
    if (texts.insert("NVML, " + nvml_name(*uuid)).second)
      meters.push_back(std::make_unique<NvmlMeter>(sources.nvml, nvml_name(*uuid)));
  } else {
    const std::string address = bus_address(*device);
    if (texts.insert("hwmon, " + (address.empty() ? info.name : address)).second)
      meters.push_back(card_meter(sources.sysfs, address));
  }
}

}  // namespace

PowerMeter::Found PowerMeter::find(const std::vector<DeviceInfo>& devices,
                                   const PowerSources& sources) {
  std::vector<std::unique_ptr<PowerMeter>> meters;
  std::set<std::string> texts;
  for (const DeviceInfo& device : devices) {
    try {
      add_meter(device, sources, meters, texts);
    } catch (const NoMeter& problem) {
      return {nullptr, "the power of " + device.id + ", " + device.name +
                           ", cannot be measured: " + problem.why};
    }
  }
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : " and ") + one;
  return {std::make_unique<SumOfMeters>(std::move(meters)), text};
}

}  // namespace clinfer
