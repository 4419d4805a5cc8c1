// Requests of a compiled model.
#include "engine/runtime/compiled_model.h"

#include "engine/runtime/infer_request.h"

namespace clinfer {

DeviceModel::DeviceModel(std::shared_ptr<const Model> model, std::shared_ptr<DeviceNetwork> network,
                         CompileReport report)
    : model_(std::move(model)), network_(std::move(network)), report_(std::move(report)) {}

std::unique_ptr<InferRequest> DeviceModel::create_request() {
  try {
    // The request keeps this model alive by its reference to the network.
    return std::make_unique<DeviceRequest>(
        std::shared_ptr<DeviceNetwork>(shared_from_this(), network_.get()),
        network_->stream(next_request_++ % network_->stream_count()));
  } catch (const cl::Error& error) {
    ocl::rethrow(error, "creating an infer request");
  }
}

}  // namespace clinfer
