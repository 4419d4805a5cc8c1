// Sends lines to a broker from a thread of its own, so that a publisher does not block while the
// queue has room. If the broker cannot be reached, the thread connects again at growing intervals.
// Messages that the broker did not confirm are sent again in the same order, so that each arrives
// at least once.
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
  uint64_t dropped = 0;  // for lack of room
  uint64_t queued = 0;   // at present
  uint64_t losses = 0;   // number of times the connection was lost
  bool connected = false;
};

class Sender {
 public:
  // Is called by the sender's thread when the connection to the broker is lost or made again, and
  // by the thread of publish() when the journal cannot be written.
  using Notice = std::function<void(const std::string&)>;

  Sender(std::unique_ptr<Broker> broker, std::unique_ptr<MessageQueue> queue, Notice notice);
  // Waits briefly for the queued messages if the broker is connected. Messages left after that are
  // lost unless the queue has a journal.
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Queues a line. Blocks while the queue is full; returns false if interrupted then.
  bool publish(std::string line);
  // Waits until the broker has all messages, as long as it takes some now and then. Returns false
  // if it does not, or if interrupted.
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
  std::thread thread_;  // declared last, because it uses the other members
};

}  // namespace clinfer
