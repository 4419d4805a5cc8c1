// The bundled detector, for tests of requests.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace clinfer::test {

inline std::string ball_model() {
  return std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
}

// The first output for one input, as floats.
inline std::vector<float> infer(InferRequest& request, const Tensor& input) {
  request.set_input(0, input);
  request.start();
  request.wait();
  return request.output(0).to_floats();
}

}  // namespace clinfer::test
