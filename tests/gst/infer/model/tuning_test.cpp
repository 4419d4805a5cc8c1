// Kernel tuning by properties: a run that measures, one that uses the file, what the bus hears, and
// stopping half-way.
#include <filesystem>
#include <thread>

#include "engine/measure/pipeline.h"
#include "tests/engine/test_files.h"
#include "tests/foreign_tuning_file.h"
#include "tests/gst/harness.h"
#include "tuning/tuning_cache.h"

namespace clinfer {
namespace {

struct Heard {
  std::string error, warnings, infos;
  unsigned tuning = 0;     // element messages
  unsigned completed = 0;  // progress
  unsigned hits = 0, misses = 0, measured = 0;
};

std::string tuned_pipeline(const std::string& tuning, unsigned frames = 2) {
  return "videotestsrc num-buffers=" + std::to_string(frames) +
         " ! video/x-raw,format=NV12,width=64,height=48 ! clinfer name=c model=" +
         testing_models::color_model() +
         " labels=blue,green,red config=\"TUNING_DB=NO,TUNING_SECONDS=1\" " + tuning +
         " ! fakesink";
}

// Plays to the end or an error.
Heard play_tuned(const std::string& tuning) {
  Pipeline pipeline(tuned_pipeline(tuning));
  GstBus* bus = gst_element_get_bus(pipeline.element);
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  Heard heard;
  for (bool over = false; !over;) {
    GstMessage* message = gst_bus_timed_pop(bus, kPatience);
    if (!message) {
      ADD_FAILURE() << "the pipeline hangs";
      break;
    }
    GstProgressType type{};
    GError* error = nullptr;
    switch (GST_MESSAGE_TYPE(message)) {
      case GST_MESSAGE_EOS:
        over = true;
        break;
      case GST_MESSAGE_ERROR:
        gst_message_parse_error(message, &error, nullptr);
        heard.error = error->message;
        g_error_free(error);
        over = true;
        break;
      case GST_MESSAGE_WARNING:
        gst_message_parse_warning(message, &error, nullptr);
        heard.warnings += std::string(error->message) + "\n";
        g_error_free(error);
        break;
      case GST_MESSAGE_INFO:
        gst_message_parse_info(message, &error, nullptr);
        heard.infos += std::string(error->message) + "\n";
        g_error_free(error);
        break;
      case GST_MESSAGE_PROGRESS:
        gst_message_parse_progress(message, &type, nullptr, nullptr);
        heard.completed += type == GST_PROGRESS_TYPE_COMPLETE;
        break;
      case GST_MESSAGE_ELEMENT:
        if (gst_message_has_name(message, "clinfer-tuning")) {
          guint layers = 0;
          EXPECT_TRUE(
              gst_structure_get_uint(gst_message_get_structure(message), "layers", &layers));
          EXPECT_GT(layers, 0u);
          ++heard.tuning;
        }
        break;
      default:
        break;
    }
    gst_message_unref(message);
  }
  const Handle<GstElement> clinfer = pipeline.find("c");
  const Handle<GstStructure> stats = stats_of(clinfer.get());
  gst_structure_get_uint(stats.get(), "tuning-hits", &heard.hits);
  gst_structure_get_uint(stats.get(), "tuning-misses", &heard.misses);
  if (gst_structure_get_uint(stats.get(), "tuning-measured", &heard.measured)) {
    guint taken_back = 0, modelled = 0;
    EXPECT_TRUE(gst_structure_get_uint(stats.get(), "tuning-modelled", &modelled));
    EXPECT_LE(modelled, heard.misses);
    gdouble gain = -1;
    EXPECT_TRUE(gst_structure_get_uint(stats.get(), "tuning-taken-back", &taken_back));
    EXPECT_TRUE(gst_structure_get_double(stats.get(), "tuning-gain", &gain));
    EXPECT_LE(taken_back, heard.measured);
    EXPECT_GE(gain, 0);
  }
  gst_object_unref(bus);
  return heard;
}

TEST(ElementTuning, CreateFillsTheFileThatUseExistingReads) {
  const TemporaryFolder folder;
  const std::string file = " tuning-file=" + (folder / "t.json");
  const Heard created = play_tuned("tuning-mode=create" + file);
  EXPECT_EQ(created.error, "");
  EXPECT_EQ(created.completed, 1u);
  EXPECT_GT(created.tuning, 0u);
  EXPECT_GT(created.measured, 0u);
  EXPECT_TRUE(std::filesystem::exists(folder / "t.json"));
  const Heard used = play_tuned("tuning-mode=use-existing" + file);
  EXPECT_EQ(used.error, "");
  EXPECT_EQ(used.tuning, 0u);
  EXPECT_EQ(used.hits, created.measured);
}

TEST(ElementTuning, SaysOnceThatRecordsOfAnotherVersionAreNotUsed) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json", file = " tuning-file=" + path;
  ASSERT_GT(play_tuned("tuning-mode=create" + file).measured, 0u);
  EXPECT_EQ(play_tuned("tuning-mode=use-existing" + file).infos, "");
  std::string text = read_file(path);
  const std::string version = "\"family_version\": ";
  for (size_t at = 0; (at = text.find(version, at)) != text.npos; at += version.size())
    text.insert(at + version.size(), "9");
  folder.write("t.json", text);
  const Heard heard = play_tuned("tuning-mode=use-existing" + file);
  EXPECT_EQ(heard.hits, 0u);
  EXPECT_EQ(heard.error, "");
  EXPECT_NE(heard.infos.find("t.json are outdated and not used"), std::string::npos) << heard.infos;
  EXPECT_NE(heard.infos.find("measured with version 9"), std::string::npos) << heard.infos;
  EXPECT_EQ(heard.infos.find("outdated"), heard.infos.rfind("outdated")) << "it is said once";
}

TEST(ElementTuning, SaysWhatIsWrongWithTheFile) {
  const TemporaryFolder folder;
  EXPECT_NE(play_tuned("tuning-mode=use-existing tuning-file=" + (folder / "none.json"))
                .error.find("none.json"),
            std::string::npos);
  EXPECT_NE(play_tuned("tuning-mode=create").error.find("tuning-file"), std::string::npos);
  const std::string file = folder.write("t.json", "[1]");
  EXPECT_NE(play_tuned("tuning-mode=create tuning-file=" + file).error.find("not a JSON object"),
            std::string::npos);
  EXPECT_EQ(read_file(file), "[1]");
}

TEST(ElementTuning, EmptyFilesAreNewOnes) {
  const TemporaryFolder folder;
  for (const char* content : {"", "\n"}) {
    const std::string file = folder.write("t.json", content);
    const Heard created = play_tuned("tuning-mode=create tuning-file=" + file);
    EXPECT_EQ(created.error, "");
    EXPECT_GT(created.measured, 0u);
    EXPECT_EQ(created.warnings.find("another engine"), std::string::npos) << created.warnings;
    EXPECT_EQ(TuningCache::read(file).records().size(), created.measured);
  }
}

TEST(ElementTuning, FilesOfAnotherEngineAreKeptAndExtended) {
  const TemporaryFolder folder;
  const std::string file = folder.write("t.json", test::kFileOfAnotherEngine);
  const Heard created = play_tuned("tuning-mode=create tuning-file=" + file);
  const Heard used = play_tuned("tuning-mode=use-existing tuning-file=" + file);
  for (const Heard& heard : {created, used}) {
    EXPECT_EQ(heard.error, "");
    EXPECT_NE(heard.warnings.find("t.json: 3 records are of another engine"), std::string::npos)
        << heard.warnings;
  }
  EXPECT_GT(created.measured, 0u);
  EXPECT_EQ(used.hits, created.measured);
  test::expect_kept(file);
}

TEST(ElementTuning, TheBatchOnAutoIsTheFiles) {
  const TemporaryFolder folder;
  Config config;
  config.tuning_mode = TuningMode::use_existing;
  config.tuning_file = folder / "t.json";
  update_tuning_file(config.tuning_file, [](TuningCache&) {});
  const auto batch = [&] {
    Harness harness(Harness::clinfer_launch(
        "batch-size=0 throughput-streams=0 tuning-mode=use-existing tuning-file=" +
        config.tuning_file));
    harness.set_caps("NV12", 64, 48);
    for (int i = 0; i < 7; ++i) EXPECT_EQ(harness.push(i % 2 ? kRed : kBlue, i), GST_FLOW_OK);
    gst_harness_push_event(harness.get(), gst_event_new_eos());
    for (int i = 0; i < 7; ++i) EXPECT_EQ(answer_of(harness.pull().get()), i % 2 ? "red" : "blue");
    const Handle<GstStructure> stats = stats_of(harness.clinfer());
    guint images = 0, requests = 0;
    gst_structure_get_uint(stats.get(), "batch-size", &images);
    gst_structure_get_uint(stats.get(), "nireq", &requests);
    return std::pair{images, requests};
  };
  EXPECT_EQ(batch().first, 1u) << "the file says nothing";
  const auto model = Model::read(testing_models::color_model());
  store_pipeline(*model, config, list_devices().devices.at(0), {1, 5, 3, 100}, true);
  EXPECT_EQ(batch(), (std::pair{3u, 5u}));
}

TEST(ElementTuning, AStateChangeStopsItSoon) {
  const TemporaryFolder folder;
  Pipeline pipeline(tuned_pipeline("tuning-mode=retune tuning-file=" + (folder / "t.json"), 100));
  GstBus* bus = gst_element_get_bus(pipeline.element);
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  for (;;) {
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, kPatience,
        static_cast<GstMessageType>(GST_MESSAGE_ELEMENT | GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(GST_MESSAGE_TYPE(message), GST_MESSAGE_ELEMENT)
        << "it was over before it could be stopped";
    const bool tuning = GST_MESSAGE_TYPE(message) != GST_MESSAGE_ELEMENT ||
                        gst_message_has_name(message, "clinfer-tuning");
    gst_message_unref(message);
    if (tuning) break;
  }
  const auto begin = std::chrono::steady_clock::now();
  gst_element_set_state(pipeline.element, GST_STATE_NULL);
  // A second on an idle machine.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  gst_object_unref(bus);
}

}  // namespace
}  // namespace clinfer
