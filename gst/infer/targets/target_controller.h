// Chooses how many frames are inferred and how large batches are, so that a device reaches a target
// of latency or power. Plain C++ without clocks, threads or devices, so that tests can simulate
// cameras exactly.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace clinfer {

// Tells the periods in which streams start. Their first frames wait for pipelines, files, threads
// and kernels, and those of other streams wait with them, so that times say nothing of the device.
//
// Not thread-safe.
class StartingStreams {
 public:
  // Takes the number of live streams of a period. Returns whether many of them have just started.
  bool next(size_t streams);

 private:
  size_t known_ = 0;
  int left_ = 0;  // periods
};

// Limits the inferences of all live streams on one device, by what was measured in a period of
// about a second.
//
// While all is well, there is no limit. If the latency or the power is above its target, or if the
// device refuses many frames (so that streams are inferred at uneven intervals), the streams get a
// limit: inferences per second and share, equal for all. The limit rises again when the device has
// time left. A rise that had to be taken back is tried again only after a pause, which doubles each
// time. A change of the streams' demand ends the pause. If streams come or leave, the others get
// more or less, so that the device gets as many inferences as before.
//
// Not thread-safe.
class TargetController {
 public:
  // The frames of one stream in a period.
  struct Stream {
    double share = 1;     // its weight
    double wanted = 0;    // frames to infer, by the stream's other settings
    double inferred = 0;  // frames of which the results came
  };
  struct Period {
    double seconds = 1;
    std::vector<Stream> streams;
    // The 95th percentile over all inferred frames of their latency divided by their target;
    // nothing without a target or frames.
    std::optional<double> latency;
    double busy = 0;  // share of the time that the device worked, 1 if always
    double load = 0;  // the same, if all batches had been as large as they may be
    // Mean power divided by its target; nothing without a target or a meter.
    std::optional<double> power;
    bool starts = false;  // as StartingStreams says; then nothing else but `streams` counts
  };
  enum class Target { latency, power };
  struct Decision {
    std::optional<double> limit;                     // inferences per second of a stream of share 1
    const char* reason = "the targets are reached";  // of the last change
    unsigned changes = 0;                            // of the limit, in all
    // A target that cannot be reached, although the limit is as low as it may be.
    std::optional<Target> missed;
  };

  // Takes the measurements of a period, and returns what holds for the next one.
  const Decision& next(const Period& period);
  const Decision& decision() const { return decision_; }
  // To be called after periods that next() did not get, because the streams had no limit or another
  // variant of their model: what was measured before them does not count.
  void forget_periods();
  // Removes the limit, because the device infers more frames than it did when the limit was found.
  void lift(const char* reason);

 private:
  struct Totals {
    // Inferences per second: without a limit, under the present one, and those that were made.
    double wanted = 0, allowed = 0, inferred = 0;
    size_t streams = 0;
  };
  void share_among(const Period& period);
  void note_demand(const Totals& totals);
  void note_period(const Period& period, const Totals& totals);
  bool lower(const Period& period, const Totals& totals);
  bool raise(const Period& period, const Totals& totals);
  void set(const Period& period, double total, const char* reason);

  Decision decision_;
  Totals demand_;      // for which the present limit was found
  double shares_ = 0;  // of all streams
  // Of the last periods since the last change, the newest with the most weight.
  double latency_ = 0, allowed_ = 0, inferred_ = 0;
  int late_ = 0;          // periods in a row in which frames were late
  int powerful_ = 0;      // periods in a row in which the power was above its target
  int calm_ = 0;          // periods in a row in which the limit could rise
  int since_change_ = 0;  // periods
  int since_raise_ = 0;   // periods
  int patience_ = 0;      // calm periods before the limit rises
  int missed_ = 0;        // periods in a row at the least limit with a target missed
};

// Limits the batches of one model. The larger a batch, the more images per second on most devices,
// but the later its first image.
//
// Not thread-safe.
class BatchController {
 public:
  // `most`: images for which the model is compiled, at least 1.
  explicit BatchController(size_t most) : most_(most), times_(most + 1), limit_(most) {}

  // Batches of one size.
  struct Batches {
    double count = 0;
    double milliseconds = 0;  // of all of them
  };
  // Takes the batches of a period by their number of images, and the longest milliseconds that a
  // batch may take. Returns the most images of a batch. A size counts as measured if its batches
  // were a good part of the period's work: few among many say more about what held them up. A size
  // that is not measured for some periods is tried again, because what made it slow may have passed.
  size_t next(const std::vector<Batches>& by_images, std::optional<double> longest);
  size_t limit() const { return limit_; }
  // Returns the smoothed milliseconds of a batch of so many images, an upper bound for sizes that
  // were not measured; 0 before the first measurement.
  double milliseconds(size_t images) const;

 private:
  struct Time {
    double milliseconds = 0;    // smoothed; 0: not measured
    int age = 0;                // periods since the last measurement
    int lasts = kShortestLast;  // periods after which a measurement is forgotten
  };
  static constexpr int kShortestLast = 10, kLongestLast = 120;
  const size_t most_;
  std::vector<Time> times_;
  size_t limit_;
};

// Return the shares of a latency target in which a batch is to be computed, and for which a frame
// may wait for the device if a batch takes `batch` milliseconds: one batch runs when a frame comes,
// and a part is left for noise and for decoding.
double batch_time_for(double target);
double wait_time_for(double target, double batch);

}  // namespace clinfer
