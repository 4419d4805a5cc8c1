// Describes the outputs of an invented network, for tests of how heads are chosen and read.
#pragma once

#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"

namespace clinfer::test {

// Holds the facts of a network whose picture has the given size, and the values of its outputs.
struct OutputsCase {
  ModelFacts facts;
  std::vector<Tensor> tensors;

  OutputsCase(int width, int height) { facts.width = width, facts.height = height; }
  // Adds an output that the operation `op` makes; without values it holds zeros.
  void add(const std::string& name, Shape shape, std::vector<float> values,
           const std::string& op = "Add", ElementType type = ElementType::f32) {
    if (values.empty()) values.assign(static_cast<size_t>(count(shape)), 0.0f);
    facts.outputs.push_back({name, {}, type, shape, op, {}});
    tensors.push_back(Tensor::of<float>(type, shape, values));
  }
  HeadChoice choose(const std::string& post_process = "auto") const {
    return choose_head(facts, post_process);
  }
  Results decode(const DecodeSettings& settings = {},
                 const std::string& post_process = "auto") const {
    Results results;
    run_head(choose(post_process), facts, tensors, settings, false, results);
    return results;
  }
};

}  // namespace clinfer::test
