// The base of requests whose inputs do not matter to a test: it states when they end and what they give.
#pragma once

#include "engine/engine.h"

namespace clinfer {

class RequestWithoutInputs : public InferRequest {
 public:
  void set_input(size_t, const Tensor&) override {}
  std::span<std::byte> input_memory(size_t) override { return {}; }
  void cancel() override {}
  Placement set_frame(size_t, const Frame&, const FrameTransform&, size_t,
                      const FrameMemory*) override {
    return {};
  }
  Placement set_surface(size_t, const std::shared_ptr<ImportedSurface>&, const Frame&,
                        const FrameTransform&, size_t) override {
    return {};
  }
  Placement set_memory(size_t, const ImportedPlanes&, const Frame&, const FrameTransform&,
                       size_t) override {
    return {};
  }
};

}  // namespace clinfer
