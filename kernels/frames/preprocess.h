// Turns video frames into a network's input. This is the description that the device kernel, its
// reference implementation in plain C++ and the elements share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/tensor.h"
#include "kernels/frames/frame.h"
#include "kernels/kernel.h"

namespace clinfer {

// The layout of one plane of a frame on the device. Its number is that of its Argument input.
struct DevicePlane {
  int offset = 0;  // bytes
  int stride = 0;  // bytes
};

// Returns for each plane the rows that the part of the frame's region inside the picture needs;
// none for planes that the format lacks. Throws Error{bad_argument} if the region lies outside the
// picture. A turned region needs the rows that it touches, and the outermost ones where it reaches
// beyond the picture.
struct PlaneRows {
  int first = 0, count = 0;
};
std::array<PlaneRows, 3> rows_of_region(const Frame& frame);

// Makes the launch that fills image `image` of `out` (logical [N,C,H,W] or [N,H,W,C] by
// transform.nhwc; any strides; f32, f16, u8, i8 or i32) from the planes, which are Argument inputs
// 0..2 (u8; only those that the format has are used). planes[i].offset counts from the input's
// first element. Colours follow transform.color_arithmetic (chroma: the sample that covers the
// pixel); resizing is bilinear as OpenCV's INTER_LINEAR on 8-bit images (half-pixel centres, no
// antialias, edges clamped to the region, or to the picture for a turned region). With 1 channel
// the result is gray, for any colour order. Throws Error{bad_argument} for impossible values
// (region outside the picture, scale 0, channels other than 1 or 3, sizes).
KernelPlan plan_preprocess(const Frame& frame, const std::array<DevicePlane, 3>& planes,
                           const FrameTransform& transform, const TensorDesc& out, int image,
                           const TuningPoint& point);

// Makes the launch for an NV12 picture in a surface: Argument images 0 (Y: 8-bit UNORM, one
// component) and 1 (UV: two components, half the size rounded up), which may be larger than the
// picture. Ignores planes and strides of `frame`.
KernelPlan plan_surface_preprocess(const Frame& frame, const FrameTransform& transform,
                                   const TensorDesc& out, int image, const TuningPoint& point);

// The kinds of pictures with different machine code. Pictures of one kind that fill inputs of one
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

// Computes what plan_preprocess() does, in plain C++, and returns [1,C,H,W] or [1,H,W,C] floats.
Tensor evaluate_preprocess(const Frame& frame, const FrameTransform& transform, int width,
                           int height, int channels);

}  // namespace clinfer
