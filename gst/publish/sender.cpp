// Runs the thread that communicates with the broker.
#include "gst/publish/sender.h"

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

constexpr size_t kBatch = 1000;  // in messages
constexpr auto kIdle = 200ms, kShortestPause = 100ms, kLongestPause = 5000ms, kLastSending = 1000ms;

}  // namespace

Sender::Sender(std::unique_ptr<Broker> broker, std::unique_ptr<MessageQueue> queue, Notice notice)
    : broker_(std::move(broker)),
      queue_(std::move(queue)),
      notice_(std::move(notice)),
      thread_([this] { run(); }) {}

Sender::~Sender() {
  queue_->resume();
  if (connected_ && !queue_->is_kept()) queue_->wait_until_empty(kLastSending);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  queue_->interrupt();
  wake_.notify_all();
  thread_.join();
}

bool Sender::publish(std::string line) {
  const bool taken = queue_->push(std::move(line));
  if (const std::string problem = queue_->take_problem(); !problem.empty()) notice_(problem);
  return taken;
}

// Waits. Returns false if the sender stops.
bool Sender::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, time, [this] { return stopping_.load(); });
  return !stopping_;
}

void Sender::round() {
  if (!connected_) {
    broker_->connect();
    connected_ = true;
  }
  const std::vector<Message> messages = queue_->take(kBatch, kIdle);
  if (messages.empty()) {
    pause(5ms);  // An interrupted queue returns at once, so wait a little.
    return;
  }
  // Confirms many messages at once, because each confirmation writes the journal's position.
  uint64_t confirmed = 0;
  size_t count = 0;
  const auto confirm = [&] {
    if (count == 0) return;
    // Counts before confirm(), which wakes a thread that waits for an empty queue and reads sent_.
    sent_ += std::exchange(count, 0);
    queue_->confirm(confirmed);
  };
  constexpr size_t kTogether = 100;
  try {
    broker_->deliver(
        messages,
        [&](uint64_t number) {
          confirmed = number;
          if (++count == kTogether) confirm();
        },
        stopping_);
  } catch (...) {
    confirm();
    throw;
  }
  confirm();
}

void Sender::run() {
  auto wait = kShortestPause;
  bool told = false;
  while (!stopping_) {
    const uint64_t sent = sent_;
    try {
      const bool was_connected = connected_;
      round();
      if (!was_connected && told) notice_("the broker is there again");
      told = false;
      wait = kShortestPause;
    } catch (const std::exception& error) {
      // A broker that accepted messages before the failure can be reached, so the wait is not
      // lengthened.
      if (sent_ != sent) {
        told = false;
        wait = kShortestPause;
      }
      if (connected_.exchange(false)) ++losses_;
      if (!std::exchange(told, true) && !stopping_)
        notice_(explain(error) + "; messages are queued until it answers");
      if (!pause(wait)) break;
      wait = std::min(wait * 2, kLongestPause);
    }
  }
}

bool Sender::finish() {
  constexpr auto kPatience = 2 * kLongestPause;
  uint64_t before = 0;
  do {
    before = sent_;
    if (queue_->wait_until_empty(kPatience)) return true;
  } while (sent_ != before && !queue_->is_interrupted());
  return false;
}

SenderStats Sender::stats() const {
  return {sent_.load(), queue_->dropped(), queue_->size(), losses_.load(), connected_.load()};
}

}  // namespace clinfer
