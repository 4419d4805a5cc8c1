// Forms batches from the frames of one or several streams and runs them on the infer requests of
// one compiled model. Plain C++ threads without GObject, so that ThreadSanitizer can check it.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "gst/infer/model/fair_share.h"
#include "kernels/base/no_answer.h"
#include "kernels/base/system/leaving.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

// A batch is launched by the submitter that fills it, by the waiter whose time-out expires, or else
// by a worker. Its results are read by a worker, or by a thread that already waits for them (which
// saves a wake-up). Each worker serves some of the requests; requests of different workers do not
// wait for each other, whatever the order of the frames. A stream that stands still therefore holds
// up no other. The lock is never held over a call of a request.
//
// Memory is allocated when a frame comes in, before anything is changed. From then on batches only
// move from list to list, and nothing throws, so that every frame that was accepted comes out.
//
// A request that does not answer in time (NoAnswer) stays in flight: its frames fail, their memory
// is kept, and its stream of the device gets no more batches until the device has finished it.
//
// A Request has start(images), which runs the first `images` of the batch, and wait(milliseconds),
// which returns false if the inference was not over by then. One thread uses it at a time; any
// thread may call cancel() when the results are not wanted any more. If it has keeps_frames(), that
// tells whether a device may still read frames although the results are there.
template <typename Request, typename Result>
class Batcher {
  struct Batch;
  struct Entry;

 public:
  using Clock = std::chrono::steady_clock;
  // Gives a frame to image `image` of a request. An exception is the error of this frame alone.
  using Fill = std::function<void(Request&, size_t image)>;
  // Returns the results of image `image` of a finished request; they must not refer to the request.
  using Read = std::function<Result(Request&, size_t image)>;

  // A stream that submits frames.
  struct Stream {
    std::atomic<bool> interrupted{false};  // true: it waits neither for room nor for other frames
    std::atomic<unsigned> share{1};        // weight of the stream among live streams, at least 1
  };

