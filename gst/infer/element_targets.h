// Implements target-latency and target-power for an element: joins the group of its device, and
// says what cannot be reached.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "gst/infer/model/model_loader.h"
#include "gst/infer/stream/element_shared.h"
#include "gst/infer/targets/target_group.h"

namespace clinfer {

// Thread-safe. No lock is held while a message is posted.
class ElementTargets {
 public:
  // Makes the element use this variant of its model from now on. Does not block.
  using Adopt = std::function<void(std::shared_ptr<SharedModel> variant)>;
  ElementTargets(ElementShared& shared, Adopt adopt) : shared_(shared), adopt_(std::move(adopt)) {}
  ~ElementTargets() {  // without a call of `adopt`, whose element is being destroyed
    if (group_ != nullptr) group_->leave(shared_.target);
  }

  void restart();  // called before a stream begins
  // Called when the element plays with a target, and when it does no longer. Between the calls,
  // tick() is called once in TargetGroup::kPeriod.
  void start();
  void stop();
  // Follows the session (may be null) and the properties, and lets the group measure.
  void tick(const std::shared_ptr<const Session>& session);
  // Adds what was chosen and why: fields target-...
  void add_to(GstStructure* stats) const;

 private:
  std::optional<TargetGroup::Report> follow(const std::shared_ptr<const Session>& session,
                                            const Settings& settings);
  void leave();
  void tell_trials(const ModelTrials::Report& report, const Session& session);
  bool is_first(bool& told);
  void tell(const TargetGroup::Report& report, const Session& session, const Settings& settings);

  ElementShared& shared_;
  const Adopt adopt_;
  mutable std::mutex mutex_;  // guards the members below
  bool plays_ = false;
  bool told_latency_ = false, told_power_ = false, told_of_files_ = false;
  std::shared_ptr<TargetGroup> group_;
  std::optional<uint64_t> told_news_;  // number of the last one; nothing before the first report
};

}  // namespace clinfer
