// From a video frame to a network input: the description that the device kernel, its reference
// implementation in plain C++ and the elements share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/tensor.h"
#include "kernels/kernel.h"

namespace clinfer {

// Memory layouts of video frames, by GStreamer's names. x: unused byte, a: alpha (ignored). Samples
// have 8 bits, except in p010 (laid out as nv12) and i420_10 (as i420): these have 10 bits in two
// bytes, little endian, p010 in the upper bits and i420_10 in the lower ones.
enum class PixelFormat {
  nv12,
  nv21,
  i420,
  yv12,
  yuy2,
  uyvy,
  rgb,
  bgr,
  rgbx,
  bgrx,
  xrgb,
  xbgr,
  gray8,
  nv16,
  y42b,
  y444,
  p010,
  i420_10
};

// From Y'CbCr to RGB; ignored for RGB formats. range: video (16..235) or full.
enum class YuvMatrix { bt601, bt709, bt2020 };

struct Rect {
  int x = 0, y = 0, width = 0, height = 0;
};

// Makes a stored picture upright: rows become columns if `transpose`, then left and right, top and
// bottom of that are exchanged.
struct Orientation {
  bool transpose = false, mirror_x = false, mirror_y = false;
  bool operator==(const Orientation&) const = default;
};

// A frame in host memory. Planes that the format lacks are null. Strides are in bytes and at least
// the row's bytes. Chroma of odd sizes is rounded up: width 5 has 3 chroma columns.
struct Frame {
  PixelFormat format = PixelFormat::nv12;
  int width = 0, height = 0;  // of the picture, in pixels
  std::array<const uint8_t*, 3> planes{};
  std::array<int, 3> strides{};
  YuvMatrix matrix = YuvMatrix::bt601;
  bool full_range = false;
  Rect region;              // the part of the picture to take; width 0: all of it
  Orientation orientation;  // the network gets the picture upright
};

// How Y'CbCr becomes RGB. exact: by the matrix and range of the frame, rounded to 8 bits once.
// videoconvert: with the 8-bit coefficients of GStreamer's videoconvert, to the bit.
enum class ColorArithmetic { exact, videoconvert };

enum class ResizeMode { stretch, letterbox, crop };
enum class ColorOrder { bgr, rgb, gray };

// The network receives (value - mean[c]) / scale[c], with values 0..255 and c in network channel
// order.
struct FrameTransform {
  ResizeMode resize = ResizeMode::stretch;
  ColorOrder color = ColorOrder::bgr;
  std::vector<float> mean{0}, scale{1};  // one, or one per channel
  float pad_value = 0;   // 0..255, around a letterboxed picture (before mean and scale)
  bool centered = true;  // letterbox: picture in the middle, else at the top left
  bool nhwc = false;     // the input's logical shape is [N,H,W,C], not [N,C,H,W]
  ColorArithmetic color_arithmetic = ColorArithmetic::exact;
};

// The mapping between the picture and the network's input: frame_x = (x - left) * x_scale +
// origin_x, with x in network input pixels (continuous coordinates: pixel i covers [i, i+1));
// likewise for y. Where the picture is transposed, the network's y counts for frame_x, its x for
// frame_y; where it is mirrored, a scale is negative.
struct Placement {
  float left = 0, top = 0;           // network pixels
  float x_scale = 1, y_scale = 1;    // frame pixels per network pixel
  float origin_x = 0, origin_y = 0;  // frame pixels
  bool transposed = false;
};

// Computes the placement of the picture for a network input of width x height.
Placement placement_of(const Frame& frame, const FrameTransform& transform, int width, int height);

// One plane of a frame on the device: the number of its Argument input, and its layout there.
struct DevicePlane {
  int offset = 0;  // bytes
  int stride = 0;  // bytes
};

// Bytes and rows of each plane of a frame (rows x row bytes), for uploads.
struct PlaneSize {
  int rows = 0, row_bytes = 0;
  // The bytes from the first to the last, with rows `stride` bytes apart.
  int64_t bytes(int stride) const { return int64_t{stride} * (rows - 1) + row_bytes; }
};
std::array<PlaneSize, 3> plane_sizes(const Frame& frame);

// For each plane, the rows that the part of the frame's region inside the picture needs; none for
// planes that the format lacks. Throws Error{bad_argument} if the region lies outside the picture.
struct PlaneRows {
  int first = 0, count = 0;
};
std::array<PlaneRows, 3> rows_of_region(const Frame& frame);

// Makes the launch that fills image `image` of `out` (logical [N,C,H,W] or [N,H,W,C] by
// transform.nhwc; any strides; f32, f16, u8, i8 or i32) from the planes, which are Argument inputs
// 0..2 (u8; only those that the format has are used). planes[i].offset counts from the input's
// first element. Colours follow transform.color_arithmetic (chroma: the sample that covers the
// pixel); resizing is bilinear as OpenCV's INTER_LINEAR on 8-bit images (half-pixel centres, no
// antialias, edges clamped to the region). With 1 channel the result is gray, for any colour order.
// Throws Error{bad_argument} for impossible values (region outside the picture, scale 0, channels
// other than 1 or 3, sizes).
KernelPlan plan_preprocess(const Frame& frame, const std::array<DevicePlane, 3>& planes,
                           const FrameTransform& transform, const TensorDesc& out, int image,
                           const TuningPoint& point);

// Makes the launch for an NV12 picture in a surface: Argument images 0 (Y: 8-bit UNORM, one
// component) and 1 (UV: two components, half the size rounded up), which may be larger than the
// picture. Ignores planes and strides of `frame`.
KernelPlan plan_surface_preprocess(const Frame& frame, const FrameTransform& transform,
                                   const TensorDesc& out, int image, const TuningPoint& point);

// The kind of a picture determines the machine code: pictures of one kind that fill inputs of one
// shape share a tuning point.
enum class PictureKind { yuv, rgb, surface };
PictureKind kind_of(PixelFormat format);  // of frames in buffers

// Preprocessing as an operation to be tuned: a typical picture of a kind (HD, in planes that are
// Arguments as above) to image 0 of `out`. Its key contains only the kind and `out`. Returns
// nothing for inputs that are not pictures.
std::optional<OpDesc> preprocess_op(PictureKind kind, const TensorDesc& out);
PictureKind kind_of(const OpDesc& desc);  // of an operation from preprocess_op()
Frame typical_picture(PictureKind kind);  // without planes
extern const KernelFamily kPreprocessFamily;

// Reference implementation in plain C++ of plan_preprocess(): writes [1,C,H,W] or [1,H,W,C] floats.
Tensor evaluate_preprocess(const Frame& frame, const FrameTransform& transform, int width,
                           int height, int channels);

}  // namespace clinfer
