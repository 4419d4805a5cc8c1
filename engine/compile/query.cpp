// Says which device computes which layer, and writes such a choice into a model.
#include "engine/query.h"

#include <set>

#include "engine/compile/device_choice.h"
#include "engine/compile/layer_devices.h"
#include "engine/graph/affinity.h"
#include "engine/ocl/choose.h"
#include "engine/runtime/model.h"
#include "kernels/base/default_floats.h"
#include "kernels/base/text.h"

namespace clinfer {

std::vector<LayerQuery> query_model(const std::shared_ptr<const Model>& model,
                                    const Config& stated) {
  const DefaultFloats floats;
  Config config = stated;
  if (config.device.find(',') != std::string::npos && config.device.find(':') == std::string::npos)
    config.device = "HETERO:" + config.device;
  config = with_fallback(config);
  DeviceChoice choice = choose_devices(config.device);
  for (std::string& device : choice.devices)
    if (std::string full = ocl::full_device_name(device); !full.empty()) device = std::move(full);
  const auto graph = model->graph().clone();
  if (config.batch != 0 && config.batch != kAutoBatch) set_batch(*graph, config.batch);
  const LayerDevices asked(config, *graph, choice.devices);
  run_passes(*graph, asked.context(0), "fold_constants");
  const Affinities affinities = asked.affinities(*graph, {});
  std::vector<LayerQuery> layers;
  for (const auto& node : graph->nodes()) {
    const auto found = affinities.find(node.get());
    if (found == affinities.end()) continue;
    LayerQuery& layer = layers.emplace_back();
    layer.layer = node->name;
    layer.type = node->type;
    layer.device = asked.devices()[found->second];
    layer.reason = asked.why_not(*node, found->second, layer.on_host);
  }
  return layers;
}

DeviceByLayer devices_of(const std::vector<LayerQuery>& layers) {
  DeviceByLayer devices;
  for (const LayerQuery& layer : layers) devices[layer.layer] = layer.device;
  return devices;
}

std::shared_ptr<const Model> with_devices(const std::shared_ptr<const Model>& model,
                                          const DeviceByLayer& devices) {
  const DefaultFloats floats;
  std::unique_ptr<Graph> graph = model->graph().clone();
  std::set<std::string> known;
  for (const auto& node : graph->nodes()) {
    const auto found = devices.find(node->name);
    if (found == devices.end()) continue;
    node->attributes.set(kAffinity, found->second);
    known.insert(node->name);
  }
  for (const auto& [layer, device] : devices)
    if (!known.contains(layer))
      throw Error(ErrorCode::bad_argument, model->path() + ": there is no layer \"" +
                                               printable(layer) + "\" for " + printable(device));
  return std::make_shared<ReadModel>(*model, std::move(graph));
}

}  // namespace clinfer
