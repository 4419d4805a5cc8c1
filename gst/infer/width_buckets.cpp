// Choosing, compiling and keeping the widths of a text recogniser.
#include "gst/infer/width_buckets.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "gst/base/guard.h"
#include "gst/base/log.h"
#include "gst/infer/widths.h"
#include "kernels/base/threads.h"

#define GST_CAT_DEFAULT clinfer_loader_debug

namespace clinfer {
namespace {

// reshape=?xH or nothing, with the width filled in.
std::string reshape_for(const Session& base, int width) {
  const std::string size = std::to_string(width) + "x" + std::to_string(base.network.height);
  std::string reshape = base.settings.reshape;
  const size_t open = reshape.find("?x");
  if (open == std::string::npos) return reshape.empty() ? size : reshape + ";" + size;
  const size_t end = std::min(reshape.find(';', open), reshape.size());
  return reshape.replace(open, end - open, size);
}

}  // namespace

std::shared_ptr<const Session> WidthBuckets::session_for(const std::shared_ptr<const Session>& base,
                                                         int width, int height, bool waits) {
  const Network& network = base->network;
  if (!network.model->inputs()[network.image_input].open_width) return base;
  if (base_ != nullptr && base_->network.model != network.model) clear();
  {
    const std::lock_guard lock(mutex_);
    base_ = base;
  }
  const std::vector<int> widths = bucket_widths(network.width);
  const int wanted = bucket_for(widths, network.height, width, height);
  if (wanted == network.width) return base;
  want(base, wanted);
  std::unique_lock lock(mutex_);
  const auto is_there = [&](int wide) {
    const auto found = buckets_.find(wide);
    return found != buckets_.end() && found->second.session != nullptr;
  };
  if (waits)
    changed_.wait(lock, [&] {
      return interrupted_ || is_there(wanted) || buckets_[wanted].state != Bucket::State::wanted;
    });
  if (is_there(wanted)) return buckets_[wanted].session;
  // The narrowest that holds the line, else the widest that is there.
  std::shared_ptr<const Session> best = base;
  for (const int wide : widths) {
    const bool is_base = wide == network.width;
    if (!is_base && !is_there(wide)) continue;
    best = is_base ? base : buckets_[wide].session;
    if (wide >= wanted) break;
  }
  return best;
}

// Has a width compiled, unless it is ready, on its way or was refused.
void WidthBuckets::want(const std::shared_ptr<const Session>& base, int width) {
  {
    const std::lock_guard lock(mutex_);
    if (!buckets_.try_emplace(width).second) return;
    GST_INFO_OBJECT(element_, "%s is compiled for lines of width %d", base->network.name.c_str(),
                    width);
    if (std::exchange(busy_, true)) return;
  }
  if (thread_.joinable()) thread_.join();  // it has ended its loop
  cancel_ = false;
  try {
    thread_ = start_thread([this] { loop(); });
  } catch (...) {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    buckets_.erase(width);
    throw;
  }
}

void WidthBuckets::loop() {
  pthread_setname_np(pthread_self(), "clinfer:widths");
  const auto is_wanted = [](const auto& entry) {
    return entry.second.state == Bucket::State::wanted;
  };
  for (;;) {
    int width = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto next = std::find_if(buckets_.begin(), buckets_.end(), is_wanted);
      if (cancel_ || next == buckets_.end()) {
        std::erase_if(buckets_, is_wanted);
        busy_ = false;
        return;
      }
      width = next->first;
    }
    const bool done = guard(
        [&](const Failure& failure) {
          if (failure.code == ErrorCode::cancelled && cancel_) return;
          GST_ELEMENT_WARNING(element_, RESOURCE, SETTINGS,
                              ("the network cannot be %d wide, so that longer or shorter lines of "
                               "text go to another width: %s",
                               width, failure.what),
                              ("set reshape=WIDTHxHEIGHT for one width"));
        },
        false, [&] { return compile(width), true; });
    {
      const std::lock_guard lock(mutex_);
      if (done)
        buckets_[width].state = Bucket::State::ready;
      else if (!cancel_)
        buckets_[width] = {Bucket::State::failed, nullptr};
    }
    changed_.notify_all();
  }
}

void WidthBuckets::compile(int width) {
  std::shared_ptr<const Session> base;
  {
    const std::lock_guard lock(mutex_);
    base = base_;
  }
  Settings settings = base->settings;
  settings.reshape = reshape_for(*base, width);
  if (!settings.model_instance_id.empty())
    settings.model_instance_id += " " + std::to_string(width) + " wide";
  Network network = describe_network(settings);
  network.trust = base->network.trust;
  const auto take = [&](std::shared_ptr<SharedModel> shared) {
    auto session = std::make_shared<const Session>(Session{network, std::move(shared), settings});
    {
      const std::lock_guard lock(mutex_);
      buckets_[width].session = std::move(session);
    }
    changed_.notify_all();
  };
  take(find_or_compile(
      network, settings, base->shared->display, false,
      [this](const std::string&, size_t, size_t) { return !cancel_.load(); }, {},
      [&](std::shared_ptr<SharedModel> shared, const std::string&) {
        if (shared != nullptr && !cancel_) take(std::move(shared));
      }));
}

std::vector<std::shared_ptr<const Session>> WidthBuckets::sessions() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Session>> all;
  for (const auto& [width, bucket] : buckets_)
    if (bucket.session != nullptr) all.push_back(bucket.session);
  return all;
}

void WidthBuckets::flush_partial_batches(const ModelBatcher::Stream& stream) const {
  for (const auto& session : sessions()) session->shared->batcher->flush_partial_batch(stream);
}

void WidthBuckets::interrupt(ModelBatcher::Stream& stream) const {
  for (const auto& session : sessions()) session->shared->batcher->interrupt(stream);
}

void WidthBuckets::set_interrupted(bool interrupted) {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = interrupted;
  }
  changed_.notify_all();
}

std::string WidthBuckets::ready_widths() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [width, bucket] : buckets_)
    if (bucket.state == Bucket::State::ready)
      text += (text.empty() ? "" : ",") + std::to_string(width);
  return text;
}

void WidthBuckets::stop() {
  cancel_ = true;
  if (thread_.joinable()) thread_.join();
}

void WidthBuckets::clear() {
  stop();
  std::map<int, Bucket> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  dropped.swap(buckets_);
  base_.reset();
}

}  // namespace clinfer
