// Pictures that are stored turned or mirrored: the network sees them upright, by property or tag.
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

constexpr const char* kMethods[] = {"identity", "90r",  "180",   "90l",
                                    "horiz",    "vert", "ul-lr", "ur-ll"};
constexpr const char* kTags[] = {"rotate-0",        "rotate-90",      "rotate-180",
                                 "rotate-270",      "flip-rotate-0",  "flip-rotate-90",
                                 "flip-rotate-180", "flip-rotate-270"};

// A picture that is the same as no turned one of itself: each of its 6x4 blocks has its own grey.
GstBuffer* chequered(const GstVideoInfo& info) {
  GstBuffer* buffer = gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&info), nullptr);
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
  Canvas canvas(&frame, 0, 0, GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x) {
      const auto grey = static_cast<uint8_t>(20 + (y * 6 + x) * 37 % 210);
      canvas.fill(x * 16, y * 16, 16, 16, {grey, grey, grey});
    }
  gst_video_frame_unmap(&frame);
  GST_BUFFER_PTS(buffer) = 0;
  return buffer;
}

// The network's output for the picture through `elements`.
std::vector<float> seen_through(const std::string& elements, const char* format) {
  Harness harness(elements);
  harness.set_caps(format, 96, 64);
  EXPECT_EQ(gst_harness_push(harness.get(), chequered(harness.info())), GST_FLOW_OK);
  const auto buffer = harness.pull();
  if (buffer == nullptr) return {};
  const auto results = read_results(buffer.get());
  if (results.empty() || results[0].tensors.empty()) return {};
  const Bytes& data = results[0].tensors[0].data;
  return {values_of<float>(data), values_of<float>(data) + count_of<float>(data)};
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() && !a.empty() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

std::string network(const std::string& properties) {
  return "clinfer post-process=none color-format=gray model=" + testing_models::blocks_model() +
         " " + properties;
}

TEST(Orientation, ByPropertyTheNetworkSeesWhatVideoflipMakes) {
  for (const char* format : {"GRAY8", "I420", "BGRx"})
    for (const char* more : {"", " resize-mode=letterbox"})
      for (const std::string method : kMethods) {
        const auto own = seen_through(network("video-direction=" + method + more), format);
        const auto flipped =
            seen_through("videoflip video-direction=" + method + " ! " + network(more), format);
        EXPECT_LE(distance(own, flipped), 2.5) << method << " " << format << more;
        if (method != "identity") {
          EXPECT_GT(distance(own, seen_through(network(more), format)), 20) << method;
        }
      }
}

TEST(Orientation, ByTagsAsVideoflipTakesThem) {
  for (const std::string tag : kTags) {
    const std::string tagged = "taginject tags=image-orientation=" + tag + " ! ";
    const auto own = seen_through(tagged + network(""), "GRAY8");
    EXPECT_LE(distance(own, seen_through(tagged + "videoflip video-direction=auto ! " + network(""),
                                         "GRAY8")),
              2.5)
        << tag;
    EXPECT_LE(distance(seen_through(tagged + network("video-direction=identity"), "GRAY8"),
                       seen_through(network(""), "GRAY8")),
              0)
        << tag;
  }
}

struct Told {
  std::vector<float> seen;
  std::string info, warning;  // the first ones on the bus
  unsigned count = 0;
};

// The network's output for pictures whose meta has the matrix [a b; c d], which moves points around
// the picture's middle, x to the right and y up.
Told seen_with_meta(const std::string& elements, const std::array<float, 4>& matrix) {
  Told told;
  GstBus* bus = gst_bus_new();
  {
    Harness harness(elements);
    gst_element_set_bus(harness.clinfer(), bus);
    harness.set_caps("GRAY8", 96, 64);
    for (int i = 0; i < 2; ++i) {
      GstBuffer* buffer = chequered(harness.info());
      GstVideoAffineTransformationMeta* meta =
          gst_buffer_add_video_affine_transformation_meta(buffer);
      const auto [a, b, c, d] = matrix;
      // The second frame's points count from 0 to 1.
      const float x = i == 0 ? 0 : (1 - a - b) / 2, y = i == 0 ? 0 : (1 - c - d) / 2;
      const float whole[16] = {a, c, 0, 0, b, d, 0, 0, 0, 0, 1, 0, x, y, 0, 1};
      gst_video_affine_transformation_meta_apply_matrix(meta, whole);
      EXPECT_EQ(gst_harness_push(harness.get(), buffer), GST_FLOW_OK);
      const auto out = harness.pull();
      const Bytes data = read_results(out.get()).at(0).tensors.at(0).data;
      const std::vector<float> seen{values_of<float>(data),
                                    values_of<float>(data) + count_of<float>(data)};
      if (i == 1) {
        EXPECT_EQ(seen, told.seen);
      }
      told.seen = seen;
    }
    gst_element_set_bus(harness.clinfer(), nullptr);
  }
  while (GstMessage* message = gst_bus_pop_filtered(
             bus, static_cast<GstMessageType>(GST_MESSAGE_INFO | GST_MESSAGE_WARNING))) {
    GError* error = nullptr;
    const bool is_info = GST_MESSAGE_TYPE(message) == GST_MESSAGE_INFO;
    (is_info ? gst_message_parse_info : gst_message_parse_warning)(message, &error, nullptr);
    const std::string text = error->message;
    g_error_free(error);
    gst_message_unref(message);
    if (text.find("GstVideoAffineTransformationMeta") == std::string::npos) continue;
    (is_info ? told.info : told.warning) = text;
    ++told.count;
  }
  gst_object_unref(bus);
  return told;
}

TEST(Orientation, ByTheFramesMetaAsItIsShown) {
  // In the order of kMethods: clockwise takes what is above to the right, (x, y) to (y, -x).
  const std::array<float, 4> kMatrices[] = {{1, 0, 0, 1},   {0, 1, -1, 0}, {-1, 0, 0, -1},
                                            {0, -1, 1, 0},  {-1, 0, 0, 1}, {1, 0, 0, -1},
                                            {0, -1, -1, 0}, {0, 1, 1, 0}};
  for (size_t i = 0; i < std::size(kMethods); ++i) {
    const std::string method = kMethods[i];
    const Told own = seen_with_meta(network(""), kMatrices[i]);
    EXPECT_LE(distance(own.seen, seen_through(network("video-direction=" + method), "GRAY8")), 0)
        << method;
    EXPECT_EQ(own.count, i == 0 ? 0u : 1u) << method;
    EXPECT_EQ(own.info.empty(), i == 0) << method;
    // The property counts before the meta.
    EXPECT_LE(distance(seen_with_meta(network("video-direction=identity"), kMatrices[i]).seen,
                       seen_through(network(""), "GRAY8")),
              0)
        << method;
  }
}

TEST(Orientation, AMetaThatIsNoTurnIsToldOnce) {
  const Told scaled = seen_with_meta(network(""), {0.5f, 0, 0, 0.5f});
  EXPECT_LE(distance(scaled.seen, seen_through(network(""), "GRAY8")), 0);
  EXPECT_EQ(scaled.count, 1u);
  EXPECT_NE(scaled.warning.find("set video-direction"), std::string::npos) << scaled.warning;
  const Told both =
      seen_with_meta("taginject tags=image-orientation=rotate-90 ! " + network(""), {-1, 0, 0, 1});
  EXPECT_LE(distance(both.seen, seen_through(network("video-direction=90r"), "GRAY8")), 0);
  EXPECT_NE(both.warning.find("by the stream's tag"), std::string::npos) << both.warning;
}

TEST(Orientation, ANewStreamHasNoTagOfTheOldOne) {
  Harness harness(network(""));
  harness.set_caps("GRAY8", 96, 64);
  const auto next = [&] {
    EXPECT_EQ(gst_harness_push(harness.get(), chequered(harness.info())), GST_FLOW_OK);
    const auto buffer = harness.pull();
    const auto results = read_results(buffer.get());
    const Bytes& data = results.at(0).tensors.at(0).data;
    return std::vector<float>{values_of<float>(data),
                              values_of<float>(data) + count_of<float>(data)};
  };
  const auto upright = next();
  gst_harness_push_event(harness.get(), gst_event_new_tag(gst_tag_list_new(
                                            GST_TAG_IMAGE_ORIENTATION, "rotate-180", nullptr)));
  EXPECT_GT(distance(next(), upright), 20);
  gst_harness_push_event(harness.get(), gst_event_new_stream_start("another"));
  gst_harness_set_src_caps(harness.get(), gst_video_info_to_caps(&harness.info()));
  EXPECT_LE(distance(next(), upright), 0);
}

}  // namespace
}  // namespace clinfer
