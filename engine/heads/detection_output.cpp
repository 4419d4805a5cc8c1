// Rows of seven as SSD's DetectionOutput makes them: image, label, confidence, x_min, y_min, x_max,
// y_max.
#include "engine/heads/common.h"
#include "engine/heads/heads.h"

namespace clinfer {

Match match_detection_output(const ModelFacts& facts) {
  for (size_t index = 0; index < facts.outputs.size(); ++index) {
    const OutputFacts& output = facts.outputs[index];
    if (output.shape.empty() || output.shape.back() != 7 || !is_float_output(output)) continue;
    const bool by_op = output.op == "DetectionOutput";
    if (!by_op && squeeze_front(output.shape).size() > 2) continue;
    const float width = static_cast<float>(facts.width), height = static_cast<float>(facts.height);
    auto decode = [=](std::span<const Tensor> outputs, const DecodeSettings& settings,
                      Results& results) {
      if (index >= outputs.size()) throw Error{ErrorCode::device_failed, "the output is missing"};
      Floats values(outputs[index]);
      const size_t rows = values.size() / 7;
      // DetectionOutput's boxes are shares of the picture; other makers of such rows may use
      // pixels.
      bool pixels = false;
      size_t used = 0;
      for (; used < rows; ++used) {
        const float* row = values.data() + used * 7;
        if (!(row[0] >= 0)) break;  // a negative image number ends the list
        if (!by_op && row[2] >= settings.threshold)
          for (int k = 3; k < 7; ++k) pixels = pixels || (std::isfinite(row[k]) && row[k] > 2);
      }
      const float x_unit = pixels ? 1 : width, y_unit = pixels ? 1 : height;
      std::vector<Detection> found;
      for (size_t i = 0; i < used; ++i) {
        const float* row = values.data() + i * 7;
        if (!(row[0] < 1) || !(row[1] >= 0 && row[1] < 1e6f)) continue;
        add_detection(settings, row[3] * x_unit, row[4] * y_unit, row[5] * x_unit, row[6] * y_unit,
                      row[2], static_cast<int64_t>(row[1]), found);
      }
      finish_detections(settings, false, found, results);
    };
    const bool certain = by_op || (facts.outputs.size() == 1 && output.shape.size() == 4);
    return {certain ? Fit::certain : Fit::possible, output.name + " has rows of 7", decode};
  }
  return {Fit::no, "needs an output of rows of 7 numbers ([1,1,N,7])", {}};
}

}  // namespace clinfer
