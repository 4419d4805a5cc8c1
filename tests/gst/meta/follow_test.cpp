// Results that follow the picture, without a network (tests/gst/publish/lines.py does the same in lines of
// gst-launch).
#include "gst/meta/follow.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/gst/harness.h"
#include "tests/gst/result_frames.h"

namespace clinfer {
namespace {

// Elements after one that frames with results leave as they leave clinfer.
class Followed {
 public:
  explicit Followed(const std::string& elements) : harness_("identity name=first ! " + elements) {
    register_result_meta();
    harness_.set_caps("GRAY8", kFrameWidth, kFrameHeight);
    const Handle<GstElement> first(gst_harness_find_element(harness_.get(), "identity"));
    const Handle<GstPad> source(gst_element_get_static_pad(first.get(), "src"));
    for (int i = 0; i < 2; ++i) follow_results(source.get());  // also again, after changes
  }
  void tag(const char* orientation) {
    gst_harness_push_event(harness_.get(), gst_event_new_tag(gst_tag_list_new(
                                               GST_TAG_IMAGE_ORIENTATION, orientation, nullptr)));
  }
  // The corners of an object that is at (100, 80) to (160, 120) before; none where it is gone.
  std::vector<int> corners() {
    const auto pushed =
        gst_harness_push(harness_.get(), frame_with(number_++, {box(100, 80, 160, 120)}).release());
    EXPECT_EQ(pushed, GST_FLOW_OK);
    const Handle<GstBuffer> out = harness_.pull();
    const Handle<GstPad> pad(gst_element_get_static_pad(harness_.get()->element, "src"));
    const Handle<GstCaps> caps(gst_pad_get_current_caps(pad.get()));
    GstVideoInfo info;
    EXPECT_TRUE(gst_video_info_from_caps(&info, caps.get()));
    const auto regions =
        read_frame(out.get(), GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info)).regions;
    if (regions.empty()) return {};
    EXPECT_EQ(regions.size(), 1u);
    const RegionView& r = regions[0];
    return {r.x, r.y, r.x + r.width, r.y + r.height};
  }

 private:
  Harness harness_;
  int number_ = 0;
};

using Corners = std::vector<int>;

TEST(Follow, CropsAndBoxes) {
  EXPECT_EQ(Followed("videocrop left=40 top=20 right=10").corners(), (Corners{60, 60, 120, 100}));
  EXPECT_EQ(
      Followed("videocrop left=-1 right=-1 ! capsfilter caps=video/x-raw,width=300").corners(),
      (Corners{90, 80, 150, 120}));
  EXPECT_EQ(
      Followed(
          "videocrop left=5 right=-1 top=-1 ! capsfilter caps=video/x-raw,width=300,height=200")
          .corners(),
      (Corners{95, 40, 155, 80}));
  EXPECT_EQ(Followed("videobox left=-20 top=10").corners(), (Corners{120, 70, 180, 110}));
  EXPECT_EQ(Followed("videocrop left=200").corners(), Corners{}) << "it is cropped away";
}

TEST(Follow, Turns) {
  const std::pair<const char*, Corners> methods[] = {
      {"180", {160, 120, 220, 160}},  {"90r", {120, 100, 160, 160}},
      {"90l", {80, 160, 120, 220}},   {"horiz", {160, 80, 220, 120}},
      {"vert", {100, 120, 160, 160}}, {"ul-lr", {80, 100, 120, 160}},
      {"ur-ll", {120, 160, 160, 220}}};
  for (const auto& [method, wanted] : methods)
    EXPECT_EQ(Followed(std::string("videoflip video-direction=") + method).corners(), wanted)
        << method;
}

TEST(Follow, TurnsByTags) {
  Followed tagged("videoflip video-direction=auto");
  EXPECT_EQ(tagged.corners(), (Corners{100, 80, 160, 120}));
  tagged.tag("rotate-180");
  EXPECT_EQ(tagged.corners(), (Corners{160, 120, 220, 160}));
}

// The first one marks its part of the frame, the second one copies from that.
TEST(Follow, CropsInARow) {
  EXPECT_EQ(Followed("videocrop left=40 ! videocrop top=20").corners(),
            (Corners{60, 60, 120, 100}));
  EXPECT_EQ(Followed("videocrop left=40 top=8 ! videocrop left=10 top=20 ! videocrop right=4 top=1")
                .corners(),
            (Corners{50, 51, 110, 91}));
}

// A converter scales what was put on the frame before, and adds nothing to it.
TEST(Follow, ConvertersAfterwards) {
  for (const char* element : {"videocrop left=40 top=20", "videobox left=40 top=20"})
    for (const char* converter :
         {"videoscale ! capsfilter caps=video/x-raw,width=140,height=110",
          "videoscale ! capsfilter caps=video/x-raw,width=280,height=220 ! videoscale ! "
          "videoconvert ! capsfilter caps=video/x-raw,format=NV12,width=140,height=110"})
      EXPECT_EQ(Followed(std::string(element) + " ! " + converter).corners(),
                (Corners{30, 30, 60, 50}))
          << element << " ! " << converter;
}

TEST(Follow, ThroughBinsQueuesAndBranches) {
  EXPECT_EQ(
      Followed("queue ! ( videocrop left=40 ! queue ) ! ( queue ! videocrop top=20 )").corners(),
      (Corners{60, 60, 120, 100}));
  EXPECT_EQ(Followed("tee name=t ! queue ! fakesink async=false t. ! ( videocrop left=40 top=20 )")
                .corners(),
            (Corners{60, 60, 120, 100}));
}

}  // namespace
}  // namespace clinfer