  // The place of a frame in a batch. The destructor takes the frame out of a batch that has not
  // been launched, and waits a while for one that has: what its Fill holds is kept for as long as
  // the device may need it. Must not outlive the batcher.
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
    // Blocks until the results are there and returns them, or throws the error of the inference.
    // Returns nothing if the stream was interrupted before the frame was launched, or if the device
    // takes long after the interruption. To be called once.
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
    uint64_t batches = 0, frames = 0;  // that were launched
  };

  // Request i is bound to stream i mod `device_streams` of the device; a batch takes an idle
  // request of the least loaded stream. If filling a request takes time (a copy to the device),
  // each request has a worker of its own that fills it, so that several are filled at a time.
  // Otherwise there is one worker per stream of the device, and the launching thread fills the
  // request, which needs fewer thread switches.
  Batcher(std::vector<std::unique_ptr<Request>> requests, size_t batch_size,
          unsigned device_streams, bool filling_is_work, Read read)
      : requests_(std::move(requests)),
        batch_size_(std::max<size_t>(batch_size, 1)),
        most_images_(batch_size_),
        by_images_(batch_size_ + 1),
        read_(std::move(read)),
        idle_(requests_.size(), true),
        lost_(requests_.size()),
        device_(std::max(device_streams, 1u)),
        workers_fill_(filling_is_work),
        workers_(workers_fill_ ? requests_.size() : device_.size()) {
    for (Worker& worker : workers_)
      threads_.push_back(start_thread<std::jthread>(
          [this, &worker](const std::stop_token& stop) { work(worker, stop); }));
  }

  // Waits only briefly for a device that does not answer.
  ~Batcher() {
    for (const auto& request : requests_) request->cancel();
    threads_.clear();
    const Clock::time_point until = Clock::now() + kPatience;
    const auto keep = [&](const Batches& batches) {
      for (const auto& batch : batches)
        if (batch->filled) keep_if_needed(batch->request, batch->entries, until);
    };
    for (const Worker& worker : workers_) keep(worker.batches);
    keep(offered_);
    for (size_t request = 0; request < lost_.size(); ++request)
      if (!lost_[request].empty()) keep_if_needed(request, lost_[request], until);
  }
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  size_t requests() const { return requests_.size(); }
  size_t device_streams() const { return device_.size(); }
  size_t batch_size() const { return batch_size_; }
  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  // The batches that the device has finished.
  struct Work {
    Clock::duration busy{};  // time that it computed, in all its streams together
    struct Size {
      size_t batches = 0;
      Clock::duration busy{};
    };
    std::vector<Size> by_images;  // by number of images, from 0 to batch_size()
  };
  // Returns the work since the last call.
  Work take_work() {
    std::vector<typename Work::Size> none(batch_size_ + 1);
    const std::lock_guard lock(mutex_);
    Work work;
    work.by_images = std::exchange(by_images_, std::move(none));
    for (const auto& size : work.by_images) work.busy += size.busy;
    return work;
  }
  // Limits batches to `images` of batch_size(), at least 1, from now on.
  void limit_batches(size_t images) {
    const std::lock_guard lock(mutex_);
    images = std::clamp<size_t>(images, 1, batch_size_);
    if (std::exchange(most_images_, images) == images) return;
    for (Worker& worker : workers_) worker.changed.notify_one();  // a batch may be due now
    wake_blocked();
  }

  // Limits of a frame's wait for others: it ends after `timeout`, or when no frame has come for
  // `quiet`.
  struct BatchWait {
    std::optional<Clock::duration> timeout;
    Clock::duration quiet{};
  };

  // Puts a frame into the batch that is being formed. Blocks while one full batch for each stream
  // of the device waits already; blocked threads continue in the order in which they came. Returns
  // an empty ticket if the stream was interrupted.
  Ticket submit(const Stream& stream, Fill fill, const BatchWait& batch_wait) {
    std::unique_lock lock(mutex_);
    return submit(lock, stream, std::move(fill), batch_wait, true);
  }

  // Submits a frame of a live stream without blocking. Returns an empty ticket if the device could
  // not begin the frame within `longest`, or if another live stream has precedence (FairShare).
  Ticket try_submit(const Stream& stream, Fill fill, const BatchWait& batch_wait,
                    Clock::duration longest) {
    std::unique_lock lock(mutex_);
    revive();
    launch_due(lock);
    if (stream.interrupted || none_answers()) return {};
    const Clock::time_point now = Clock::now();
    // Streams that block keep the device busy all the time; beside them a live frame takes its turn
    // in the batch that is being formed.
    const bool admitted =
        blocking_ != 0 ? !full(1) : fair_.admit(&stream, stream.share, longest, load(now), now);
    if (!admitted) return {};
    return add(lock, stream, std::move(fill), batch_wait, false);
  }

  // Submits a further image of a frame that try_submit() took. Blocks as submit() does.
  Ticket submit_more(const Stream& stream, Fill fill, const BatchWait& batch_wait) {
    std::unique_lock lock(mutex_);
    fair_.charge(&stream, stream.share);
    revive();
    if (none_answers()) return {};
    return submit(lock, stream, std::move(fill), batch_wait, false);
  }

  // Launches the frames of `stream` in a partial batch without waiting for others.
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

  // Makes threads of `stream` stop waiting for room and for other frames until it is resumed.
  void interrupt(Stream& stream) {
    const std::lock_guard lock(mutex_);
    stream.interrupted = true;
    for (const auto& batch : formed_) batch->changed.notify_all();
    for (Submitter* const submitter : blocked_)
      if (submitter->stream == &stream) submitter->changed.notify_one();
  }

 private:
  // The time that an interrupted frame waits for the device before it leaves its memory to the
  // device.
  static constexpr std::chrono::milliseconds kPatience{200};

  // The interval at which threads that wait for the device check for an interruption.
  static constexpr std::chrono::milliseconds kAskAgain{100};

  // Offered: a thread that waits may take the results.
  enum class State { forming, launched, offered, done };

  struct Batch {
    State state = State::forming;
    std::condition_variable changed;  // wakes the threads that wait for its frames
    size_t waiting = 0;               // number of such threads
    bool filled = false;              // the request has its frames
    std::vector<std::shared_ptr<Entry>> entries;
    // When the first entry's time-out expires.
    Clock::time_point timeout_at = Clock::time_point::max();
    Clock::time_point quiet_at = Clock::time_point::max();
    size_t request = 0;
    Clock::time_point launched_at;
    std::optional<ExitWaits> exit_waits;  // exists from filling until the results are taken
  };
  struct Entry {
    const Stream* stream = nullptr;
    bool blocking = false;  // from a stream that waits for room, not from a live one
    Fill fill;
    std::shared_ptr<Batch> batch;
    std::optional<Result> result;
    std::exception_ptr error;
    bool left = false;  // its submitter does not wait for it any more
    // See keep_for_ever().
    std::vector<std::shared_ptr<Entry>> kept;
    Entry* kept_before = nullptr;
  };
  using Batches = std::list<std::shared_ptr<Batch>>;
  // A thread that waits for room. Each has a condition of its own, so that only as many threads are
  // woken as there is room for.
  struct Submitter {
    const Stream* stream;
    bool woken = false;
    std::condition_variable changed;
  };
  // A thread of the batcher, and the batches whose results it takes, in the order of launching.
  struct Worker {
    Batches batches;
    std::condition_variable_any changed;
  };
  struct DeviceLoad {
    size_t load = 0;               // batches launched and not finished
    size_t lost = 0;               // those of them that do not answer
    bool slow = false;             // an interrupted frame has left it, so that others leave at once
    Clock::time_point busy_until;  // estimated
    Clock::time_point last_done;
  };

  // ---- All functions below need mutex_ held. Those with a `lock` argument release it in between.

  bool is_full(const Batch& batch) const { return batch.entries.size() >= most_images_; }
  // Returns whether there are `most` full batches that wait.
  bool full(size_t most) const { return formed_.size() >= most && is_full(*formed_.back()); }
  bool due() const {
    if (formed_.empty()) return false;
    const Batch& first = *formed_.front();
    // If another batch follows, this one was full once: frames that left it are not replaced.
    return is_full(first) || formed_.size() > 1 ||
           Clock::now() >= std::min(first.timeout_at, first.quiet_at);
  }
  std::optional<size_t> idle_request() {
    std::optional<size_t> best;
    for (size_t i = 0; i < requests_.size(); ++i)
      if (idle_[i] && device_of(i).lost == 0 &&
          (!best || device_of(i).load < device_of(*best).load))
        best = i;
    return best;
  }

  // Returns when a frame that comes now would begin, and the load that it adds.
  FairShare::Load load(Clock::time_point now) const {
    Clock::time_point free_at = Clock::time_point::max();
    bool is_idle = false;
    for (const DeviceLoad& stream : device_) {
      if (stream.lost != 0) continue;
      free_at = std::min(free_at, stream.load == 0 ? now : std::max(stream.busy_until, now));
      is_idle = is_idle || stream.load == 0;
    }
    const auto streams = static_cast<int>(device_.size());
    // Number of batches that begin before the frame's own.
    auto before = static_cast<int>(formed_.size());
    if (before != 0 && !is_full(*formed_.back())) --before;
    // Without an estimate, only an idle stream is known to begin soon.
    if (inference_time_ == Clock::duration{})
      return {is_idle && before == 0 ? Clock::duration{} : Clock::duration::max() / 4, {}};
    return {free_at - now + inference_time_ * before / streams,
            inference_time_ / (streams * static_cast<int>(most_images_))};
  }

  Ticket submit(std::unique_lock<std::mutex>& lock, const Stream& stream, Fill fill,
                const BatchWait& batch_wait, bool blocking) {
    revive();
    if (room() <= blocked_.size()) wait_for_room(lock, stream);
    if (stream.interrupted) return {};
    if (none_answers()) throw NoAnswer("the device still works on an inference that was given up");
    return add(lock, stream, std::move(fill), batch_wait, blocking);
  }

  // Returns how many frames may come before a full batch waits for each stream of the device.
  size_t room() const {
    if (formed_.size() > device_.size() || full(device_.size())) return 0;
    const size_t in_last =
        formed_.empty() ? most_images_ : std::min(formed_.back()->entries.size(), most_images_);
    return (device_.size() - formed_.size()) * most_images_ + most_images_ - in_last;
  }

  // Blocks until there is room, the stream is interrupted, or no stream of the device answers.
  // Threads that have waited longer get the room first.
  void wait_for_room(std::unique_lock<std::mutex>& lock, const Stream& stream) {
    Submitter self{&stream};
    const auto place = blocked_.insert(blocked_.end(), &self);
    const auto before = [&] { return static_cast<size_t>(std::distance(blocked_.begin(), place)); };
    while (!stream.interrupted && !none_answers() && room() <= before()) {
      if (full(device_.size()) && idle_request()) {
        launch_due(lock);
      } else {
        self.woken = false;
        self.changed.wait(lock);
      }
      revive();
    }
    blocked_.erase(place);
    // Another thread may take the room for which it was woken.
    if (stream.interrupted) wake_blocked();
  }

  // Wakes as many threads as there is room for, beginning with those that have waited longest.
  void wake_blocked() {
    size_t left = room();
    for (auto it = blocked_.begin(); it != blocked_.end() && left > 0; ++it, --left) {
      if (std::exchange((*it)->woken, true)) continue;
      (*it)->changed.notify_one();
    }
  }

  Ticket add(std::unique_lock<std::mutex>& lock, const Stream& stream, Fill fill,
             const BatchWait& batch_wait, bool blocking) {
    auto entry = std::make_shared<Entry>();
    if (formed_.empty() || is_full(*formed_.back())) {
      auto fresh = std::make_shared<Batch>();
      fresh->entries.reserve(batch_size_);
      formed_.push_back(std::move(fresh));
    }
    const std::shared_ptr<Batch>& batch = formed_.back();
    entry->stream = &stream;
    entry->blocking = blocking;
    if (blocking) ++blocking_;
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

  // Launches batches that are due. Also called when a request becomes idle, so that a batch that is
  // due never waits while a request is idle.
  void launch_due(std::unique_lock<std::mutex>& lock) {
    while (due()) {
      const std::optional<size_t> request = idle_request();
      if (!request || launch(lock, *request)) return;
    }
  }

  // Launches the first batch. Returns false if that failed; the request is then idle again.
  bool launch(std::unique_lock<std::mutex>& lock, size_t index) {
    Batches launched;
    launched.splice(launched.end(), formed_, formed_.begin());
    const std::shared_ptr<Batch>& batch = launched.front();
    wake_first();
    batch->state = State::launched;
    batch->request = index;
    idle_[index] = false;
    DeviceLoad& device = device_of(index);
    ++device.load;
    batch->launched_at = Clock::now();
    device.busy_until = std::max(device.busy_until, batch->launched_at) + inference_time_;
    ++counts_.batches;
    counts_.frames += batch->entries.size();
    wake_blocked();
    if (!workers_fill_ && !start(lock, *batch)) return false;
    Worker& worker = worker_of(index);
    worker.batches.splice(worker.batches.end(), launched);
    worker.changed.notify_one();
    return true;
  }

  // Fills the request and starts it. Returns false if that failed, as launch() does.
  bool start(std::unique_lock<std::mutex>& lock, Batch& batch) {
    Request& request = *requests_[batch.request];
    lock.unlock();
    std::exception_ptr failure;
    bool any = false;
    try {
      batch.exit_waits.emplace(ExitWaits::Until::answered);
    } catch (...) {
      failure = std::current_exception();
    }
    for (size_t image = 0; image < batch.entries.size() && !failure; ++image) {
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
    batch.filled = true;
    if (any && !failure) return true;
    finish(lock, batch, failure);
    return false;
  }

  void work(Worker& worker, const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "clinfer:batches");  // shown by top and gdb
    std::unique_lock lock(mutex_);
    const auto needed = [&] { return !worker.batches.empty() || (due() && idle_request()); };
    while (worker.changed.wait(lock, stop, needed)) {
      if (!worker.batches.empty()) {
        Batches first;
        first.splice(first.end(), worker.batches, worker.batches.begin());
        if (!complete(lock, first, stop)) {
          worker.batches.splice(worker.batches.begin(), first);
          return;
        }
      }
      launch_due(lock);
    }
  }

  // Processes the worker's first batch: fills it if workers fill batches, and takes the results
  // unless a waiting thread can. Returns false when stopped before the device has finished.
  bool complete(std::unique_lock<std::mutex>& lock, Batches& first, const std::stop_token& stop) {
    Batch& batch = *first.front();
    if (workers_fill_ && !batch.filled) {
      if (!start(lock, batch)) return true;
      if (batch.waiting != 0) {
        batch.state = State::offered;
        offered_.splice(offered_.end(), first);
        batch.changed.notify_one();
        return true;
      }
    }
    return take_results(lock, batch, [&] { return stop.stop_requested(); });
  }

  // Returns false if `gives_up` returned true first; the device then still works on the batch.
  template <typename GivesUp>
  bool take_results(std::unique_lock<std::mutex>& lock, Batch& batch, const GivesUp& gives_up) {
    lock.unlock();
    bool lost = false, keeps_frames = false;
    std::exception_ptr failure;
    std::vector<Result> results;
    try {
      Request& request = *requests_[batch.request];
      while (!request.wait(kAskAgain)) {
        if (!gives_up()) continue;
        lock.lock();
        return false;
      }
      for (size_t image = 0; image < batch.entries.size(); ++image)
        results.push_back(batch.entries[image]->error ? Result() : read_(request, image));
      if constexpr (requires { request.keeps_frames(); }) keeps_frames = request.keeps_frames();
    } catch (const NoAnswer&) {
      failure = std::current_exception();
      lost = true;
      results.clear();
    } catch (...) {
      failure = std::current_exception();
      results.clear();
    }
    lock.lock();
    if (!failure) measure(batch);
    if (lost) lose(batch, failure);
    for (size_t image = 0; image < results.size(); ++image)
      batch.entries[image]->result = std::move(results[image]);
    finish(lock, batch, failure, keeps_frames);
    return true;
  }

  // Keeps the frames of a batch whose request does not answer until it does. If no other stream of
  // the device is left, the frames of batches that are not launched fail as well.
  void lose(Batch& batch, const std::exception_ptr& failure) {
    lost_[batch.request] = end(batch, failure);
    ++device_of(batch.request).lost;
    if (!none_answers()) return;
    for (const auto& formed : formed_) {
      end(*formed, failure);
      formed->changed.notify_all();
    }
    formed_.clear();
  }
  bool none_answers() const {
    return std::all_of(device_.begin(), device_.end(),
                       [](const DeviceLoad& stream) { return stream.lost != 0; });
  }
  // Makes requests that answered late usable again, once the device has finished them.
  void revive() {
    for (size_t request = 0; request < lost_.size(); ++request) {
      if (lost_[request].empty()) continue;
      bool over = true;
      try {
        over = requests_[request]->wait(std::chrono::milliseconds(0));
      } catch (const std::bad_alloc&) {
        over = false;  // not known
      } catch (const std::exception&) {
        // A failed request is over, too.
      }
      if (!over) continue;
      lost_[request].clear();
      idle_[request] = true;
      device_of(request).slow = false;
      --device_of(request).load;
      --device_of(request).lost;
    }
  }

  // Keeps the frames that the device may still read at `until`.
  void keep_if_needed(size_t request, std::vector<std::shared_ptr<Entry>>& entries,
                      Clock::time_point until) noexcept {
    bool over = true;
    try {
      over = requests_[request]->wait(std::chrono::ceil<std::chrono::milliseconds>(
          std::max(until - Clock::now(), Clock::duration{})));
    } catch (const NoAnswer&) {
      over = false;
    } catch (const std::bad_alloc&) {
      over = false;  // it may have been about to answer
    } catch (const std::exception&) {
      // A failed request is over, too.
    }
    if (!over) keep_for_ever(std::move(entries));
  }
  // Keeps frames in memory until the end of the process: the first one holds them all, including
  // itself. A static variable points to them, so that leak checkers know that this is intended.
  static void keep_for_ever(std::vector<std::shared_ptr<Entry>> entries) noexcept {
    static std::atomic<Entry*> last{nullptr};
    Entry& first = *entries.front();
    first.kept = std::move(entries);
    first.kept_before = last.exchange(&first);
  }

  // Measures how long the device took: since the launch, or since it finished the batch before.
  void measure(const Batch& batch) {
    DeviceLoad& device = device_of(batch.request);
    const Clock::time_point now = Clock::now();
    const Clock::duration taken = now - std::max(batch.launched_at, device.last_done);
    device.last_done = now;
    typename Work::Size& size = by_images_[batch.entries.size()];
    ++size.batches;
    size.busy += taken;
    inference_time_ =
        inference_time_ == Clock::duration{} ? taken : (inference_time_ * 3 + taken) / 4;
    device.busy_until = now + inference_time_ * (static_cast<int>(device.load) - 1);
  }

  // Ends a batch. The caller launches the next batches that are due, which makes room for
  // submitters.
  void finish(std::unique_lock<std::mutex>& lock, Batch& batch, const std::exception_ptr& failure,
              bool keeps_frames = false) {
    if (keeps_frames)
      keep_for_ever(end(batch, failure));
    else
      end(batch, failure);
    const bool lost = !lost_[batch.request].empty();
    if (!lost) {
      idle_[batch.request] = true;
      device_of(batch.request).slow = false;
      --device_of(batch.request).load;
    }
    wake(lock, batch.changed);
    if (!lost) return;
    for (Submitter* const submitter : blocked_) submitter->changed.notify_one();
  }

  // Returns the batch's frames, which are removed from it.
  std::vector<std::shared_ptr<Entry>> end(Batch& batch, const std::exception_ptr& failure) {
    for (const auto& entry : batch.entries) {
      if (failure && !entry->error) entry->error = failure;
      if (entry->blocking) --blocking_;
    }
    batch.state = State::done;
    batch.exit_waits.reset();
    return std::exchange(batch.entries, {});
  }

  // Notifies without the lock held: the woken threads would only wait for it.
  static void wake(std::unique_lock<std::mutex>& lock, std::condition_variable& condition) {
    lock.unlock();
    condition.notify_all();
    lock.lock();
  }

  // Advances a batch on behalf of a thread that waits: takes the results if they are offered,
  // launches if that is due, or else sleeps, but not long while the device works. Calls `gives_up`
  // without the lock.
  template <typename GivesUp>
  void advance(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Batch>& shared,
               const GivesUp& gives_up) {
    Batch& batch = *shared;
    if (batch.state == State::offered) {
      batch.state = State::launched;  // other threads go on waiting
      if (!take_results(lock, batch, gives_up)) return leave_to_worker(shared);
      std::erase(offered_, shared);
      // This thread takes the results; a worker launches the next batch.
      return worker_of(batch.request).changed.notify_one();
    }
    Clock::time_point until = batch.filled ? Clock::now() + kAskAgain : Clock::time_point::max();
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

  void leave_to_worker(const std::shared_ptr<Batch>& batch) {
    batch->state = State::launched;
    Worker& worker = worker_of(batch->request);
    worker.batches.splice(worker.batches.begin(), offered_,
                          std::find(offered_.begin(), offered_.end(), batch));
    worker.changed.notify_one();
  }

  // Waits until the batch is finished. Returns false if the frame left the batch before: once
  // `interrupted` is true, at once if the batch is not launched, else after kPatience.
  template <typename Interrupted>
  bool wait_until_done(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Batch>& batch,
                       Entry& entry, const Interrupted& interrupted) {
    std::optional<Clock::time_point> since;
    while (batch->state != State::done) {
      if (batch->state == State::forming && interrupted()) {
        leave(*batch, entry);
        return false;
      }
      const bool slow = batch->state != State::forming && device_of(batch->request).slow;
      const auto gives_up = [&] {
        if (!interrupted()) return false;
        if (!since) since = Clock::now();
        return slow || Clock::now() >= *since + kPatience;
      };
      if (batch->filled && gives_up()) {
        device_of(batch->request).slow = entry.left = true;
        if (std::all_of(batch->entries.begin(), batch->entries.end(),
                        [](const auto& other) { return other->left; }))
          requests_[batch->request]->cancel();
        if (batch->state == State::offered) leave_to_worker(batch);
        return false;
      }
      advance(lock, batch, gives_up);
    }
    return true;
  }

  std::optional<Result> wait(Entry& entry) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Batch> batch = std::move(entry.batch);
    const Stream& stream = *entry.stream;
    if (!wait_until_done(lock, batch, entry, [&] { return stream.interrupted.load(); }))
      return std::nullopt;
    lock.unlock();
    if (entry.error) std::rethrow_exception(entry.error);
    return std::move(entry.result);
  }

  void forget(Entry& entry) {
    std::unique_lock lock(mutex_);
    const std::shared_ptr<Batch> batch = std::move(entry.batch);
    wait_until_done(lock, batch, entry, [] { return true; });
  }

  // Takes a frame out of the batch that is being formed.
  void leave(Batch& batch, const Entry& entry) {
    std::erase_if(batch.entries, [&](const auto& other) { return other.get() == &entry; });
    if (entry.blocking) --blocking_;
    if (batch.entries.empty()) {
      std::erase_if(formed_, [&](const auto& other) { return other.get() == &batch; });
      wake_first();
    }
    wake_blocked();
  }

  // Wakes the threads that wait for the first batch, which watch its time-out.
  void wake_first() {
    if (!formed_.empty()) formed_.front()->changed.notify_all();
  }

  // Returns the stream of the device to which a request is bound.
  DeviceLoad& device_of(size_t request) { return device_[request % device_.size()]; }
  Worker& worker_of(size_t request) { return workers_[request % workers_.size()]; }

  mutable std::mutex mutex_;
  std::list<Submitter*> blocked_;  // the one that has waited longest first
  const std::vector<std::unique_ptr<Request>> requests_;
  const size_t batch_size_;
  size_t most_images_;  // of a batch, up to batch_size_
  std::vector<typename Work::Size> by_images_;
  const Read read_;
  std::vector<bool> idle_;
  // Frames by request, of requests that do not answer.
  std::vector<std::vector<std::shared_ptr<Entry>>> lost_;
  std::vector<DeviceLoad> device_;
  const bool workers_fill_;
  std::deque<Worker> workers_;  // request i belongs to worker i mod their number
  // Batches that are to be launched, oldest first. None is empty; all but the last were full once.
  Batches formed_;
  Batches offered_;  // batches whose results a waiting thread may take, or takes
  FairShare fair_;
  size_t blocking_ = 0;               // entries of blocking streams that are not finished
  Clock::duration inference_time_{};  // of a batch, smoothed; zero before the first
  Counts counts_;
  // Declared last, because the threads must stop before the other members go.
  std::vector<std::jthread> threads_;
};

}  // namespace clinfer
