// Messages for users and developers: errors name the line of the source that failed, and each area of
// the elements and the engine has a debug category that the documentation lists.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

namespace fs = std::filesystem;

constexpr char kBallModel[] = CLINFER_SOURCE_DIR "/pipelines/models/ball.xml";

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(file) << path;
  return text.str();
}

// The model of the ball with a part of its file replaced.
std::string changed_ball(const std::string& name, const std::string& from, const std::string& to) {
  std::string text = content_of(kBallModel);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  fs::path weights = kBallModel;
  weights.replace_extension(".bin");
  const std::string path = testing_models::write_file(name + ".xml", text);
  fs::copy_file(weights, fs::path(path).replace_extension(".bin"),
                fs::copy_options::overwrite_existing);
  return path;
}

struct ErrorLine {
  std::string text, file;  // file: relative to the source
  int line = 0;
};

// The error of a pipeline with "clinfer PROPERTIES", and where its debug text says that it is from.
ErrorLine failure_of(const std::string& properties, const std::string& caps = "GRAY8") {
  Pipeline pipeline("videotestsrc num-buffers=2 ! video/x-raw,width=64,height=64,format=" + caps +
                    " ! clinfer " + properties + " ! fakesink");
  GstBus* bus = gst_element_get_bus(pipeline.element);
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  GstMessage* message = gst_bus_timed_pop_filtered(
      bus, kPatience, static_cast<GstMessageType>(GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
  gst_object_unref(bus);
  ErrorLine found;
  if (message == nullptr) return found;
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    GError* error = nullptr;
    gchar* debug = nullptr;
    gst_message_parse_error(message, &error, &debug);
    found.text = error->message;
    std::cmatch parts;
    if (debug != nullptr && std::regex_search(debug, parts, std::regex("^([^(]+)\\((\\d+)\\): "))) {
      found.file = parts[1];
      for (const char* folder : {"kernels/", "tuning/", "engine/", "gst/"})
        if (const size_t at = found.file.find(folder); at != std::string::npos) {
          found.file = found.file.substr(at);
          break;
        }
      found.line = std::atoi(parts[2].str().c_str());
    }
    g_error_free(error);
    g_free(debug);
  }
  gst_message_unref(message);
  return found;
}

TEST(Messages, ErrorsNameThePlaceThatFailed) {
  const std::string model = std::string("model=") + kBallModel + " ";
  struct Case {
    const char* what;
    std::string properties, file, word;  // word: on that line of the file, or one of the next two
  };
  const Case kCases[] = {
      {"the reader of models", "model=" + changed_ball("ball-cut", "</layers>", ""),
       "engine/ir/ir_reader.cpp", "bad("},
      {"an operation",
       "model=" + changed_ball("ball-strides", "strides=\"2, 2\"", "strides=\"0, 2\""),
       "kernels/convolution/", "fail_model("},
      {"a model without a file", "model=/nowhere/model.xml", "engine/ir/model_file.cpp", "fail("},
      {"the engine's configuration", model + "config=NO_SUCH_KEY=1", "engine/runtime/config.cpp",
       "Error"},
      {"the choice of a device", model + "device=GPU.77", "engine/ocl/device.cpp", "Error"},
      {"a property", model + "tiles=many", "gst/infer/settings/object_rules.cpp", "refuse("},
      {"a tuning file", model + "tuning-mode=use-existing tuning-file=/nowhere/file",
       "tuning/tuning_", "Error"},
  };
  for (const Case& c : kCases) {
    const ErrorLine found = failure_of(c.properties);
    EXPECT_EQ(found.file.rfind(c.file, 0), 0u)
        << c.what << ": " << found.text << " is said to be from " << found.file;
    const fs::path source = fs::path(CLINFER_SOURCE_DIR) / found.file;
    ASSERT_TRUE(fs::is_regular_file(source)) << c.what << ": " << source;
    std::istringstream lines(content_of(source));
    std::string line, lines_there;
    for (int number = 1; std::getline(lines, line); ++number)
      if (number + 2 >= found.line && number <= found.line + 2) lines_there += line + "\n";
    EXPECT_NE(lines_there.find(c.word), std::string::npos)
        << c.what << ": " << found.text << "\nline " << found.line << " of " << source << ":\n"
        << lines_there;
  }
}

// The categories of a table in the troubleshooting page: rows that begin with | `name`.
std::set<std::string> documented_categories() {
  std::set<std::string> names;
  std::istringstream page(content_of(CLINFER_SOURCE_DIR "/docs/troubleshooting.md"));
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| debug category", 0) == 0) inside = true;
    if (inside && line.empty()) break;
    std::smatch name;
    if (inside && std::regex_search(line, name, std::regex("^\\| `([a-z-]+)`")))
      names.insert(name[1]);
  }
  return names;
}

TEST(Messages, EachAreaHasACategoryThatTheGuideLists) {
  const Handle<GstElement> loads(gst_element_factory_make("clinfer", nullptr));
  std::set<std::string> known;
  GSList* all = gst_debug_get_all_categories();
  for (GSList* item = all; item != nullptr; item = item->next) {
    const std::string name =
        gst_debug_category_get_name(static_cast<GstDebugCategory*>(item->data));
    if (name.rfind("cl", 0) == 0 && name.rfind("clock", 0) != 0) known.insert(name);
  }
  g_slist_free(all);
  EXPECT_EQ(documented_categories(), known);
  EXPECT_GE(known.size(), 15u);
}

struct Log {
  std::mutex mutex;
  std::set<std::string> areas;
  static void take(GstDebugCategory* category, GstDebugLevel, const gchar* file, const gchar*, gint,
                   GObject*, GstDebugMessage* message, gpointer data) {
    auto* self = static_cast<Log*>(data);
    const std::lock_guard lock(self->mutex);
    // The engine's are formatted with the place that they are from.
    EXPECT_NE(file, nullptr);
    EXPECT_NE(gst_debug_message_get(message), nullptr);
    self->areas.insert(gst_debug_category_get_name(category));
  }
};

TEST(Messages, TheEnginesLogGoesToGStreamers) {
  Log log;
  gst_debug_remove_log_function(gst_debug_log_default);  // nobody reads all that
  gst_debug_add_log_function(Log::take, &log, nullptr);
  const bool was_active = gst_debug_is_active();
  gst_debug_set_active(TRUE);
  gst_debug_set_threshold_from_string("clinfer*:7", FALSE);
  {
    const std::string file = testing_models::folder() / "log-tuning.json";
    fs::remove(file);
    Harness harness(Harness::clinfer_launch(
        "cache-dir=\"\" config=TUNING_SECONDS=2 tuning-mode=create tuning-file=" + file));
    harness.set_caps("GRAY8", 64, 64);
    ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
    harness.pull();
  }
  gst_debug_set_threshold_from_string("clinfer*:0", FALSE);
  gst_debug_set_active(was_active);
  EXPECT_EQ(gst_debug_remove_log_function(Log::take), 1u);
  gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
  const std::lock_guard lock(log.mutex);
  for (const char* area :
       {"clinfer-loader", "clinfer-streaming", "clinfer-model", "clinfer-heads", "clinfer-graph",
        "clinfer-plan", "clinfer-device", "clinfer-programs", "clinfer-tuning"})
    EXPECT_EQ(log.areas.count(area), 1u) << area;
}

}  // namespace
}  // namespace clinfer
