// The processors that a process may use.
#include "kernels/base/system/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace clinfer {
namespace {

TEST(Processors, AreThoseOfTheAffinityMask) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) GTEST_SKIP() << "a machine of over 1024";
  EXPECT_EQ(available_processors(), static_cast<unsigned>(CPU_COUNT(&mask)));
  // Of another thread, so that the mask of the other tests stays.
  std::thread([&] {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &mask)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(i, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      EXPECT_EQ(available_processors(), 1u);
      break;
    }
  }).join();
}

}  // namespace
}  // namespace clinfer
