// Critical messages and warnings of GLib and GStreamer: each is a fault of an element or of its test.
#pragma once

#include <glib.h>
#include <gtest/gtest.h>

#include <atomic>

namespace clinfer {

inline std::atomic<int> glib_messages_said{0};

// From now on they fail the test that runs. GStreamer itself warns of plug-ins that do not load: call
// this after gst_init().
inline void fail_at_glib_messages() {
  g_log_set_default_handler(
      [](const gchar* domain, GLogLevelFlags level, const gchar* text, gpointer data) {
        if ((level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING)) != 0) {
          ++glib_messages_said;
          ADD_FAILURE() << (domain != nullptr ? domain : "") << ": " << text;
        }
        g_log_default_handler(domain, level, text, data);
      },
      nullptr);
}

}  // namespace clinfer
