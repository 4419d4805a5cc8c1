// Runs networks on frames.
#include "engine/tools/video/video_model.h"

#include <filesystem>

#include "engine/tools/commands.h"

namespace clinfer {

VideoModel::VideoModel(const ModelOptions& options, Config config)
    : network_(describe_network(options)) {
  say_notes(*network_.model);
  if (network_.clip_length > 1)
    throw Error(ErrorCode::unsupported, network_.model->path() + " takes clips of " +
                                            std::to_string(network_.clip_length) +
                                            " frames, which this command does not feed");
  // Infers one frame at a time, whatever batch the file states.
  config.batch = network_.model->inputs()[network_.image_input].shape[0] == 1 ? 0 : 1;
  compiled_ = compile_model(network_.model, config);
  request_ = compiled_->create_request();
  for (const auto& [input, value] : network_.constants) request_->set_input(input, value);
}

size_t VideoModel::file_bytes() const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = network_.model->path();
  size_t bytes = 0;
  for (const fs::path& file : {path, fs::path(path).replace_extension(".bin")})
    if (const auto size = fs::file_size(file, error); !error) bytes += size;
  return bytes;
}

std::vector<Tensor> VideoModel::infer(const Frame& frame, const FrameTransform& transform,
                                      Placement& placement) const {
  Frame part = frame;
  if (network_.crop_share < 1) {
    const Rect all{0, 0, frame.width, frame.height};
    part.region = fed_part(frame.region.width == 0 ? all : frame.region, network_);
  }
  placement = request_->set_frame(network_.image_input, part, transform);
  request_->start();
  request_->wait();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < compiled_->outputs().size(); ++i) outputs.push_back(request_->output(i));
  return outputs;
}

PictureResults VideoModel::results(const Frame& frame, float threshold) const {
  Placement placement;
  const std::vector<Tensor> outputs = infer(frame, network_.transform, placement);
  DecodeSettings settings = network_.model_defaults;
  settings.threshold = threshold;
  Results results;
  run_head(network_.head, network_.facts, outputs, settings, false, results);
  return place(results, placement, frame.width, frame.height);
}

}  // namespace clinfer
