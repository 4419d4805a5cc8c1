// Connects an element with the group of its device.
#include "gst/infer/element_targets.h"

#include <cstdio>

#include "gst/base/log.h"

#define GST_CAT_DEFAULT clinfer_streaming_debug

namespace clinfer {
namespace {

std::vector<DeviceInfo> devices_of(const CompiledModel& compiled) {
  std::vector<DeviceInfo> devices;
  for (const DeviceUse& use : compiled.devices()) devices.push_back(use.device);
  return devices;
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f" : "%.0f", value);
  return text;
}

}  // namespace

void ElementTargets::restart() {
  const std::lock_guard lock(mutex_);
  told_latency_ = told_power_ = told_of_files_ = false;
}

void ElementTargets::start() {
  const std::lock_guard lock(mutex_);
  plays_ = true;
}

void ElementTargets::stop() {
  const std::lock_guard lock(mutex_);
  plays_ = false;
  leave();
}

// Needs the lock. Gives up a variant that is only tried, also one that is about to be adopted.
void ElementTargets::leave() {
  if (group_ == nullptr) return;
  if (std::shared_ptr<SharedModel> model = group_->leave(shared_.target)) adopt_(std::move(model));
  group_ = nullptr;
  told_news_.reset();
}

std::optional<TargetGroup::Report> ElementTargets::follow(
    const std::shared_ptr<const Session>& session, const Settings& settings) {
  const std::lock_guard lock(mutex_);
  const bool controls = plays_ && session != nullptr && !session->shared->is_interim &&
                        settings.has_targets() && shared_.live;
  if (!controls) {
    leave();
    return std::nullopt;
  }
  const std::shared_ptr<TargetGroup> group =
      TargetGroup::of(devices_of(*session->shared->compiled));
  if (group_ != group) leave();
  group_ = group;
  group_->join(shared_.target, session->shared,
               {static_cast<double>(settings.target_latency), settings.target_power, settings.share,
                settings.batch_timeout < 0, !settings.throughput_streams.has_value()});
  group_->step(TargetStream::Clock::now());
  std::optional<TargetGroup::Report> report = group_->report(shared_.target);
  // Under the lock, so that leave() comes before it or after it.
  if (report && report->model && report->model->use && report->model->use != session->shared)
    adopt_(report->model->use);
  return report;
}

void ElementTargets::tick(const std::shared_ptr<const Session>& session) {
  const std::shared_ptr<const Settings> settings = shared_.settings.now();
  const std::optional<TargetGroup::Report> report = follow(session, *settings);
  if (report && report->model) tell_trials(*report->model, *session);
  if (report) return tell(*report, *session, *settings);
  if (settings->has_targets() && !shared_.live && shared_.statistics.snapshot().frames_out != 0 &&
      is_first(told_of_files_))
    GST_ELEMENT_WARNING(shared_.element, RESOURCE, SETTINGS,
                        ("target-latency and target-power are for live sources; frames of this "
                         "source are all inferred, however long they wait"),
                        (nullptr));
}

// Tells what has changed since the last call.
void ElementTargets::tell_trials(const ModelTrials::Report& report, const Session& session) {
  const uint64_t last = report.news.empty() ? 0 : report.news.back().number;
  uint64_t told = 0;
  {
    const std::lock_guard lock(mutex_);
    told = std::exchange(told_news_, last).value_or(last);
  }
  for (const ModelTrials::News& news : report.news) {
    if (news.number <= told) continue;
    const std::string text = session.network.name + ": " + news.text;
    if (news.refused)
      GST_ELEMENT_WARNING(shared_.element, RESOURCE, SETTINGS, ("%s", text.c_str()),
                          ("allow-precision has no effect for it"));
    gst_element_post_message(
        shared_.element,
        gst_message_new_element(
            GST_OBJECT(shared_.element),
            gst_structure_new("clinfer-target", "text", G_TYPE_STRING, text.c_str(), "streams",
                              G_TYPE_UINT, news.variant.streams, "precision", G_TYPE_STRING,
                              name_of(news.variant.precision), "trial", G_TYPE_BOOLEAN,
                              news.on_trial, nullptr)));
  }
}

// Returns whether something was not told before.
bool ElementTargets::is_first(bool& told) {
  const std::lock_guard lock(mutex_);
  return !std::exchange(told, true);
}

// Tells once what cannot be reached, and why.
void ElementTargets::tell(const TargetGroup::Report& report, const Session& session,
                          const Settings& settings) {
  using Target = TargetController::Target;
  const std::string device = session.shared->compiled->device().name;
  if (settings.target_power > 0 && !report.watts) {
    if (is_first(told_power_))
      GST_ELEMENT_WARNING(
          shared_.element, RESOURCE, SETTINGS,
          ("target-power=%g has no effect: %s", settings.target_power, report.meter.c_str()),
          (nullptr));
  } else if (report.decision.missed == Target::power && *report.watts > settings.target_power &&
             settings.target_power > 0 && is_first(told_power_)) {
    GST_ELEMENT_WARNING(shared_.element, RESOURCE, SETTINGS,
                        ("target-power=%g is not reached: %s takes %s W although each stream is "
                         "limited to about one "
                         "inference per second (%s)",
                         settings.target_power, device.c_str(), text_of(*report.watts).c_str(),
                         report.meter.c_str()),
                        ("the device takes this idle, or for other work"));
  }
  if (report.decision.missed != Target::latency || settings.target_latency == 0 ||
      report.latency.value_or(0) <= settings.target_latency || !is_first(told_latency_))
    return;
  const Statistics::Snapshot snapshot = shared_.statistics.snapshot();
  const auto stage = [&](Statistics::Stage of) { return text_of(snapshot.milliseconds[of].p95); };
  std::string why = "they wait " + stage(Statistics::kQueue) +
                    " ms for the device, its inference takes " + stage(Statistics::kInfer) +
                    " ms, the results " + stage(Statistics::kDecode) + " ms";
  if (report.batch_ms > settings.target_latency)
    why = "one inference of " + session.network.name + " on " + device + " takes " +
          text_of(report.batch_ms) + " ms";
  GST_ELEMENT_WARNING(
      shared_.element, RESOURCE, SETTINGS,
      ("target-latency=%u is not reached: 95 %% of the frames take up to %s ms: %s",
       settings.target_latency, text_of(*report.latency).c_str(), why.c_str()),
      ("live streams on the device: %zu; fewer of them, a smaller or quantised network or another "
       "device would help",
       report.streams));
}

void ElementTargets::add_to(GstStructure* stats) const {
  std::optional<TargetGroup::Report> report;
  {
    const std::lock_guard lock(mutex_);
    if (group_ != nullptr) report = group_->report(shared_.target);
  }
  if (!report) return;
  const TargetStream::Orders orders = shared_.target->orders();
  const auto ms = [](const std::optional<TargetStream::Clock::duration>& wait) {
    return std::chrono::duration<double, std::milli>(wait.value_or(TargetStream::Clock::duration{}))
        .count();
  };
  gst_structure_set(
      stats, "target-latency-p95-ms", G_TYPE_DOUBLE, report->latency.value_or(0), "target-interval",
      G_TYPE_DOUBLE, report->frames.value_or(0), "target-limit", G_TYPE_DOUBLE,
      orders.limit.value_or(0), "target-batch-size", G_TYPE_UINT, static_cast<guint>(report->batch),
      "target-batch-wait-ms", G_TYPE_DOUBLE, ms(orders.batch_wait), "target-longest-wait-ms",
      G_TYPE_DOUBLE, ms(orders.longest_wait), "target-changes", G_TYPE_UINT,
      report->decision.changes, "target-reached", G_TYPE_BOOLEAN,
      !report->decision.missed.has_value(), "target-reason", G_TYPE_STRING, report->decision.reason,
      "power-meter", G_TYPE_STRING, report->meter.c_str(), nullptr);
  if (report->model)
    gst_structure_set(stats, "target-streams", G_TYPE_UINT, report->model->variant.streams,
                      "target-precision", G_TYPE_STRING, name_of(report->model->variant.precision),
                      "target-tried", G_TYPE_STRING, report->model->tried.c_str(), nullptr);
  if (report->watts)
    gst_structure_set(stats, "power-watts", G_TYPE_DOUBLE, *report->watts, nullptr);
  if (report->joules_per_frame)
    gst_structure_set(stats, "joules-per-frame", G_TYPE_DOUBLE, *report->joules_per_frame, nullptr);
}

}  // namespace clinfer
