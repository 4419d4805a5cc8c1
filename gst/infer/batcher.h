// Forms batches out of the frames of one or several streams, and lends them the infer requests of
// one compiled model. Plain C++ threads, no GObject, so that ThreadSanitizer can judge it.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace clinfer {

// Threads of its own, each for some of the requests, wait for what runs on them, take the results
// and launch what is due next: requests of different threads do not wait for each other, whatever
// order the frames are in. All else is done by who needs it: a submitting thread launches the batch
// that it makes full, a waiting thread the one that its frame is in when its time is up, and where
// it waits already it takes the results itself, which saves it being woken for them. So a stream
// that stands still holds nobody up. The lock is never held over a call of the request.
//
// Request: start(images), of the first so many; wait(); used by one thread at a time.
template <typename Request, typename Result>
class Batcher {
  struct Batch;
  struct Entry;

 public:
  using Clock = std::chrono::steady_clock;
  // Gives a frame to image `image` of a request. What it throws is the error of this frame alone.
  using Fill = std::function<void(Request&, size_t image)>;
  // The results of image `image` of a finished request; must not refer to it.
  using Read = std::function<Result(Request&, size_t image)>;

  // A stream that submits frames. Interrupted, it waits neither for room nor for other frames.
  struct Stream {
    std::atomic<bool> interrupted{false};
  };

