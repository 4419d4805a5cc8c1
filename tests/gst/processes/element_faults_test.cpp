// Each failure under the elements ends in an error on the bus or in the right results.
#include <gtest/gtest.h>

#include "tests/engine/test_files.h"
#include "tests/gst/playing_faults.h"
#include "tests/gst/test_model.h"

namespace clinfer {
namespace {

class ElementFaults : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const Scenario playing_ = playing(
      "videotestsrc pattern=red num-buffers=" + std::to_string(kFaultFrames) +
      " ! video/x-raw,format=BGR,width=32,height=32,framerate=25/1 ! clinfer model=" +
      testing_models::color_model() + " labels=blue,green,red cache-dir=" + (folder_ / "cache") +
      " ! cloverlay ! clpublish file-path=" + (folder_ / "lines") +
      " ! fakesink name=end signal-handoffs=true");
};

TEST_F(ElementFaults, Allocations) { fail_each(kAllocation, 60, playing_); }
TEST_F(ElementFaults, AllocationsInARow) { fail_each(kAllocation, 30, playing_, kFaultsInARow); }
TEST_F(ElementFaults, Threads) { fail_each(kThread, 20, playing_); }
TEST_F(ElementFaults, Files) { fail_each(kFile, 20, playing_); }
TEST_F(ElementFaults, OpenClCalls) { fail_each(kOpenCl, 60, playing_); }

}  // namespace
}  // namespace clinfer
