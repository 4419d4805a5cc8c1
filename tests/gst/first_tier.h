// For tests of the time while kernels are compiled: cold caches, and what the element says meanwhile.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {

// A field of stats; "" while there is none.
inline std::string text_of(GstElement* clinfer, const char* field) {
  const Handle<GstStructure> stats = stats_of(clinfer);
  const char* text = gst_structure_get_string(stats.get(), field);
  return text != nullptr ? text : "";
}

// Empty caches, of this engine and of PoCL. The processes that compile inherit the variable.
class ColdCaches {
 public:
  ColdCaches() {
    if (const char* before = std::getenv("POCL_CACHE_DIR")) before_ = before;
    static int number = 0;
    folder_ = testing_models::folder() / "cold" + std::to_string(number++);
    setenv("POCL_CACHE_DIR", (folder_ + "/pocl").c_str(), 1);
  }
  ~ColdCaches() {
    if (before_)
      setenv("POCL_CACHE_DIR", before_->c_str(), 1);
    else
      unsetenv("POCL_CACHE_DIR");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const std::string& folder() const { return folder_; }
  std::string properties() const { return " first-tier=true cache-dir=" + folder_ + "/programs "; }

 private:
  std::string folder_;
  std::optional<std::string> before_;
};

// Texts of progress messages on the bus.
inline std::vector<std::string> progress_of(GstBus* bus) {
  std::vector<std::string> texts;
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_PROGRESS)) {
    gchar* text = nullptr;
    gst_message_parse_progress(message, nullptr, nullptr, &text);
    texts.push_back(text);
    g_free(text);
    gst_message_unref(message);
  }
  return texts;
}

// The first that begins so; their number where none does.
inline size_t index_of(const std::vector<std::string>& texts, const std::string& begin) {
  size_t at = 0;
  while (at < texts.size() && texts[at].rfind(begin, 0) != 0) ++at;
  return at;
}

}  // namespace clinfer
