// Tells before a model is compiled which device would compute which layer, and why. This public
// header is for applications that divide a model among devices by themselves (HETERO).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// A layer of a model, by the name that the model's file gives it.
struct LayerQuery {
  std::string layer, type;
  // "GPU.0": the device of the list that HETERO would give the layer; of a single device its own.
  std::string device;
  bool on_host = false;  // the device has no kernel, and the host computes the layer for it
  // Why the device has no kernel; "" if it has one. Without on_host, the layer cannot run.
  std::string reason;
};

// Returns each layer that computes something which does not follow from constants, in the order of
// computing. `config.device` is one device or a list ("HETERO:GPU,CPU", "GPU,CPU"); with
// CONFIG_FILE for one of them ("GPU.1.CONFIG_FILE") the user's kernels there count. Nothing is
// compiled for a device. Throws Error{no_device, bad_argument}.
std::vector<LayerQuery> query_model(const std::shared_ptr<const Model>& model,
                                    const Config& config);

// Layers' devices by layer: "CPU", "GPU.1".
using DeviceByLayer = std::map<std::string, std::string>;

// Returns the devices that query_model() found.
DeviceByLayer devices_of(const std::vector<LayerQuery>& layers);

// Returns the model with these devices for its layers, as affinities in its file would have it;
// device=HETERO obeys them. Each layer that query_model() lists needs one. Throws
// Error{bad_argument} for a layer that the model does not have.
std::shared_ptr<const Model> with_devices(const std::shared_ptr<const Model>& model,
                                          const DeviceByLayer& devices);

}  // namespace clinfer
