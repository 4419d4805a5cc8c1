// Models that the application has in memory: by properties, and asked for by the signal load-model.
#include <gst/gst.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/gst/harness.h"
#include "tests/says.h"

namespace clinfer {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

GBytes* bytes_of(const std::string& text) { return g_bytes_new(text.data(), text.size()); }

std::string weights_of(const std::string& xml) {
  return std::filesystem::path(xml).replace_extension(".bin").string();
}

void set_bytes(GstElement* element, const char* property, const std::string& text) {
  GBytes* const bytes = bytes_of(text);
  g_object_set(element, property, bytes, nullptr);
  g_bytes_unref(bytes);
}

// The application's answers by path, and what it was asked for.
struct Safe {
  std::map<std::string, std::string> content;
  std::vector<std::string> asked;
};

GBytes* unlock(GstElement*, const gchar* path, gpointer user) {
  auto& safe = *static_cast<Safe*>(user);
  safe.asked.push_back(path);
  const auto found = safe.content.find(path);
  return found == safe.content.end() ? nullptr : bytes_of(found->second);
}

// Frames of one colour through clinfer, which has not started yet.
class Frames {
 public:
  Frames(const std::string& properties, const char* argb)
      : pipeline_(
            "videotestsrc pattern=solid-color num-buffers=2 foreground-color=" + std::string(argb) +
            " ! video/x-raw,format=BGR,width=64,height=48"
            " ! clinfer name=c first-tier=false labels=blue,green,red " +
            properties + " ! appsink name=out sync=false"),
        clinfer_(pipeline_.find("c")) {}
  GstElement* clinfer() const { return clinfer_.get(); }
  // The answer to the first frame, and the name of the model that gave it.
  std::pair<std::string, std::string> answer() {
    gst_element_set_state(pipeline_.element, GST_STATE_PLAYING);
    const Handle<GstElement> out = pipeline_.find("out");
    GstSample* sample = nullptr;
    g_signal_emit_by_name(out.get(), "pull-sample", &sample);
    if (sample == nullptr) return {error_on(pipeline_.element), ""};
    GstBuffer* const buffer = gst_sample_get_buffer(sample);
    const auto results = read_results(buffer);
    std::pair<std::string, std::string> answer{answer_of(buffer),
                                               results.empty() ? "" : results[0].model};
    gst_sample_unref(sample);
    return answer;
  }

 private:
  Pipeline pipeline_;
  const Handle<GstElement> clinfer_;
};

using Answer = std::pair<std::string, std::string>;
constexpr const char *kGreenFrame = "0xff00ff00", *kRedFrame = "0xffff0000";

TEST(ModelData, IsTheModelWithoutAFile) {
  const std::string xml = testing_models::color_model();
  Frames frames("", kGreenFrame);
  set_bytes(frames.clinfer(), "model-data", content_of(xml));
  set_bytes(frames.clinfer(), "model-weights", content_of(weights_of(xml)));
  GBytes* given = nullptr;
  g_object_get(frames.clinfer(), "model-data", &given, nullptr);
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(g_bytes_get_size(given), content_of(xml).size());
  g_bytes_unref(given);
  EXPECT_EQ(frames.answer(), (Answer{"green", "model-data"}));
}

// The property model names no file then.
TEST(ModelData, HasTheNameThatModelGives) {
  const std::string xml = testing_models::color_model();
  Frames frames("model=secret.xml", kRedFrame);
  set_bytes(frames.clinfer(), "model-data", content_of(xml));
  set_bytes(frames.clinfer(), "model-weights", content_of(weights_of(xml)));
  EXPECT_EQ(frames.answer(), (Answer{"red", "secret"}));
}

TEST(ModelData, IsAskedForOnce) {
  const std::string xml = testing_models::color_model();
  Safe safe;
  safe.content = {{"locked.xml", content_of(xml)}, {"locked.bin", content_of(weights_of(xml))}};
  Frames frames("model=locked.xml", kGreenFrame);
  g_signal_connect(frames.clinfer(), "load-model", G_CALLBACK(unlock), &safe);
  EXPECT_EQ(frames.answer(), (Answer{"green", "locked"}));
  EXPECT_EQ(safe.asked, (std::vector<std::string>{"locked.xml", "locked.bin"}));
}

TEST(ModelData, IsReadFromTheFileWhereNobodyHasIt) {
  const std::string xml = testing_models::color_model();
  Safe safe;
  Frames frames("model=" + xml, kRedFrame);
  g_signal_connect(frames.clinfer(), "load-model", G_CALLBACK(unlock), &safe);
  EXPECT_EQ(frames.answer().first, "red");
  EXPECT_EQ(safe.asked, std::vector<std::string>{xml});
}

TEST(ModelData, IsRefusedByItsName) {
  Pipeline pipeline("videotestsrc num-buffers=1 ! clinfer name=c model=mine.xml ! fakesink");
  const Handle<GstElement> element = pipeline.find("c");
  set_bytes(element.get(), "model-data", "<net name=\"x\" version=\"11\">");
  EXPECT_EQ(gst_element_set_state(pipeline.element, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  const std::string error = error_on(pipeline.element);
  EXPECT_TRUE(test::says(error, "mine.xml")) << error;
}

}  // namespace
}  // namespace clinfer
