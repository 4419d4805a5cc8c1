// Asks devices which layers of a model they have kernels for.
#pragma once

#include <string>
#include <vector>

#include "engine/devices/affinity.h"
#include "engine/engine.h"
#include "engine/passes/passes.h"

namespace clinfer {

class LayerDevices {
 public:
  // `graph`: the model's, as read. Opens each device to know its traits.
  LayerDevices(const Config& config, const Graph& graph, std::vector<std::string> devices);

  const std::vector<std::string>& devices() const { return devices_; }
  const PassContext& context(size_t device) const { return contexts_[device]; }
  // Returns why the device has no kernels for a layer of the graph after the pass fold_constants;
  // "" if it has. Also says whether the host computes the layer for that device then.
  std::string why_not(const Node& node, size_t device, bool& on_host) const;
  // Returns the devices that the graph states, or else the first for each layer that has kernels
  // for it (automatic_affinities()). Throws Error{cancelled}, and what stated_affinities() does.
  Affinities affinities(const Graph& graph, const Progress& progress) const;

 private:
  const std::vector<std::string> devices_;
  std::vector<PassContext> contexts_;
  // CONFIG_FILE of each device, if kernels of the user are for one of them alone; else empty.
  std::vector<std::string> config_files_;
};

}  // namespace clinfer
