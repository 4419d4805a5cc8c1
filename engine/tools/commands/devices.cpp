// clinfer devices: lists devices, and what was refused and why.
#include <iostream>

#include "engine/compile/graph_launch.h"
#include "engine/ocl/device.h"
#include "engine/tools/commands.h"
#include "engine/tools/output/text.h"
#include "kernels/base/text.h"
#include "kernels/op.h"
#include "tuning/shipped.h"

namespace clinfer {

namespace {

std::string kind_of(const DeviceInfo& device) {
  if (device.is_cpu) return "CPU";
  return device.is_integrated ? "integrated GPU" : "discrete GPU";
}

// The families that can compute a layer on a device. The first one that accepts it is used unless a
// tuning file says otherwise.
struct LayerKernels {
  std::string layer;
  std::vector<std::string> families;                         // those that accept it, best first
  std::vector<std::pair<std::string, std::string>> refused;  // with the reasons
};

LayerKernels kernels_of(const std::string& layer, const std::string& type, ElementType data_type,
                        const Shape& data, const Shape& filter, const Attributes& attributes,
                        const DeviceTraits& traits) {
  const OpDef* def = find_op(type, 1);
  OpDesc desc;
  desc.name = layer;
  desc.type = type;
  desc.opset = 1;
  desc.attributes = attributes;
  const auto layout = [&](ElementType element, const Shape& shape) {
    return has_channels_last(def->layout, shape) ? TensorDesc::channels_last(element, shape)
                                                 : TensorDesc::row_major(element, shape);
  };
  const ElementType weight = data_type == ElementType::u8 ? ElementType::i8 : ElementType::f32;
  desc.inputs = {layout(data_type, data), TensorDesc::row_major(weight, filter)};
  desc.constants = {Tensor(), Tensor::allocate(weight, filter)};
  desc.own_inputs = 2;
  const std::vector<ValueInfo> infos{{data_type, data, {}}, {weight, filter, desc.constants[1]}};
  for (const ValueInfo& info : def->infer_shapes({type, 1, attributes, infos, 1}))
    desc.outputs.push_back(layout(info.type, info.shape));
  LayerKernels result;
  result.layer = layer;
  for (const KernelFamily* family : def->families) {
    const std::string why = family->reject(desc, traits);
    if (why.empty())
      result.families.push_back(family->name);
    else
      result.refused.emplace_back(family->name, why);
  }
  return result;
}

// Lists kernels of layers in which most of a network's time is spent.
std::vector<LayerKernels> kernels_on(const DeviceTraits& traits) {
  const ElementType real = traits.fp16 && !traits.is_cpu ? ElementType::f16 : ElementType::f32;
  const std::string type(name_of(real));
  Attributes conv;
  for (const auto& [name, value] : {std::pair("strides", "1,1"), std::pair("pads_begin", "1,1"),
                                    std::pair("pads_end", "1,1"), std::pair("dilations", "1,1")})
    conv.set(name, value);
  Attributes pointwise = conv;
  for (const char* pads : {"pads_begin", "pads_end"}) pointwise.set(pads, "0,0");
  Attributes transposed;
  transposed.set("transpose_b", "true");
  const auto of = [&](const std::string& layer, const std::string& op, ElementType element,
                      const Shape& data, const Shape& filter, const Attributes& attributes) {
    return kernels_of(layer, op, element, data, filter, attributes, traits);
  };
  const ElementType bytes = ElementType::u8;
  return {of("convolution 3x3, 64 to 64 channels of 56x56, " + type, "Convolution", real,
             {1, 64, 56, 56}, {64, 64, 3, 3}, conv),
          of("convolution 1x1, 256 to 256 channels of 14x14, " + type, "Convolution", real,
             {1, 256, 14, 14}, {256, 256, 1, 1}, pointwise),
          of("convolution 3x3, 64 to 64 channels of 56x56, bytes", "Convolution", bytes,
             {1, 64, 56, 56}, {64, 64, 3, 3}, conv),
          of("depthwise convolution 3x3, 96 channels of 56x56, " + type, "GroupConvolution", real,
             {1, 96, 56, 56}, {96, 1, 1, 3, 3}, conv),
          of("fully connected, 512 to 1000, " + type, "MatMul", real, {1, 512}, {1000, 512},
             transposed)};
}

DeviceTraits traits_of(const std::string& device) {
  return ocl::Context::create(ocl::select_device(device))->traits;
}

// Returns what CompiledModel::launch() says with LAUNCH=auto, before a model is known.
std::string launch_of(const std::string& device, const DeviceTraits& traits) {
  try {
    CudaOpening(ocl::select_device(device)).finish();
    return "graph";
  } catch (const cuda::Failure& failure) {
    return traits.vendor == Vendor::nvidia ? std::string("queue (") + failure.what() + ")"
                                           : "queue";
  }
}

void print_kernels(const std::string& device) {
  const DeviceTraits traits = traits_of(device);
  std::cout << "    launched by: " << launch_of(device, traits) << "\n";
  if (!has_shipped_records(traits))
    std::cout << "    kernels are chosen by models of their time, which were not compared with "
                 "measurements on this device; tuning-mode=create (clinfer tune) measures\n";
  for (const LayerKernels& kernels : kernels_on(traits)) {
    std::cout << "    " << kernels.layer << "\n";
    for (size_t i = 0; i < kernels.families.size(); ++i)
      std::cout << "        " << (i == 0 ? "used: " : "also: ") << kernels.families[i] << "\n";
    for (const auto& [family, why] : kernels.refused)
      std::cout << "        not:  " << family << ": " << why << "\n";
  }
}

std::string json_kernels(const DeviceTraits& traits) {
  std::vector<std::string> layers;
  for (const LayerKernels& kernels : kernels_on(traits)) {
    JsonMembers refused;
    for (const auto& [family, why] : kernels.refused)
      refused.emplace_back(family, json_quoted(why));
    layers.push_back(json_object({{"layer", json_quoted(kernels.layer)},
                                  {"families", json_strings(kernels.families)},
                                  {"refused", json_object(refused)}}));
  }
  return json_array(layers);
}

void print_text(const DeviceList& list, bool kernels) {
  for (const DeviceInfo& device : list.devices) {
    std::cout << device.id << "  " << device.name << "\n"
              << "    " << kind_of(device) << " of " << device.vendor << ", "
              << device.compute_units << " compute units, " << (device.memory >> 20)
              << " MiB, activations in " << (device.fp16 ? "f16" : "f32") << "\n"
              << "    " << device.version << ", driver " << device.driver << ", platform "
              << device.platform << "\n";
    if (kernels) print_kernels(device.id);
  }
  for (const std::string& reason : list.refused)
    std::cout << "refused: " << safe_line(reason) << "\n";
}

void print_json(const DeviceList& list, bool kernels) {
  std::vector<std::string> devices;
  for (const DeviceInfo& d : list.devices) {
    JsonMembers members{
        {"id", json_quoted(d.id)},           {"name", json_quoted(d.name)},
        {"vendor", json_quoted(d.vendor)},   {"platform", json_quoted(d.platform)},
        {"driver", json_quoted(d.driver)},   {"version", json_quoted(d.version)},
        {"cpu", json_flag(d.is_cpu)},        {"integrated", json_flag(d.is_integrated)},
        {"fp16", json_flag(d.fp16)},         {"compute_units", std::to_string(d.compute_units)},
        {"memory", std::to_string(d.memory)}};
    if (kernels) {
      const DeviceTraits traits = traits_of(d.id);
      members.emplace_back("launch", json_quoted(launch_of(d.id, traits)));
      members.emplace_back("measured", json_flag(has_shipped_records(traits)));
      members.emplace_back("kernels", json_kernels(traits));
    }
    devices.push_back(json_object(members));
  }
  std::cout << json_object(
                   {{"devices", json_array(devices)}, {"refused", json_strings(list.refused)}})
            << "\n";
}

void run(const Arguments& arguments) {
  const DeviceList list = list_devices();
  if (arguments.has("--json"))
    print_json(list, arguments.has("--kernels"));
  else
    print_text(list, arguments.has("--kernels"));
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
           {{"--json", "", "as one line of JSON"},
            {"--kernels", "",
             "also which kernel families compute common layers on each, and why others do not"}}},
          run};
}

}  // namespace clinfer