  // A frame's place in a batch. Given up, it leaves a batch that has not been launched, and waits
  // for one that has: the frame's memory may go afterwards. Must not outlive the batcher.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(batcher_, other.batcher_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Ticket() {
      if (entry_ != nullptr) batcher_->forget(*entry_);
    }
    explicit operator bool() const { return entry_ != nullptr; }
    // Sleeps until the results are there; gives them, or throws what the inference failed with.
    // Nothing when the stream was interrupted before the frame was launched. Once.
    std::optional<Result> wait() {
      const std::shared_ptr<Entry> entry = std::exchange(entry_, nullptr);
      return batcher_->wait(*entry);
    }

   private:
    friend Batcher;
    Ticket(Batcher* batcher, std::shared_ptr<Entry> entry)
        : batcher_(batcher), entry_(std::move(entry)) {}
    Batcher* batcher_ = nullptr;
    std::shared_ptr<Entry> entry_;
  };

  struct Counts {
    uint64_t batches = 0, frames = 0;  // launched
  };

  // Request i is bound to stream i mod `device_streams` of the device; an idle one of the least
  // loaded is taken. Where filling a request is work, as a copy to a device is, each has a thread
  // of its own that fills it, so that they are filled side by side; else there is one for each
  // stream of the device, and whoever launches a batch fills it, which takes fewer changes of
  // threads.
  Batcher(std::vector<std::unique_ptr<Request>> requests, size_t batch_size,
          unsigned device_streams, bool filling_is_work, Read read)
      : requests_(std::move(requests)),
        batch_size_(std::max<size_t>(batch_size, 1)),
        read_(std::move(read)),
        idle_(requests_.size(), true),
        loads_(std::max(device_streams, 1u), 0),
        own_threads_fill_(filling_is_work),
        lanes_(own_threads_fill_ ? requests_.size() : loads_.size()) {
    for (Lane& lane : lanes_)
      threads_.emplace_back([this, &lane](const std::stop_token& stop) { attend(lane, stop); });
  }

  size_t requests() const { return requests_.size(); }
  size_t device_streams() const { return loads_.size(); }
  size_t batch_size() const { return batch_size_; }
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  // How long a frame may wait for others: for `timeout`, or until no frame has come for `quiet`.
  struct BatchWait {
    std::optional<Clock::duration> timeout;
    Clock::duration quiet{};
  };

  // Puts a frame into the batch that is being formed; waits while as many full ones as the device
  // has streams wait already. An empty ticket when the stream was interrupted.
  Ticket submit(const Stream& stream, Fill fill, const BatchWait& batch_wait) {
    std::unique_lock lock(mutex_);
    while (!stream.interrupted && full(loads_.size())) {
      if (idle_request())
        launch_due(lock);
      else
        room_.wait(lock);
    }
    if (stream.interrupted) return {};
    return add(lock, stream, std::move(fill), batch_wait);
  }

  // The same without waiting: an empty ticket when a full batch waits already.
  Ticket try_submit(const Stream& stream, Fill fill, const BatchWait& batch_wait) {
    std::unique_lock lock(mutex_);
    while (!stream.interrupted && full(1)) {
      if (!idle_request()) return {};
      launch_due(lock);
    }
    if (stream.interrupted) return {};
    return add(lock, stream, std::move(fill), batch_wait);
  }

  // The frames of `stream` wait for no others any more.
  void flush_partial_batch(const Stream& stream) {
    std::unique_lock lock(mutex_);
    if (formed_.empty()) return;
    const auto& entries = formed_.back()->entries;
    if (std::none_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry->stream == &stream; }))
      return;
    formed_.back()->timeout_at = Clock::time_point::min();
    launch_due(lock);
  }

  // Threads of `stream` stop waiting for room and for other frames until it is resumed.
  void interrupt(Stream& stream) {
    {
      const std::lock_guard lock(mutex_);
      stream.interrupted = true;
      for (const auto& batch : formed_) batch->changed.notify_all();
    }
    room_.notify_all();
  }

 private:
  enum class State { forming, launched, offered, done };  // offered: to those who wait for it

  struct Batch {
    State state = State::forming;
    std::condition_variable changed;  // for those who wait for its frames
    size_t waiting = 0;               // how many do
    std::vector<std::shared_ptr<Entry>> entries;
    Clock::time_point timeout_at = Clock::time_point::max();  // the first entry's time-out
    Clock::time_point quiet_at = Clock::time_point::max();
    size_t request = 0;
  };
  struct Entry {
    const Stream* stream = nullptr;
    Fill fill;
    std::shared_ptr<Batch> batch;
    std::optional<Result> result;
    std::exception_ptr error;
  };
  // What one of our threads attends to, in the order in which it was launched.
  struct Lane {
    std::deque<std::shared_ptr<Batch>> batches;
    std::condition_variable_any changed;
  };

  // ---- all of these with mutex_ held; those that take the lock give it up in between

  bool is_full(const Batch& batch) const { return batch.entries.size() >= batch_size_; }
  // Whether `most` batches that are full wait.
  bool full(size_t most) const { return formed_.size() >= most && is_full(*formed_.back()); }
  bool due() const {
    if (formed_.empty()) return false;
    const Batch& first = *formed_.front();
    // Others behind it: it was full, and no more will come for who has left.
    return is_full(first) || formed_.size() > 1 ||
           Clock::now() >= std::min(first.timeout_at, first.quiet_at);
  }
  std::optional<size_t> idle_request() {
    std::optional<size_t> best;
    for (size_t i = 0; i < requests_.size(); ++i)
      if (idle_[i] && (!best || load_of(i) < load_of(*best))) best = i;
    return best;
  }

  Ticket add(std::unique_lock<std::mutex>& lock, const Stream& stream, Fill fill,
             const BatchWait& batch_wait) {
    if (formed_.empty() || is_full(*formed_.back())) formed_.push_back(std::make_shared<Batch>());
    const std::shared_ptr<Batch>& batch = formed_.back();
    auto entry = std::make_shared<Entry>();
    entry->stream = &stream;
    entry->fill = std::move(fill);
    entry->batch = batch;
    batch->entries.push_back(entry);
    const Clock::time_point now = Clock::now();
    if (batch_wait.timeout)
      batch->timeout_at = std::min(batch->timeout_at, now + *batch_wait.timeout);
    else
      batch->quiet_at = now + batch_wait.quiet;
    launch_due(lock);
    return Ticket(this, std::move(entry));
  }

  // Also for whoever gives a request back: what is due never waits beside an idle one.
  void launch_due(std::unique_lock<std::mutex>& lock) {
    while (due()) {
      const std::optional<size_t> request = idle_request();
      if (!request || launch(lock, *request)) return;
    }
  }

  // False when it failed: the request is idle again.
  bool launch(std::unique_lock<std::mutex>& lock, size_t index) {
    const std::shared_ptr<Batch> batch = formed_.front();
    formed_.pop_front();
    wake_first();
    batch->state = State::launched;
    batch->request = index;
    idle_[index] = false;
    ++load_of(index);
    ++counts_.batches;
    counts_.frames += batch->entries.size();
    wake(lock, room_);
    if (!own_threads_fill_ && !start(lock, *batch)) return false;
    Lane& lane = lanes_[index % lanes_.size()];
    lane.batches.push_back(batch);
    lane.changed.notify_one();
    return true;
  }

  // The same.
  bool start(std::unique_lock<std::mutex>& lock, Batch& batch) {
    Request& request = *requests_[batch.request];
    lock.unlock();
    std::exception_ptr failure;
    bool any = false;
    for (size_t image = 0; image < batch.entries.size(); ++image) {
      try {
        batch.entries[image]->fill(request, image);
        any = true;
      } catch (...) {
        batch.entries[image]->error = std::current_exception();
      }
    }
    try {
      if (any) request.start(batch.entries.size());
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (any && !failure) return true;
    finish(lock, batch, failure);
    return false;
  }

  void attend(Lane& lane, const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "clinfer:batches");  // for those who look who is busy
    std::unique_lock lock(mutex_);
    const auto needed = [&] { return !lane.batches.empty() || (due() && idle_request()); };
    while (lane.changed.wait(lock, stop, needed)) {
      if (!lane.batches.empty()) {
        const std::shared_ptr<Batch> batch = lane.batches.front();
        lane.batches.pop_front();
        attend_to(lock, *batch);
      }
      launch_due(lock);
    }
  }

  void attend_to(std::unique_lock<std::mutex>& lock, Batch& batch) {
    if (own_threads_fill_) {
      if (!start(lock, batch)) return;
      if (batch.waiting != 0) {
        batch.state = State::offered;
        return batch.changed.notify_one();
      }
    }
    take_results(lock, batch);
  }

  void take_results(std::unique_lock<std::mutex>& lock, Batch& batch) {
    lock.unlock();
    std::exception_ptr failure;
    std::vector<Result> results;
    try {
      Request& request = *requests_[batch.request];
      request.wait();
      for (size_t image = 0; image < batch.entries.size(); ++image)
        results.push_back(batch.entries[image]->error ? Result() : read_(request, image));
    } catch (...) {
      failure = std::current_exception();
      results.clear();
    }
    lock.lock();
    for (size_t image = 0; image < results.size(); ++image)
      batch.entries[image]->result = std::move(results[image]);
    finish(lock, batch, failure);
  }

  // Room there is when what is due has been launched.
  void finish(std::unique_lock<std::mutex>& lock, Batch& batch, const std::exception_ptr& failure) {
    for (const auto& entry : batch.entries)
      if (failure && !entry->error) entry->error = failure;
    batch.entries.clear();
    batch.state = State::done;
    idle_[batch.request] = true;
    --load_of(batch.request);
    wake(lock, batch.changed);
  }

  // Without the lock, which the woken would only wait for.
  static void wake(std::unique_lock<std::mutex>& lock, std::condition_variable& those) {
    lock.unlock();
    those.notify_all();
    lock.lock();
  }

  // One step towards the end of a batch.
  void advance(std::unique_lock<std::mutex>& lock, Batch& batch) {
    if (batch.state == State::offered) {
      batch.state = State::launched;  // others who wait for it go on waiting
      take_results(lock, batch);
      // Who has results to go on with leaves the next batch to the request's thread.
      return lanes_[batch.request % lanes_.size()].changed.notify_one();
    }
    Clock::time_point until = Clock::time_point::max();
    if (batch.state == State::forming && &batch == formed_.front().get()) {
      if (!due())
        until = std::min(batch.timeout_at, batch.quiet_at);
      else if (idle_request())
        return launch_due(lock);
      else
        batch.timeout_at = Clock::time_point::min();  // it stays due until a request is idle
    }
    ++batch.waiting;
    if (until == Clock::time_point::max())
      batch.changed.wait(lock);
    else
      batch.changed.wait_until(lock, until);
    --batch.waiting;
  }

  std::optional<Result> wait(Entry& entry) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Batch> batch = std::move(entry.batch);
    while (batch->state != State::done) {
      if (batch->state == State::forming && entry.stream->interrupted) {
        leave(*batch, entry);
        return std::nullopt;
      }
      advance(lock, *batch);
    }
    lock.unlock();
    if (entry.error) std::rethrow_exception(entry.error);
    return std::move(entry.result);
  }

  void forget(Entry& entry) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Batch> batch = std::move(entry.batch);
    if (batch->state == State::forming) return leave(*batch, entry);
    while (batch->state != State::done) advance(lock, *batch);
  }

  // Takes a frame out of the batch that is being formed.
  void leave(Batch& batch, const Entry& entry) {
    std::erase_if(batch.entries, [&](const auto& other) { return other.get() == &entry; });
    if (batch.entries.empty()) {
      std::erase_if(formed_, [&](const auto& other) { return other.get() == &batch; });
      wake_first();
    }
    room_.notify_all();
  }

  // Who waits in the batch that is the first now looks after its time.
  void wake_first() {
    if (!formed_.empty()) formed_.front()->changed.notify_all();
  }

  // Batches launched and not done on the stream of the device that a request is bound to.
  size_t& load_of(size_t request) { return loads_[request % loads_.size()]; }

  mutable std::mutex mutex_;
  std::condition_variable room_;  // for those who submit
  const std::vector<std::unique_ptr<Request>> requests_;
  const size_t batch_size_;
  const Read read_;
  std::vector<bool> idle_;
  std::vector<size_t> loads_;
  const bool own_threads_fill_;
  std::deque<Lane> lanes_;  // request i is attended to by thread i mod their number
  // To be launched, oldest first; each has an entry, all but the last are full or have lost some.
  std::deque<std::shared_ptr<Batch>> formed_;
  Counts counts_;
  std::vector<std::jthread> threads_;  // last: they stop before the rest goes
};

}  // namespace clinfer
