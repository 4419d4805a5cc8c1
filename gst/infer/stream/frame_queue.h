// The in-order queue from the chain function to the source pad's task. Plain C++ threads, no
// GObject, so that ThreadSanitizer can check it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace clinfer {

// Frames (limited in number, possibly still being computed) and other items (events, queries: never
// wait for room) leave in the order in which they came. A flush makes the frames inside stale and
// drops the others. Stale frames stay in line, because the device may still read their memory: the
// consumer waits for them and discards them. One producer, one consumer; any thread may flush.
// Items are never destroyed under the lock.
template <typename Item>
class FrameQueue {
 public:
  struct Popped {
    Item item;
    bool is_frame = false;
    uint64_t generation = 0;  // for is_current()
  };

  // Sets the limit of frames in flight, from admit() to leave(), at least 1. Takes effect at the
  // next admit().
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

  // Blocks while the queue is full. Once blocked, wakes when a third is free, because a thread
  // switch costs as much as a small frame. Returns false while flushing; nothing was admitted then.
  bool admit() {
    std::unique_lock lock(mutex_);
    if (in_flight_ >= capacity_) room_.wait(lock, [&] { return flushing_ || is_third_free(); });
    if (flushing_) return false;
    ++in_flight_;
    return true;
  }
  // Admits as admit() does, but does not block. Returns false also if the queue is full.
  bool try_admit() {
    const std::lock_guard lock(mutex_);
    if (flushing_ || in_flight_ >= capacity_) return false;
    ++in_flight_;
    return true;
  }
  // Frees the place of an admitted frame. To be called after pop(), or instead of push_frame().
  void leave() {
    bool enough = false;
    {
      const std::lock_guard lock(mutex_);
      if (in_flight_ > 0) --in_flight_;
      enough = is_third_free();
    }
    if (enough) room_.notify_one();
  }

  // Append an item. Return false while flushing; the caller then keeps the item, as it does if
  // there is no memory for its place (std::bad_alloc).
  bool push_frame(Item& item) { return push(item, true); }
  bool push_other(Item& item) { return push(item, false); }

  // Returns the oldest item; waits for one. Returns nothing while flushing.
  std::optional<Popped> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return flushing_ || !items_.empty(); });
    if (flushing_) return std::nullopt;
    std::optional<Popped> first(std::move(items_.front()));
    items_.pop_front();
    return first;
  }
  // Returns false if a flush began after the item was pushed.
  bool is_current(uint64_t generation) const {
    const std::lock_guard lock(mutex_);
    return generation == generation_ && !flushing_;
  }

  // Wakes all waiting threads. Items that are pushed before stop_flush() are refused. Allocates no
  // memory, so that it never fails.
  void start_flush() {
    std::list<Popped> dropped;
    {
      const std::lock_guard lock(mutex_);
      flushing_ = true;
      ++generation_;
      for (auto item = items_.begin(); item != items_.end();) {
        const auto at = item++;
        if (!at->is_frame) dropped.splice(dropped.end(), items_, at);
      }
    }
    room_.notify_all();
    filled_.notify_all();
  }
  void stop_flush() {
    const std::lock_guard lock(mutex_);
    flushing_ = false;
  }

  // Destroys all items, frames included. For a queue that is flushing and has no other users.
  void clear() {
    std::list<Popped> dropped;
    {
      const std::lock_guard lock(mutex_);
      dropped.swap(items_);
      in_flight_ = 0;
    }
  }

 private:
  // The caller must hold mutex_.
  bool is_third_free() const {
    return in_flight_ + std::max<size_t>(capacity_ / 3, 1) <= capacity_;
  }
  bool push(Item& item, bool is_frame) {
    std::list<Popped> place(1);
    {
      const std::lock_guard lock(mutex_);
      if (flushing_) return false;
      place.front() = {std::move(item), is_frame, generation_};
      items_.splice(items_.end(), place);
    }
    filled_.notify_one();
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable room_, filled_;
  std::list<Popped> items_;
  size_t capacity_ = 1;
  size_t in_flight_ = 0;
  uint64_t generation_ = 0;
  bool flushing_ = true;  // items are refused before the pads are active
};

}  // namespace clinfer
