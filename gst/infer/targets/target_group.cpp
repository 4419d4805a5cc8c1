// Measures streams and models of a device, and passes on what the controllers decide.
#include "gst/infer/targets/target_group.h"

#include <algorithm>

#include "kernels/base/nearest_rank.h"

namespace clinfer {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

double milliseconds(TargetStream::Clock::duration duration) {
  return Milliseconds(duration).count();
}

TargetStream::Clock::duration duration_of(double milliseconds) {
  return std::chrono::duration_cast<TargetStream::Clock::duration>(Milliseconds(milliseconds));
}

std::optional<double> percentile_95(std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(nearest_rank(0.95, values.size()));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

std::shared_ptr<TargetGroup> TargetGroup::of(const std::vector<DeviceInfo>& devices) {
  static std::mutex mutex;
  static auto& groups = *new std::map<std::string, std::weak_ptr<TargetGroup>>;
  const std::lock_guard lock(mutex);
  std::string key;
  for (const DeviceInfo& device : devices) key += device.id + " ";
  std::weak_ptr<TargetGroup>& known = groups[key];
  std::shared_ptr<TargetGroup> group = known.lock();
  if (group == nullptr) known = group = std::make_shared<TargetGroup>(devices);
  return group;
}

void TargetGroup::join(const std::shared_ptr<TargetStream>& stream,
                       const std::shared_ptr<SharedModel>& model, const Wishes& wishes) {
  const std::lock_guard lock(mutex_);
  const auto [member, is_new] = members_.try_emplace(stream);
  if (is_new) stream->take();  // counts of before
  member->second.model = model;
  member->second.wishes = wishes;
  models_.try_emplace(model, *model->batcher);
  forget_unused_models();
}

std::shared_ptr<SharedModel> TargetGroup::leave(const std::shared_ptr<TargetStream>& stream) {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(stream);
  if (member == members_.end()) return nullptr;
  std::shared_ptr<SharedModel> model = member->second.model.lock();
  if (model != nullptr) model = trials_.settled(model);
  members_.erase(member);
  stream->give({});
  forget_unused_models();
  return model;
}

void TargetGroup::forget_unused_models() {
  std::erase_if(models_, [&](const auto& known) {
    const std::shared_ptr<SharedModel> model = known.first.lock();
    if (model == nullptr) return true;
    const bool is_used = std::any_of(members_.begin(), members_.end(), [&](const auto& member) {
      return member.second.model.lock() == model;
    });
    if (!is_used) model->batcher->limit_batches(model->batcher->batch_size());
    return !is_used;
  });
}

void TargetGroup::step(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!begun_) {
    begun_ = now;
    power_ = PowerMeter::find(devices_);
  }
  if (now - *begun_ < kShortestPeriod) return;
  TargetController::Period period;
  period.seconds = std::chrono::duration<double>(now - *begun_).count();
  begun_ = now;
  period.starts = starting_.next(members_.size());
  measure_models(period.seconds, period);
  measure_streams(period);
  measure_power(period);
  give_orders(limit_for(period));
}

// Returns the limit for the next period. There is none while variants of a model are compared,
// because then the device has to show how much it can infer.
std::optional<double> TargetGroup::limit_for(const TargetController::Period& period) {
  std::vector<ModelTrials::User> users;
  for (const auto& [stream, member] : members_)
    if (auto model = member.model.lock())
      users.push_back({std::move(model), member.wishes.frees_streams,
                       member.in_time / period.seconds, member.wanted / period.seconds});
  // A device that takes too much power has to infer fewer frames.
  if (period.power && *period.power > 1)
    for (ModelTrials::User& user : users) user.inferred /= *period.power;
  const bool was_measuring = trials_.is_measuring();
  const ModelTrials::Result result = trials_.step(users, controller_.decision().limit.has_value());
  if (trials_.is_measuring()) return std::nullopt;
  if (was_measuring) {
    controller_.forget_periods();
    if (result == ModelTrials::Result::taken)
      controller_.lift("a faster variant of a model was taken");
    else if (result == ModelTrials::Result::needless)
      controller_.lift("the device infers all frames in time");
  }
  return controller_.next(period).limit;
}

void TargetGroup::measure_models(double seconds, TargetController::Period& period) {
  for (auto& [known, work] : models_) {
    const std::shared_ptr<SharedModel> model = known.lock();
    if (model == nullptr) continue;
    const ModelBatcher::Work done = model->batcher->take_work();
    std::vector<BatchController::Batches> by_images(done.by_images.size());
    double images = 0, batches = 0;
    for (size_t size = 1; size < by_images.size(); ++size) {
      const auto& [count, busy] = done.by_images[size];
      by_images[size] = {static_cast<double>(count), milliseconds(busy)};
      images += static_cast<double>(size * count);
      batches += static_cast<double>(count);
    }
    const double mean = batches > 0 ? milliseconds(done.busy) / batches : 0;
    if (work.milliseconds == 0) work.milliseconds = mean;
    if (period.starts) continue;
    std::optional<double> longest;
    for (const auto& [stream, member] : members_)
      if (member.wishes.latency > 0 && member.model.lock() == model) {
        const double time = batch_time_for(member.wishes.latency);
        longest = std::min(longest.value_or(time), time);
      }
    const size_t limit = work.batches.next(by_images, longest);
    model->batcher->limit_batches(limit);
    if (batches == 0) continue;
    work.milliseconds = (work.milliseconds + mean) / 2;
    const double available = seconds * 1000 * static_cast<double>(model->batcher->device_streams());
    const double busy = milliseconds(done.busy) / available;
    const double full = images / static_cast<double>(limit) * work.batches.milliseconds(limit);
    period.busy += busy;
    period.load += std::min(busy, full / available);
  }
  period.busy = std::min(period.busy, 1.0);
  period.load = std::min(period.load, 1.0);
}

void TargetGroup::measure_streams(TargetController::Period& period) {
  std::vector<double> shares;  // latencies over their targets
  for (auto& [stream, member] : members_) {
    TargetStream::Counts counts = stream->take();
    const auto wanted = static_cast<double>(counts.wanted);
    const auto inferred = static_cast<double>(counts.latencies.size());
    period.streams.push_back({static_cast<double>(member.wishes.share), wanted, inferred});
    if (member.wishes.latency > 0)
      for (const double latency : counts.latencies)
        shares.push_back(latency / member.wishes.latency);
    const double target = member.wishes.latency;
    member.wanted = wanted;
    member.in_time = static_cast<double>(
        std::count_if(counts.latencies.begin(), counts.latencies.end(),
                      [&](double latency) { return target == 0 || latency <= target; }));
    member.latency = percentile_95(counts.latencies);
    if (inferred > 0) member.frames = std::max(wanted / inferred, 1.0);
  }
  period.latency = percentile_95(shares);
}

void TargetGroup::measure_power(TargetController::Period& period) {
  // The weight that earlier measurements keep in each period.
  constexpr double kKept = 0.8;
  watts_.reset();
  if (power_->meter == nullptr) return;
  const std::optional<double> joules = power_->meter->joules();
  if (!joules) return;
  watts_ = *joules / period.seconds;
  joules_ = joules_ * kKept + *joules;
  frames_ *= kKept;
  for (const TargetController::Stream& stream : period.streams) frames_ += stream.inferred;
  std::optional<double> least;
  for (const auto& [stream, member] : members_)
    if (member.wishes.power > 0)
      least = std::min(least.value_or(member.wishes.power), member.wishes.power);
  if (least) period.power = *watts_ / *least;
}

void TargetGroup::give_orders(std::optional<double> limit) {
  for (const auto& [stream, member] : members_) {
    TargetStream::Orders orders;
    if (limit) orders.limit = *limit * member.wishes.share;
    const auto model = models_.find(member.model);
    const double batch = model != models_.end() ? model->second.milliseconds : 0;
    if (const double latency = member.wishes.latency; latency > 0 && batch > 0) {
      orders.longest_wait = duration_of(wait_time_for(latency, batch));
      // While the device is busy frames gather in any case. Full batches take less energy.
      if (member.wishes.sets_wait)
        orders.batch_wait =
            duration_of(member.wishes.power > 0 ? wait_time_for(latency, 2 * batch) : 0);
    }
    stream->give(orders);
  }
}

std::optional<TargetGroup::Report> TargetGroup::report(
    const std::shared_ptr<TargetStream>& stream) const {
  const std::lock_guard lock(mutex_);
  const auto member = members_.find(stream);
  if (member == members_.end()) return std::nullopt;
  Report report;
  report.decision = controller_.decision();
  if (const auto model = models_.find(member->second.model); model != models_.end()) {
    report.batch = model->second.batches.limit();
    report.batch_ms = model->second.milliseconds;
  }
  if (const auto used = member->second.model.lock()) report.model = trials_.report(*used);
  report.latency = member->second.latency;
  report.frames = member->second.frames;
  report.streams = members_.size();
  if (power_) report.meter = power_->text;
  report.watts = watts_;
  if (frames_ > 0 && joules_ > 0) report.joules_per_frame = joules_ / frames_;
  return report;
}

}  // namespace clinfer
