// Puts the live streams on one device together, so that they reach their targets of latency and
// power in common.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/power.h"
#include "gst/infer/model/shared_model.h"
#include "gst/infer/targets/model_trials.h"
#include "gst/infer/targets/target_controller.h"
#include "gst/infer/targets/target_stream.h"

namespace clinfer {

// Thread-safe. Elements join with their streams, and each calls step() about once a second; the
// first call after a second has passed measures all streams and gives all of them their orders.
class TargetGroup {
 public:
  using Clock = TargetStream::Clock;
  // Timers of several elements do not fall on the same instant, so a period may be a little
  // shorter.
  static constexpr std::chrono::milliseconds kPeriod{1000}, kShortestPeriod{900};

  // The wishes of a stream.
  struct Wishes {
    double latency = 0;  // milliseconds; 0: no target
    double power = 0;    // watts; 0: no target
    unsigned share = 1;
    bool sets_wait = true;      // false: the stream has a wait for batches of its own
    bool frees_streams = true;  // false: its settings fix the number of streams of the device
  };
  // The state of a stream and its group.
  struct Report {
    TargetController::Decision decision;
    size_t batch = 0;               // most images of a batch
    double batch_ms = 0;            // time of a batch; 0: not known
    std::optional<double> latency;  // 95th percentile of the last period, in milliseconds
    std::optional<double> frames;   // frames per inference; nothing before the first period
    size_t streams = 0;
    std::string meter;  // what the power is read from; if there is no power, why not
    std::optional<double> watts, joules_per_frame;
    std::optional<ModelTrials::Report> model;  // nothing before the first period
  };

  // Returns the group of all elements of the process whose model runs on `devices`.
  static std::shared_ptr<TargetGroup> of(const std::vector<DeviceInfo>& devices);
  explicit TargetGroup(std::vector<DeviceInfo> devices) : devices_(std::move(devices)) {}

  // Adds a stream, or renews its wishes and its model.
  void join(const std::shared_ptr<TargetStream>& stream, const std::shared_ptr<SharedModel>& model,
            const Wishes& wishes);
  // Removes a stream, which then has no orders. Returns the model that it is to use from now on;
  // null if it had not joined.
  std::shared_ptr<SharedModel> leave(const std::shared_ptr<TargetStream>& stream);
  void step(Clock::time_point now);
  std::optional<Report> report(const std::shared_ptr<TargetStream>& stream) const;

 private:
  struct Member {
    std::weak_ptr<SharedModel> model;
    Wishes wishes;
    std::optional<double> latency, frames;
    // Frames of the last period that came within the target, and those that were to be inferred.
    double in_time = 0, wanted = 0;
  };
  // A model, and how its batches are limited.
  struct Work {
    explicit Work(const ModelBatcher& batcher) : batches(batcher.batch_size()) {}
    BatchController batches;
    double milliseconds = 0;  // of a batch, smoothed
  };

  void forget_unused_models();
  void measure_models(double seconds, TargetController::Period& period);
  void measure_streams(TargetController::Period& period);
  void measure_power(TargetController::Period& period);
  std::optional<double> limit_for(const TargetController::Period& period);
  void give_orders(std::optional<double> limit);

  const std::vector<DeviceInfo> devices_;
  mutable std::mutex mutex_;
  std::map<std::shared_ptr<TargetStream>, Member> members_;
  // The models of the members. Their memory is not the group's to keep.
  std::map<std::weak_ptr<SharedModel>, Work, std::owner_less<>> models_;
  StartingStreams starting_;
  TargetController controller_;
  ModelTrials trials_;
  std::optional<Clock::time_point> begun_;  // the present period
  std::optional<PowerMeter::Found> power_;  // nothing before the first period
  std::optional<double> watts_;
  double joules_ = 0, frames_ = 0;  // of the last periods, the newest with the most weight
};

}  // namespace clinfer
