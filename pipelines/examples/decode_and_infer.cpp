// Decodes by GStreamer and infers with the engine by itself, without the element: for applications that schedule, batch or
// interpret results on their own.
//
//   c++ -std=c++20 decode_and_infer.cpp -o decode_and_infer $(pkg-config --cflags --libs clinfer gstreamer-video-1.0)
//   ./decode_and_infer pipelines/models/ball.xml 'filesrc location=film.mp4 ! decodebin ! videoconvert'
//
// The model is a detector with rows of [image, class, confidence, x0, y0, x1, y1] (SSD), such as the bundled one.
#include <clinfer/engine.h>
#include <gst/video/video.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

// A frame of GStreamer's in host memory, mapped for as long as the object lives.
class MappedFrame {
 public:
  MappedFrame(GstSample* sample) {
    GstVideoInfo info;
    if (!gst_video_info_from_caps(&info, gst_sample_get_caps(sample)) ||
        !gst_video_frame_map(&mapped_, &info, gst_sample_get_buffer(sample), GST_MAP_READ))
      throw std::runtime_error("a frame cannot be read");
  }
  ~MappedFrame() { gst_video_frame_unmap(&mapped_); }
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  clinfer::Frame frame() const {
    clinfer::Frame frame;
    frame.format = clinfer::PixelFormat::nv12;
    frame.width = GST_VIDEO_FRAME_WIDTH(&mapped_);
    frame.height = GST_VIDEO_FRAME_HEIGHT(&mapped_);
    for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES(&mapped_); ++p) {
      frame.planes[p] = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&mapped_, p));
      frame.strides[p] = GST_VIDEO_FRAME_PLANE_STRIDE(&mapped_, p);
    }
    frame.matrix = mapped_.info.colorimetry.matrix == GST_VIDEO_COLOR_MATRIX_BT709
                       ? clinfer::YuvMatrix::bt709
                   : mapped_.info.colorimetry.matrix == GST_VIDEO_COLOR_MATRIX_BT2020
                       ? clinfer::YuvMatrix::bt2020
                       : clinfer::YuvMatrix::bt601;
    frame.full_range = mapped_.info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255;
    return frame;
  }

 private:
  GstVideoFrame mapped_;
};

void show(const clinfer::Tensor& rows, const clinfer::Frame& frame, int number) {
  const float* row = rows.data<float>();
  for (int64_t i = 0; i < rows.elements() / 7 && row[0] >= 0; ++i, row += 7)
    if (row[2] >= 0.5f)
      std::printf("frame %d: class %.0f, %.2f, at %.0f,%.0f\n", number, row[1], row[2],
                  (row[3] + row[5]) / 2 * frame.width, (row[4] + row[6]) / 2 * frame.height);
}

int run(const char* path, const std::string& source) {
  clinfer::Config config;
  config.set("GPU_THROUGHPUT_STREAMS", "1");
  const auto model = clinfer::CompiledModel::compile(clinfer::Model::read(path), config);
  for (const std::string& warning : model->warnings())
    std::fprintf(stderr, "%s\n", warning.c_str());
  const auto request = model->create_request();

  GError* error = nullptr;
  const std::unique_ptr<GstElement, decltype(&gst_object_unref)> pipeline(
      gst_parse_launch(
          (source +
           " ! capsfilter caps=video/x-raw,format=NV12 ! appsink name=out sync=false max-buffers=4")
              .c_str(),
          &error),
      gst_object_unref);
  if (error != nullptr) throw std::runtime_error(error->message);
  const std::unique_ptr<GstElement, decltype(&gst_object_unref)> out(
      gst_bin_get_by_name(GST_BIN(pipeline.get()), "out"), gst_object_unref);
  const std::unique_ptr<GstBus, decltype(&gst_object_unref)> bus(
      gst_element_get_bus(pipeline.get()), gst_object_unref);
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  GstMessage* failure = nullptr;
  for (int number = 0; failure == nullptr;) {
    GstSample* pulled = nullptr;
    g_signal_emit_by_name(out.get(), "try-pull-sample", guint64{GST_SECOND / 10}, &pulled);
    if (pulled == nullptr) {  // the end, an error, or none in this time
      failure = gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR);
      gboolean ended = FALSE;
      g_object_get(out.get(), "eos", &ended, nullptr);
      if (ended) break;
      continue;
    }
    const std::unique_ptr<GstSample, decltype(&gst_sample_unref)> sample(pulled, gst_sample_unref);
    const MappedFrame mapped(sample.get());
    const clinfer::Frame frame = mapped.frame();
    // Resized, converted to BGR and laid out by the device; the frame stays mapped until it is done.
    request->set_frame(0, frame, {});
    request->start();
    request->wait();
    show(request->output(0), frame, number++);
  }
  if (failure == nullptr) failure = gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR);
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  if (failure == nullptr) return 0;
  gst_message_parse_error(failure, &error, nullptr);
  gst_message_unref(failure);
  const std::string text = error->message;
  g_error_free(error);
  throw std::runtime_error(text);
}

}  // namespace

int main(int argc, char** argv) try {
  gst_init(&argc, &argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL.xml 'SOURCE ! ...'\n", argv[0]);
    return 2;
  }
  return run(argv[1], argv[2]);
} catch (const std::exception& error) {  // clinfer::Error is one
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
