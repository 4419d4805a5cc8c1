// Frames in VA surfaces, while each call fails once that the element makes of libva and of OpenCL. Odd
// sizes have a second surface over each.
#include <gtest/gtest.h>

#include "tests/engine/test_files.h"
#include "tests/gst/playing_faults.h"
#include "tests/gst/test_model.h"
#include "tests/rig/counters.h"

namespace clinfer {
namespace {

// Misuse counts as something left.
long rig_objects() {
  const RigVaCounters va = va_counters();
  const RigClCounters cl = cl_counters();
  return va.surfaces_alive + va.misuse + cl.images_alive + cl.misuse + (cl.acquired - cl.released);
}

class VaFaults : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const Scenario playing_ = playing(
      "videotestsrc pattern=red num-buffers=" + std::to_string(kFaultFrames) +
          " ! video/x-raw,format=NV12,width=61,height=47,framerate=25/1 ! vatestupload ! clinfer "
          "model=" +
          testing_models::color_model() +
          " labels=blue,green,red cache-dir=" + (folder_ / "cache") +
          " ! fakesink name=end signal-handoffs=true enable-last-sample=false",
      rig_objects);
};

TEST_F(VaFaults, VaCalls) { fail_each(kVa, 1000, playing_); }
TEST_F(VaFaults, OpenClCalls) { fail_each(kOpenCl, 60, playing_); }

}  // namespace
}  // namespace clinfer
