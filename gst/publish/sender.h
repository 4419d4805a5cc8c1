// Sends lines to a broker from a thread of its own, so that a publisher does not block while the
// queue has room. If the broker cannot be reached, the thread connects again at growing intervals.
// Messages that the broker did not confirm are sent again in the same order: each arrives at least once.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gst/publish/broker.h"
#include "gst/publish/message_queue.h"

namespace clinfer {

struct SenderStats {
  uint64_t sent = 0;     // confirmed by the broker
  uint64_t dropped = 0;  // for want of room
  uint64_t queued = 0;   // now
  uint64_t losses = 0;   // of the connection
  bool connected = false;
};

class Sender {
 public:
  // The sender's thread calls this when the connection to the broker is lost or made again, and
  // that of publish() when the journal cannot be written.
  using Notice = std::function<void(const std::string&)>;

  Sender(std::unique_ptr<Broker> broker, std::unique_ptr<MessageQueue> queue, Notice notice);
  // Waits a moment for the queued messages if the broker is connected. The messages left after that
  // are lost unless the queue has a journal.
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // False: interrupted while the queue was full.
  bool publish(std::string line);
  // Waits until the broker has all, as long as it takes messages now and then; false: it does not,
  // or interrupted.
  bool finish();
  void interrupt() { queue_->interrupt(); }
  void resume() { queue_->resume(); }

  SenderStats stats() const;
  bool is_kept() const { return queue_->is_kept(); }

 private:
  void run();
  void round();
  bool pause(std::chrono::milliseconds time);

  std::unique_ptr<Broker> broker_;
  std::unique_ptr<MessageQueue> queue_;
  Notice notice_;
  std::atomic<bool> stopping_ = false, connected_ = false;
  std::atomic<uint64_t> sent_ = 0, losses_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace clinfer
