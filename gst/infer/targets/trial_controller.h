// Chooses how a model is compiled, by trials on live frames: with how many streams of the device,
// and in which precision. Plain C++ without clocks, threads or devices, as target_controller.h.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// One way to compile a model.
struct Variant {
  unsigned streams = 1;
  Precision precision = Precision::f32;
  auto operator<=>(const Variant&) const = default;
};

// Decides for one model, once in a period of about a second.
//
// While the device cannot infer all frames that are wanted, another variant is tried: another
// precision, one stream more, or one less. It is compiled beside the present one. Then all frames
// go to the present variant, to the other one, and to the present one again, for some periods each.
// If the present one infers all of them, the trial ends. The other one is taken if it infers more
// frames than the present one did both times. Otherwise it
// is tried again only after a pause, which doubles each time.
//
// Not thread-safe.
class TrialController {
 public:
  // The variants that may be tried.
  struct Bounds {
    unsigned most_streams = 0;          // 0: the number of streams is fixed
    std::vector<Precision> precisions;  // the present one may be among them
  };
  struct Period {
    double inferred = 0;    // frames per second that came within their targets
    double wanted = 0;      // frames per second that are to be inferred
    bool is_short = false;  // the device cannot infer all frames; not read during a trial
    size_t users = 0;       // live streams; a change of their number ends a trial
  };
  // before, candidate, after: which variant is being measured.
  enum class Phase { idle, compiling, before, candidate, after };
  // The result of a trial that was not ended before.
  struct Outcome {
    Variant from, to;
    double gain = 0;  // frames inferred by `to` for each one that `from` inferred
    bool taken = false;
  };

  explicit TrialController(const Variant& present) : present_(present) {}

  // Takes the measurements of a period, and returns the phase of the next one. In the phase
  // `compiling` the owner compiles candidate(), and calls compiled() or refuse().
  Phase next(const Period& period, const Bounds& bounds);
  void compiled() { begin(Phase::before); }
  // The candidate cannot be had: it is not tried again.
  void refuse();
  // Ends a trial without a result.
  void stop();

  Phase phase() const { return phase_; }
  bool is_measuring() const { return phase_ > Phase::compiling; }
  const Variant& present() const { return present_; }
  const Variant& candidate() const { return candidate_; }
  // Returns the result of the trial that the last call of next() has ended, if it has.
  const std::optional<Outcome>& outcome() const { return outcome_; }
  // Returns whether the last call of next() has ended a trial because the present variant infers
  // all frames.
  bool was_needless() const { return was_needless_; }

 private:
  struct Tried {
    int pause = 0;  // periods until the variant may be tried again
    int last_pause = 0;
    bool refused = false;
  };
  bool choose(const Bounds& bounds);
  void measure(const Period& period);
  void begin(Phase phase);
  void end(double gain);

  Variant present_, candidate_;
  Phase phase_ = Phase::idle;
  std::map<Variant, Tried> tried_;
  std::optional<Outcome> outcome_;
  bool was_needless_ = false;
  int short_ = 0;    // periods in a row in which the device was short
  int periods_ = 0;  // of the present phase
  size_t users_ = 0;
  // Frames per second: sums over the measured periods of this phase, and means of earlier ones.
  double sum_ = 0, wanted_ = 0, before_ = 0, tried_rate_ = 0;
};

}  // namespace clinfer
