// GoogleTest with GStreamer initialised.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include "gst/base/log.h"

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  clinfer::init_log();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
