// Work on a thread of its own: results on the way, failures, cancellation and waiting.
#include "kernels/base/system/task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace clinfer {
namespace {

using namespace std::chrono_literals;
using Number = std::shared_ptr<const int>;
using NumberTask = Task<Number>;

Number number(int value) { return std::make_shared<const int>(value); }

// Ends the work's wait from outside.
class Gate {
 public:
  void open() { opened_.request_stop(); }
  void wait() const {
    while (!opened_.stop_requested()) std::this_thread::sleep_for(1ms);
  }

 private:
  std::stop_source opened_;
};

void work_until_cancelled(const NumberTask& task) {
  while (!task.is_cancelled()) std::this_thread::sleep_for(1ms);
}

TEST(Task, GivesWhatTheWorkMakes) {
  NumberTask task([](NumberTask&) { return number(7); });
  EXPECT_EQ(*task.wait(), 7);
  EXPECT_TRUE(task.is_over());
  EXPECT_EQ(*task.newest(), 7);
}

TEST(Task, GivesWhatIsOfferedUntilTheWorkIsDone) {
  Gate gate;
  NumberTask task([&](NumberTask& self) {
    self.offer(number(1));
    gate.wait();
    return number(2);
  });
  task.wait_for_change(nullptr);
  const Number first = task.newest();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(*first, 1);
  EXPECT_FALSE(task.is_over());
  task.wait_for_change(first, 5ms);
  EXPECT_EQ(task.newest(), first);
  gate.open();
  task.wait_for_change(first);
  EXPECT_EQ(*task.newest(), 2);
  EXPECT_EQ(*first, 1) << "who holds it keeps it";
}

TEST(Task, ThrowsWhatTheWorkThrew) {
  NumberTask task([](NumberTask& self) -> Number {
    self.offer(number(1));
    throw Error(ErrorCode::unsupported, "no such number");
  });
  for (int i = 0; i < 2; ++i) {
    try {
      i == 0 ? task.wait() : task.newest();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
    }
  }
  EXPECT_TRUE(task.is_over());
}

TEST(Task, IsCancelledFromAnyThreadAndByItsEnd) {
  std::atomic<int> ended{0};
  const auto work = [&](NumberTask& self) -> Number {
    work_until_cancelled(self);
    ++ended;
    throw Error(ErrorCode::cancelled, "was cancelled");
  };
  NumberTask task(work);
  std::jthread([&] { task.cancel(); });
  EXPECT_THROW(task.wait(), Error);
  { NumberTask dropped(work); }
  EXPECT_EQ(ended, 2);
}

TEST(Task, AnOfferThatIsTakenBackLetsOthersWait) {
  Gate gate;
  NumberTask task([&](NumberTask& self) {
    self.offer(number(1));
    self.offer(nullptr);
    gate.wait();
    return number(2);
  });
  task.wait_for_offer({});
  std::stop_source interrupted;
  std::jthread interrupt([&] { interrupted.request_stop(); });
  while (task.newest() != nullptr) std::this_thread::sleep_for(1ms);
  task.wait_for_result(interrupted.get_token());
  EXPECT_FALSE(task.is_over()) << "the wait ended by the interruption";
  gate.open();
  task.wait_for_result({});
  EXPECT_EQ(*task.newest(), 2);
}

TEST(Task, ManyMayWaitAtOnce) {
  Gate gate;
  NumberTask task([&](NumberTask& self) {
    for (int i = 0; i < 100; ++i) self.offer(number(i));
    gate.wait();
    return number(100);
  });
  std::atomic<int> sum{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { sum += *task.wait(); });
    for (int i = 0; i < 100; ++i) (void)task.newest();
    gate.open();
  }
  EXPECT_EQ(sum, 800);
}

}  // namespace
}  // namespace clinfer
