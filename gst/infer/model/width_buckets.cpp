// Chooses, compiles and keeps the widths of a text recogniser.
#include "gst/infer/model/width_buckets.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "gst/base/guard.h"
#include "gst/base/log.h"
#include "gst/infer/model/widths.h"

#define GST_CAT_DEFAULT clinfer_loader_debug

namespace clinfer {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(50);

// Returns the property reshape with the open width (?xH) filled in, or with the size added.
std::string reshape_for(const Session& base, int width) {
  const std::string size = std::to_string(width) + "x" + std::to_string(base.network.height);
  std::string reshape = base.settings.reshape;
  const size_t open = reshape.find("?x");
  if (open == std::string::npos) return reshape.empty() ? size : reshape + ";" + size;
  const size_t end = std::min(reshape.find(';', open), reshape.size());
  return reshape.replace(open, end - open, size);
}

// Offers the first tier of a width, and stops compiling if nobody wants it any more.
class WidthWatch final : public LoadWatch {
 public:
  using Building = Task<std::shared_ptr<const Session>>;
  WidthWatch(Building& task, const Network& network, const Settings& settings)
      : task_(task), network_(network), settings_(settings) {}

  bool goes_on(const CompileProgress&) override { return !task_.is_cancelled(); }
  void take_interim(std::shared_ptr<SharedModel> shared) override {
    task_.offer(std::make_shared<const Session>(Session{network_, std::move(shared), settings_}));
  }

 private:
  Building& task_;
  const Network& network_;
  const Settings& settings_;
};

}  // namespace

std::shared_ptr<const Session> WidthBuckets::session_for(const std::shared_ptr<const Session>& base,
                                                         int width, int height, bool waits) {
  const Network& network = base->network;
  if (!network.model->inputs()[network.image_input].open_width) return base;
  if (std::exchange(model_, network.model) != network.model) clear();
  const std::vector<int> widths = bucket_widths(network.width);
  const int wanted = bucket_for(widths, network.height, width, height);
  if (wanted == network.width) return base;
  const Building& building = bucket(base, wanted);
  if (waits) building.wait_for_result(interruption_.token());
  if (auto session = building.newest()) return session;
  // Takes the narrowest ready width that holds the line, or else the widest one.
  std::shared_ptr<const Session> best = base;
  for (const int wide : widths) {
    std::shared_ptr<const Session> session = base;
    if (wide != network.width) {
      const std::lock_guard lock(mutex_);
      const auto found = buckets_.find(wide);
      session = found != buckets_.end() ? found->second->newest() : nullptr;
    }
    if (session == nullptr) continue;
    best = std::move(session);
    if (wide >= wanted) break;
  }
  return best;
}

// Returns a width that is ready, being compiled or refused; begins to compile a new one.
WidthBuckets::Building& WidthBuckets::bucket(const std::shared_ptr<const Session>& base,
                                             int width) {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(width);
  if (found != buckets_.end()) return *found->second;
  GST_INFO_OBJECT(element_, "%s is compiled for lines of width %d", base->network.name.c_str(),
                  width);
  auto building = std::make_unique<Building>(
      [this, base, width](Building& task) { return build(*base, width, task); });
  return *(buckets_[width] = std::move(building));
}

std::shared_ptr<const Session> WidthBuckets::build(const Session& base, int width, Building& task) {
  pthread_setname_np(pthread_self(), "clinfer:widths");
  std::unique_lock turn(building_, std::defer_lock);
  while (!turn.try_lock_for(kAskAgain))
    if (task.is_cancelled()) return nullptr;
  return guard(
      [&](const Failure& failure) {
        if (failure.code == ErrorCode::cancelled && task.is_cancelled()) return;
        GST_ELEMENT_WARNING(element_, RESOURCE, SETTINGS,
                            ("the network cannot be %d wide, so that longer or shorter lines of "
                             "text go to another width: %s",
                             width, failure.what),
                            ("set reshape=WIDTHxHEIGHT for one width"));
      },
      std::shared_ptr<const Session>(), [&] { return compile(base, width, task); });
}

std::shared_ptr<const Session> WidthBuckets::compile(const Session& base, int width,
                                                     Building& task) const {
  Settings settings = base.settings;
  settings.reshape = reshape_for(base, width);
  if (!settings.model_instance_id.empty())
    settings.model_instance_id += " " + std::to_string(width) + " wide";
  Network network = describe_network(settings);
  network.trust = base.network.trust;
  WidthWatch watch(task, network, settings);
  auto shared = find_or_compile(network, settings, base.shared->display, false, watch);
  return std::make_shared<const Session>(Session{network, std::move(shared), settings});
}

std::vector<std::shared_ptr<const Session>> WidthBuckets::sessions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Session>> all;
  for (const auto& [width, building] : buckets_)
    if (auto session = building->newest()) all.push_back(std::move(session));
  return all;
}

void WidthBuckets::flush_partial_batches(const ModelBatcher::Stream& stream) const {
  for (const auto& session : sessions()) session->shared->batcher->flush_partial_batch(stream);
}

void WidthBuckets::interrupt(ModelBatcher::Stream& stream) const {
  for (const auto& session : sessions()) session->shared->batcher->interrupt(stream);
}

std::string WidthBuckets::ready_widths() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [width, building] : buckets_)
    if (building->is_over() && building->newest() != nullptr)
      text += (text.empty() ? "" : ",") + std::to_string(width);
  return text;
}

void WidthBuckets::stop() {
  std::vector<std::unique_ptr<Building>> stopped;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  for (auto at = buckets_.begin(); at != buckets_.end();) {
    Building& building = *at->second;
    const auto here = at++;
    if (building.is_over()) continue;
    building.cancel();
    stopped.push_back(std::move(here->second));
    buckets_.erase(here);
  }
}

void WidthBuckets::clear() {
  stop();
  std::map<int, std::unique_ptr<Building>> dropped;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  dropped.swap(buckets_);
}

}  // namespace clinfer
