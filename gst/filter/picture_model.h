// A network whose output is a picture: super-resolution, denoising, style. Uses no GStreamer.
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

// To be used by one thread at a time.
class PictureModel {
 public:
  // Called every few milliseconds. Returns false to end the work by Error{cancelled}.
  using GoOn = std::function<bool()>;

  // Reads the model for frames of this size (FilterSettings::reshape may be "frame") and finds its
  // output. Throws Error, also if no output is a picture.
  PictureModel(const FilterSettings& settings, PictureSize frame);

  PictureSize output() const { return output_; }
  // Returns the model. While it is held, others that read the same file get it without reading.
  std::shared_ptr<const Model> model() const { return network_.model; }
  // Returns guesses to report to the user, with how to set each; the first picture may add some.
  std::vector<std::string> take_notices();

  // Builds the programs on a thread of its own. Returns once run() can compute: with the kernels at
  // the latest, or in milliseconds if the host computes until then (the first tier). Throws Error;
  // run() throws errors that occur later.
  void compile(const GoOn& go_on = {});
  // Returns true once for each change of the tier; running() tells which one computes now. Each
  // picture is computed by one tier.
  bool take_newest();
  const CompiledModel& running() const { return *compiled_; }
  bool is_compiled() const { return build_ == nullptr; }  // no other tier follows
  const std::string& name() const { return network_.name; }
  // Computes a picture from a frame: writes `rows` of R, G, B bytes, `stride` bytes apart. If the
  // network computes only luma, colours are the frame's.
  void run(const Frame& frame, uint8_t* rows, int stride, const GoOn& go_on = {});

 private:
  void find_output();
  // Returns factor and summand that map the output's numbers to 0..255.
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
  std::unique_ptr<CompileTask> build_;  // held until its last model is taken
};

}  // namespace clinfer
