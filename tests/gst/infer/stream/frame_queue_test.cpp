// The hand-over: order, bounds, flushes from any thread. Runs under ThreadSanitizer.
#include "gst/infer/stream/frame_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Queue = FrameQueue<std::unique_ptr<int>>;

bool push_frame(Queue& queue, int value) {
  auto item = std::make_unique<int>(value);
  return queue.push_frame(item);
}

bool push_other(Queue& queue, int value) {
  auto item = std::make_unique<int>(value);
  return queue.push_other(item);
}

TEST(FrameQueue, KeepsTheOrderOfFramesAndOthers) {
  Queue queue;
  queue.set_capacity(1000);
  queue.stop_flush();
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) {
      if (i % 3 == 0) {
        ASSERT_TRUE(push_other(queue, i));
      } else {
        ASSERT_TRUE(queue.admit());
        ASSERT_TRUE(push_frame(queue, i));
      }
    }
  });
  for (int i = 0; i < 1000; ++i) {
    const auto popped = queue.pop();
    ASSERT_TRUE(popped);
    EXPECT_EQ(*popped->item, i);
    EXPECT_EQ(popped->is_frame, i % 3 != 0);
    if (popped->is_frame) queue.leave();
  }
  producer.join();
  EXPECT_EQ(queue.in_flight(), 0u);
}

TEST(FrameQueue, AdmitsNoMoreThanItsCapacity) {
  Queue queue;
  queue.set_capacity(3);
  queue.stop_flush();
  std::atomic<int> admitted{0};
  std::thread producer([&] {
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(queue.admit());
      ++admitted;
      ASSERT_TRUE(push_frame(queue, i));
    }
  });
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(1ms);
    const auto popped = queue.pop();
    ASSERT_TRUE(popped);
    EXPECT_LE(admitted.load(), i + 3);
    EXPECT_LE(queue.in_flight(), 3u);
    queue.leave();
  }
  producer.join();
}

TEST(FrameQueue, RefusesEverythingBeforeItIsStarted) {
  Queue queue;
  EXPECT_FALSE(queue.admit());
  EXPECT_FALSE(push_other(queue, 1));
  EXPECT_FALSE(queue.pop());
}

TEST(FrameQueue, WhoWaitsGoesOnWhenAThirdIsFree) {
  Queue queue;
  queue.set_capacity(6);
  queue.stop_flush();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(queue.admit());
  std::atomic<bool> has_begun{false};
  std::atomic<int> in{0};
  std::thread waiting([&] {
    has_begun = true;
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(queue.admit());
      ++in;
    }
  });
  while (!has_begun) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(100ms);
  queue.leave();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(in, 0);
  queue.leave();
  waiting.join();  // both find room at once
  EXPECT_EQ(queue.in_flight(), 6u);
  EXPECT_FALSE(queue.try_admit());
  queue.leave();
  EXPECT_TRUE(queue.try_admit()) << "who does not wait takes what there is";
}

TEST(FrameQueue, AFlushWakesBothSidesAndMarksFramesStale) {
  Queue queue;
  queue.set_capacity(1);
  queue.stop_flush();
  ASSERT_TRUE(queue.admit());
  ASSERT_TRUE(push_frame(queue, 1));
  ASSERT_TRUE(push_other(queue, 2));
  std::thread waiting([&] { EXPECT_FALSE(queue.admit()); });
  std::this_thread::sleep_for(5ms);
  queue.start_flush();
  waiting.join();
  EXPECT_FALSE(queue.pop());
  EXPECT_FALSE(push_other(queue, 3));
  queue.stop_flush();
  // The frame is still there, to be waited for; the other is not.
  const auto popped = queue.pop();
  ASSERT_TRUE(popped);
  EXPECT_EQ(*popped->item, 1);
  EXPECT_FALSE(queue.is_current(popped->generation));
  queue.leave();
  ASSERT_TRUE(queue.admit());
  ASSERT_TRUE(push_frame(queue, 4));
  const auto fresh = queue.pop();
  ASSERT_TRUE(fresh);
  EXPECT_EQ(*fresh->item, 4);
  EXPECT_TRUE(queue.is_current(fresh->generation));
}

TEST(FrameQueue, AFlushWakesAWaitingConsumer) {
  Queue queue;
  queue.stop_flush();
  std::thread consumer([&] { EXPECT_FALSE(queue.pop()); });
  std::this_thread::sleep_for(5ms);
  queue.start_flush();
  consumer.join();
}

TEST(FrameQueue, ClearGivesTheRoomBack) {
  Queue queue;
  queue.set_capacity(2);
  queue.stop_flush();
  ASSERT_TRUE(queue.admit());
  ASSERT_TRUE(push_frame(queue, 1));
  queue.start_flush();
  queue.clear();
  EXPECT_EQ(queue.in_flight(), 0u);
  queue.stop_flush();
  EXPECT_TRUE(queue.admit());
}

TEST(FrameQueue, StaysConsistentInAStormOfFlushes) {
  Queue queue;
  queue.set_capacity(4);
  queue.stop_flush();
  std::atomic<bool> stop{false};
  std::atomic<int> seen{0};
  std::thread producer([&] {
    for (int i = 0; !stop; ++i) {
      if (i % 5 == 0) {
        push_other(queue, i);
      } else if (queue.admit()) {
        if (!push_frame(queue, i)) queue.leave();
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::thread consumer([&] {
    int last = -1;
    uint64_t generation = 0;
    while (!stop) {
      auto popped = queue.pop();
      if (!popped) {
        std::this_thread::yield();
        continue;
      }
      EXPECT_GT(*popped->item, last);
      EXPECT_GE(popped->generation, generation);
      last = *popped->item;
      generation = popped->generation;
      ++seen;
      if (popped->is_frame) queue.leave();
    }
  });
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(500us);
    queue.start_flush();
    queue.stop_flush();
  }
  stop = true;
  queue.start_flush();
  producer.join();
  consumer.join();
  EXPECT_GT(seen.load(), 0);
  queue.clear();
  EXPECT_EQ(queue.in_flight(), 0u);
}

}  // namespace
}  // namespace clinfer
