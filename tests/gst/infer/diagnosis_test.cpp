// The element shows the inside of a network: dumps of graphs and sources, counters of layers, and
// which of them run on the host.
#include <filesystem>
#include <map>

#include "kernels/base/system/processors.h"
#include "tests/gst/harness.h"
#include "tests/host_layer_model.h"

namespace clinfer {
namespace {

// Plays one frame; returns `stats`, or null after an error.
Handle<GstStructure> stats_after_one_frame(const std::string& properties,
                                           std::string* error = nullptr) {
  Pipeline pipeline(
      "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=64,height=64 ! clinfer name=c "
      "first-tier=false post-process=none " +
      properties + " ! fakesink");
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  const std::string text = error_on(pipeline.element, std::chrono::seconds(kPatience / GST_SECOND));
  if (error) *error = text;
  if (!text.empty()) return nullptr;
  return stats_of(pipeline.find("c").get());
}

std::string text_in(const GstStructure* structure, const char* field) {
  const char* text = gst_structure_get_string(structure, field);
  return text ? text : "";
}

struct Row {
  std::string status, kernel, reason;
  double device_us = 0, host_us = 0;
};

// The rows of `layers` by their names.
std::map<std::string, Row> layers_of(const Handle<GstStructure>& stats) {
  std::map<std::string, Row> rows;
  const GValue* list = stats ? gst_structure_get_value(stats.get(), "layers") : nullptr;
  for (guint i = 0; list && i < gst_value_list_get_size(list); ++i) {
    const GstStructure* layer = gst_value_get_structure(gst_value_list_get_value(list, i));
    Row& row = rows[text_in(layer, "name")];
    row = {text_in(layer, "status"), text_in(layer, "kernel"), text_in(layer, "reason")};
    gst_structure_get_double(layer, "device-us", &row.device_us);
    gst_structure_get_double(layer, "host-us", &row.host_us);
  }
  return rows;
}

TEST(ElementDiagnosis, CountersAndHostLayersAreInStats) {
  const TemporaryFolder folder;
  const std::string model = " model=" + test::host_layer_model(folder);
  for (const char* asked : {"perf-count=true", "config=\"PERF_COUNT=YES,GPU_MAX_NUM_THREADS=2\""}) {
    std::map<std::string, Row> rows = layers_of(stats_after_one_frame(asked + model));
    EXPECT_EQ(rows["in"].status, "NOT_RUN") << asked;
    EXPECT_EQ(rows["in"].reason, "an input");
    EXPECT_EQ(rows["negate"].status, "EXECUTED");
    EXPECT_EQ(rows["negate"].kernel.find("host"), std::string::npos) << rows["negate"].kernel;
    EXPECT_FALSE(rows["negate"].kernel.empty());
    EXPECT_EQ(rows["invert"].status, "EXECUTED");
    EXPECT_GT(rows["invert"].host_us, 0);
    EXPECT_EQ(rows["invert"].device_us, 0);
    EXPECT_TRUE(rows["invert"].kernel.starts_with("host")) << rows["invert"].kernel;
    EXPECT_TRUE(rows.contains("(download)"));
    EXPECT_TRUE(rows.contains("(gaps)"));
    if (std::string(asked).find("THREADS") != std::string::npos) {
      const bool several = available_processors() > 1;
      EXPECT_EQ(rows["invert"].kernel, several ? "host, 2 threads" : "host");
    }
  }
  EXPECT_TRUE(layers_of(stats_after_one_frame(model)).empty()) << "nobody asked for them";
}

// All files with this ending, together.
std::string dumped(const std::string& folder, const std::string& ending, size_t* count = nullptr) {
  std::string text;
  if (count) *count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().ends_with(ending)) continue;
    text += read_file(entry.path().string());
    if (count) ++*count;
  }
  return text;
}

TEST(ElementDiagnosis, DumpsGraphsAndSourcesByTheConfiguration) {
  const TemporaryFolder folder;
  const std::string model = test::host_layer_model(folder);
  const auto run = [&](const std::string& to) {
    std::string error;
    stats_after_one_frame("model=" + model + " config=\"CACHE_DIR=" + (folder / "cache") +
                              ",CLDNN_SOURCES_DUMPS_DIR=" + to + ",CLDNN_GRAPH_DUMPS_DIR=" + to +
                              "\"",
                          &error);
    return error;
  };
  size_t built = 0, cached = 0;
  ASSERT_EQ(run(folder / "built"), "");
  ASSERT_EQ(run(folder / "cached"), "");
  const std::string sources = dumped(folder / "built", ".cl", &built);
  EXPECT_NE(sources.find("__kernel"), std::string::npos);
  dumped(folder / "cached", ".cl", &cached);
  EXPECT_EQ(cached, built) << "programs from the cache are dumped as well";
  const std::string graph = dumped(folder / "built", "_kernels.dot");
  EXPECT_NE(graph.find("negate"), std::string::npos) << graph;
  EXPECT_NE(graph.find("kernel: "), std::string::npos) << graph;
  EXPECT_NE(graph.find("on the host"), std::string::npos) << graph;
  EXPECT_NE(run("/proc/nowhere").find("/proc/nowhere cannot be made"), std::string::npos);
}

// The element's own properties do the same.
TEST(ElementDiagnosis, DumpsGraphsAndSourcesByProperties) {
  const TemporaryFolder folder;
  EXPECT_TRUE(stats_after_one_frame("model=" + test::host_layer_model(folder) +
                                    " sources-dumps-dir=" + (folder / "dumps") +
                                    " graph-dumps-dir=" + (folder / "dumps")));
  size_t sources = 0, graphs = 0;
  dumped(folder / "dumps", ".cl", &sources);
  dumped(folder / "dumps", ".dot", &graphs);
  EXPECT_GT(sources, 0u);
  EXPECT_GT(graphs, 0u);
}

}  // namespace
}  // namespace clinfer
