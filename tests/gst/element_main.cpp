// GoogleTest under GStreamer's leaks tracer: a GstObject or GstMiniObject that outlives the tests
// fails the program.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gst/base/log.h"
#include "gst/meta/meta.h"
#include "tests/gst/glib_messages.h"
#include "tests/gst/live_objects.h"

namespace {

// Objects that are still alive; threads that are just ending may release theirs a little later.
size_t count_leaks() {
  using namespace std::chrono_literals;
  const auto until = std::chrono::steady_clock::now() + 60s;
  std::vector<std::string> live = clinfer::live_objects();
  while (!live.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(20ms);
    live = clinfer::live_objects();
  }
  for (const std::string& object : live) std::printf("still alive: %s\n", object.c_str());
  return live.size();
}

}  // namespace

int main(int argc, char** argv) {
  g_setenv("GST_TRACERS", "leaks", TRUE);
  gst_init(&argc, &argv);
  clinfer::fail_at_glib_messages();
  clinfer::init_log();
  clinfer::register_result_meta();
  // As an application that traps floating-point exceptions, in all its threads. Not before gst_init(): libxml2 divides by
  // zero while the registry is made.
  if (std::getenv("CLINFER_TEST_TRAP_FLOATS") != nullptr)
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const size_t leaks = count_leaks();
  if (leaks != 0) std::printf("%zu objects leaked\n", leaks);
  return result != 0 || leaks != 0 || clinfer::glib_messages_said != 0 ? 1 : 0;
}
