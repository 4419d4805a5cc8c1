// A request of a model with open inputs, each inference of which may have other shapes.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/runtime/requests/infer_request.h"
#include "engine/runtime/shape_plans.h"

namespace clinfer {

// Has a request of its own for the shapes that the model was compiled for, and for each of the
// other shapes that it used last.
class ShapedRequest final : public InferRequest {
 public:
  // `ports`: the inputs as compiled.
  ShapedRequest(std::unique_ptr<DeviceRequest> compiled, std::vector<Port> ports,
                std::shared_ptr<ShapePlans> plans);

  void set_input(size_t index, const Tensor& value) override;
  std::span<std::byte> input_memory(size_t index) override;
  void cancel() override;
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory) override;
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform,
                        size_t image) override;
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image) override;
  void start(size_t images) override;
  bool wait(std::optional<std::chrono::milliseconds> timeout) override;
  const Tensor& output(size_t index) const override;

  // Returns the request for the compiled shapes, whose inputs and outputs an application may set by
  // engine/opencl.h.
  DeviceRequest& compiled() { return *compiled_; }
  // Notes that an input of compiled() was set by engine/opencl.h.
  void took_over(size_t index);

 private:
  // An input that set_input() has set.
  struct Value {
    uint64_t number;  // counts the calls of set_input()
    // A copy, if its shape is not the compiled one; else it lies in compiled().
    std::optional<Tensor> copy;
  };
  struct Other {
    std::shared_ptr<const ShapePlans::Plan> plan;
    std::unique_ptr<InferRequest> request;
    std::map<size_t, uint64_t> given;  // numbers of the values that it has, by input
  };
  void check(size_t index, const Shape& shape) const;
  void check_idle() const;
  bool is_as_compiled() const;
  Other& request_for(const ShapePlans::Shapes& shapes);

  const std::unique_ptr<DeviceRequest> compiled_;
  const std::vector<Port> ports_;
  const std::shared_ptr<ShapePlans> plans_;
  ShapePlans::Shapes shapes_;       // wanted by the next inference
  std::map<size_t, Value> values_;  // by input
  uint64_t last_number_ = 0;
  std::list<Other> others_;  // those used last first
  bool running_ = false;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;      // guards changes of active_, for cancel()
  InferRequest* active_;  // runs or ran the last inference
};

}  // namespace clinfer
