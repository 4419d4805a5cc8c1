// The in-order hand-over from the chain function to the source pad's task, and the pool of idle
// requests that bounds it. Plain C++ threads, no GObject, so that ThreadSanitizer can judge them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace clinfer {

// Frames (bounded, may still be worked on) and others (events, queries: never wait for room) leave
// in the order in which they came. A flush makes the frames inside stale and drops the others.
// Stale frames stay in line, because the device may still read their memory: whoever pops one waits
// for it and throws it away. One producer, one consumer, anybody flushes. Items are never destroyed
// under the lock.
template <typename Item>
class FrameQueue {
 public:
  struct Popped {
    Item item;
    bool is_frame = false;
    uint64_t generation = 0;  // for is_current
  };

  // Frames in flight, from admit() to leave(). At least 1. Takes effect at the next admit().
  void set_capacity(size_t frames) {
    {
      const std::lock_guard lock(mutex_);
      capacity_ = std::max<size_t>(frames, 1);
    }
    room_.notify_all();
  }
  size_t capacity() const {
    const std::lock_guard lock(mutex_);
    return capacity_;
  }
  size_t in_flight() const {
    const std::lock_guard lock(mutex_);
    return in_flight_;
  }

  // Waits for room for one more frame. False: flushing, nothing was taken.
  bool admit() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return flushing_ || in_flight_ < capacity_; });
    if (flushing_) return false;
    ++in_flight_;
    return true;
  }
  // Gives an admitted frame's room back: after pop(), or instead of push_frame().
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      if (in_flight_ > 0) --in_flight_;
    }
    room_.notify_one();
  }

  // Append. False, with the item left to the caller, while flushing.
  bool push_frame(Item& item) { return push(item, true); }
  bool push_other(Item& item) { return push(item, false); }

  // The oldest item; waits for one. Nothing while flushing.
  std::optional<Popped> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return flushing_ || !items_.empty(); });
    if (flushing_) return std::nullopt;
    std::optional<Popped> first(std::move(items_.front()));
    items_.pop_front();
    return first;
  }
  // False when a flush began after the item was pushed.
  bool is_current(uint64_t generation) const {
    const std::lock_guard lock(mutex_);
    return generation == generation_ && !flushing_;
  }

  // Everybody who waits returns; what is pushed before stop_flush() is refused.
  void start_flush() {
    std::vector<Popped> dropped;
    {
      const std::lock_guard lock(mutex_);
      flushing_ = true;
      ++generation_;
      std::deque<Popped> frames;
      for (Popped& item : items_) {
        if (item.is_frame)
          frames.push_back(std::move(item));
        else
          dropped.push_back(std::move(item));
      }
      items_.swap(frames);
    }
    room_.notify_all();
    filled_.notify_all();
  }
  void stop_flush() {
    const std::lock_guard lock(mutex_);
    flushing_ = false;
  }

  // Destroys what is inside, frames included; for a queue that is flushing and has no other users.
  void clear() {
    std::deque<Popped> dropped;
    {
      const std::lock_guard lock(mutex_);
      dropped.swap(items_);
      in_flight_ = 0;
    }
  }

 private:
  bool push(Item& item, bool is_frame) {
    {
      const std::lock_guard lock(mutex_);
      if (flushing_) return false;
      items_.push_back(Popped{std::move(item), is_frame, generation_});
    }
    filled_.notify_one();
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable room_, filled_;
  std::deque<Popped> items_;
  size_t capacity_ = 1;
  size_t in_flight_ = 0;
  uint64_t generation_ = 0;
  bool flushing_ = true;  // nothing enters before the pads are active
};

// Requests, each bound to stream (index mod streams). acquire() takes an idle one of the least
// loaded stream.
template <typename Request>
class RequestPool {
 public:
  // Gives its request back when it goes; must not outlive the pool.
  class Lease {
   public:
    Lease() = default;
    Lease(RequestPool* pool, size_t index) : pool_(pool), index_(index) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(index_, other.index_);
      return *this;
    }
    ~Lease() { reset(); }
    explicit operator bool() const { return pool_ != nullptr; }
    Request& operator*() const { return *pool_->requests_[index_]; }
    Request* operator->() const { return pool_->requests_[index_].get(); }
    void reset() {
      if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(index_);
    }

   private:
    RequestPool* pool_ = nullptr;
    size_t index_ = 0;
  };

  RequestPool(std::vector<std::unique_ptr<Request>> requests, unsigned streams)
      : requests_(std::move(requests)),
        idle_(requests_.size(), true),
        load_(std::max(streams, 1u), 0) {}

  size_t size() const { return requests_.size(); }

  // Waits for an idle request; an empty lease after interrupt().
  Lease acquire() {
    std::unique_lock lock(mutex_);
    size_t best = requests_.size();
    changed_.wait(lock, [&] {
      if (interrupted_) return true;
      best = requests_.size();
      for (size_t i = 0; i < requests_.size(); ++i)
        if (idle_[i] && (best == requests_.size() || load_of(i) < load_of(best))) best = i;
      return best != requests_.size();
    });
    if (interrupted_) return {};
    idle_[best] = false;
    ++load_of(best);
    return Lease(this, best);
  }

  // From interrupt() to resume() nobody waits.
  void interrupt() {
    {
      const std::lock_guard lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_all();
  }
  void resume() {
    const std::lock_guard lock(mutex_);
    interrupted_ = false;
  }

 private:
  size_t& load_of(size_t request) { return load_[request % load_.size()]; }
  void release(size_t index) {
    {
      const std::lock_guard lock(mutex_);
      idle_[index] = true;
      --load_of(index);
    }
    changed_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<bool> idle_;
  std::vector<size_t> load_;
  bool interrupted_ = false;
};

}  // namespace clinfer
