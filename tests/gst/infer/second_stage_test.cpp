// Real second-stage networks on what a detector found in a video. Each region's result must be what
// the same network says of a frame cropped to that region.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using namespace std::chrono_literals;

std::string shared_folder() {
  const char* folder = std::getenv("CLINFER_SHARED");
  return folder != nullptr ? folder : "";
}

// "NAME" or "NAME PROPERTY=VALUE ...".
std::string name_in(const std::string& network) { return network.substr(0, network.find(' ')); }
std::string model(const std::string& network) {
  const std::string name = name_in(network);
#ifdef __SANITIZE_THREAD__
  const char* tier = "first-tier=false ";  // plain C++ is slow under it
#else
  const char* tier = "";
#endif
  return tier + ("model=" + shared_folder() + "/data/models/" + name + "/" + name + ".xml" +
                 network.substr(name.size()));
}

// Every number that `model` said: confidences, then tensors.
std::vector<float> numbers_of(const Answers& answers, const std::string& model) {
  std::vector<float> numbers;
  for (const ClassificationView& answer : answers.classifications) {
    if (answer.model != model) continue;
    numbers.push_back(static_cast<float>(answer.label_id));
    numbers.push_back(answer.confidence);
  }
  for (const TensorView& tensor : answers.tensors) {
    if (tensor.model != model || tensor.type != "f32") continue;
    const float* values = values_of<float>(tensor.data);
    numbers.insert(numbers.end(), values, values + count_of<float>(tensor.data));
  }
  return numbers;
}

// Runs `second` networks on the objects of `detector`, compares some frames with objects.
void compare(const std::string& video, const std::string& detector,
             const std::vector<std::string>& second, size_t objects_wanted) {
  const std::string file = shared_folder() + "/data/videos/" + video;
  if (shared_folder().empty() || !std::filesystem::exists(file)) GTEST_SKIP() << "no shared data";
  std::string launch = "filesrc location=" + file +
                       " ! decodebin ! videoconvert ! capsfilter caps=video/x-raw,format=NV12 ! " +
                       "clinfer threshold=0.5 " + detector;
  for (const std::string& name : second)
    launch +=
        " ! clinfer inference-region=roi-list batch-size=2 batch-timeout=0 nireq=2 " + model(name);
  Pipeline pipeline(launch +
                    " ! cloverlay name=overlay ! appsink name=sink sync=false "
                    "max-buffers=2");
  const Handle<GstElement> sink = pipeline.find("sink");
  const Handle<GstElement> overlay = pipeline.find("overlay");
  // Frames as they are before the overlay draws.
  static std::vector<Handle<GstBuffer>> frames;
  static GstVideoInfo info;
  frames.clear();
  GstPad* pad = gst_element_get_static_pad(overlay.get(), "sink");
  gst_pad_add_probe(
      pad, GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad* where, GstPadProbeInfo* probe, gpointer) {
        GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(probe);
        const Handle<GstCaps> caps(gst_pad_get_current_caps(where));
        gst_video_info_from_caps(&info, caps.get());
        if (gst_buffer_get_n_meta(buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) != 0)
          frames.emplace_back(gst_buffer_copy_deep(buffer));
        return GST_PAD_PROBE_OK;
      },
      nullptr, nullptr);
  gst_object_unref(pad);
  gst_element_set_state(pipeline.element, GST_STATE_PLAYING);
  size_t objects = 0;
  while (objects < objects_wanted) {
    GstSample* sample = nullptr;
    g_signal_emit_by_name(sink.get(), "try-pull-sample", kPatience, &sample);
    ASSERT_NE(sample, nullptr) << objects << " objects; " << error_on(pipeline.element, 0ms);
    objects += read_regions(gst_sample_get_buffer(sample), 1, 1).size();
    gst_sample_unref(sample);
  }
  gst_element_set_state(pipeline.element, GST_STATE_NULL);

  for (const std::string& name : second) {
    Harness alone("clinfer " + model(name));
    const Handle<char> colorimetry(gst_video_colorimetry_to_string(&info.colorimetry));
    alone.set_caps("NV12", GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info),
                   (std::string(",colorimetry=") + colorimetry.get()).c_str());
    size_t compared = 0;
    for (const Handle<GstBuffer>& frame : frames) {
      const std::vector<RegionView> regions =
          read_regions(frame.get(), GST_VIDEO_INFO_WIDTH(&info), GST_VIDEO_INFO_HEIGHT(&info));
      size_t index = 0;
      gpointer state = nullptr;
      while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
                 frame.get(), &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
        if (compared == objects_wanted) break;
        auto* roi = reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta);
        const std::vector<float> got = numbers_of(regions.at(index++), name_in(name));
        GstBuffer* cropped = gst_buffer_new();
        gst_buffer_copy_into(cropped, frame.get(), GST_BUFFER_COPY_MEMORY, 0,
                             static_cast<gsize>(-1));
        if (GstVideoMeta* video_meta = gst_buffer_get_video_meta(frame.get()))
          gst_buffer_add_video_meta_full(
              cropped, video_meta->flags, video_meta->format, video_meta->width, video_meta->height,
              video_meta->n_planes, video_meta->offset, video_meta->stride);
        GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(cropped);
        crop->x = roi->x, crop->y = roi->y, crop->width = roi->w, crop->height = roi->h;
        ASSERT_EQ(gst_harness_push(alone.get(), cropped), GST_FLOW_OK);
        const auto out = alone.pull();
        const std::vector<float> expected =
            numbers_of(read_results(out.get()).at(0), name_in(name));
        ASSERT_FALSE(got.empty()) << name;
        ASSERT_EQ(got.size(), expected.size()) << name;
        float largest = 0;
        for (float v : expected) largest = std::max(largest, std::fabs(v));
        for (size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], expected[i], 2e-3f * std::max(largest, 1e-3f)) << name << " " << i;
        ++compared;
      }
    }
    EXPECT_EQ(compared, objects_wanted) << name;
  }
  frames.clear();
}

TEST(SecondStage, FacesGetAgeLandmarksAndIdentity) {
  compare("head-pose-face-detection-female-and-male-preview.mp4",
          model("face-detection-retail-0004_FP32 labels=background,face"),
          {"age-gender-recognition-retail-0013_FP16-INT8",
           "landmarks-regression-retail-0009_FP32 post-process=none",
           "face-reidentification-retail-0095_FP16 post-process=none"},
          6);
}

TEST(SecondStage, VehiclesGetAttributes) {
  compare("car-detection.mp4", model("vehicle-detection-0200_FP16"),
          {"vehicle-attributes-recognition-barrier-0039_FP32"}, 4);
}

TEST(SecondStage, PersonsGetAttributesAndIdentity) {
  compare("one-by-one-person-detection.mp4", model("person-detection-retail-0013_FP32"),
          {"person-attributes-recognition-crossroad-0230_FP32 post-process=none",
           "osnet-x0_25-msmt17 post-process=none"},
          3);
}

}  // namespace
}  // namespace clinfer
