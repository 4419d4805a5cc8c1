// GoogleTest with GStreamer initialised.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include "gst/base/log.h"
#include "tests/gst/glib_messages.h"

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  clinfer::fail_at_glib_messages();
  clinfer::init_log();
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  return clinfer::glib_messages_said != 0 ? 1 : result;
}
