// A network whose output is a picture: super-resolution, denoising, style. No GStreamer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/heads/network.h"

namespace clinfer {

// The range of the output picture's numbers.
enum class OutputRange { automatic, byte, unit, signed_unit };  // 0..255, 0..1, -1..1

struct FilterSettings : ModelOptions {
  std::string device = "GPU";
  std::string config;  // KEY=VALUE,...
  std::optional<std::string> cache_dir;
  OutputRange output_range = OutputRange::automatic;
};

struct PictureSize {
  int width = 0, height = 0;
};

// Used by one thread at a time.
class PictureModel {
 public:
  // Asked every few milliseconds: false ends what is under way by Error{cancelled}.
  using GoOn = std::function<bool()>;

  // Reads the model for frames of this size (FilterSettings::reshape may be "frame") and says what
  // comes out. Throws Error, also where the model's output is no picture.
  PictureModel(const FilterSettings& settings, PictureSize frame);

  PictureSize output() const { return output_; }
  // As long as anyone holds the model, others that read the same file get it without reading.
  std::shared_ptr<const Model> model() const { return network_.model; }
  // Guesses to report to the user, with how to set each; more may come with the first picture.
  std::vector<std::string> take_notices();

  // Builds the programs on a thread of its own. Returns once run() can compute: at the latest with
  // the kernels, in milliseconds where the host computes until then (the first tier). Throws Error,
  // and run() throws what is found after that.
  void compile(const GoOn& go_on = {});
  // Whether another tier computes from now on: true once for each. `running()` says which. A picture
  // is computed by one tier alone.
  bool take_newest();
  const CompiledModel& running() const { return *compiled_; }
  bool is_compiled() const { return build_ == nullptr; }  // there will be no other tier
  const std::string& name() const { return network_.name; }
  // Makes a picture from a frame: `rows` of R, G, B bytes, `stride` bytes apart. Where the network
  // makes the luma alone, colours are those of the frame.
  void run(const Frame& frame, uint8_t* rows, int stride, const GoOn& go_on = {});

 private:
  void find_output();
  // Factor and summand from the output's numbers to 0..255.
  std::pair<float, float> scaling(const float* values, size_t count);

  FilterSettings settings_;
  Network network_;
  size_t output_index_ = 0;
  PictureSize output_;
  int channels_ = 3;
  bool channels_last_ = false;
  OutputRange range_ = OutputRange::automatic;
  std::shared_ptr<CompiledModel> compiled_;
  std::unique_ptr<InferRequest> request_;
  std::vector<std::string> notices_;
  std::unique_ptr<CompileTask> build_;  // until its last model is taken
};

}  // namespace clinfer
