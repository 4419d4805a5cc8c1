// Pictures as inputs. With NV12_TWO_INPUTS the picture input of a model becomes two inputs, Y and
// UV, for a picture of any size.
#pragma once

#include <array>
#include <vector>

#include "engine/engine.h"

namespace clinfer {

// Throws Error{bad_argument} unless input `index`, described by `port`, has this image, and the
// frame has pixels.
void check_image(size_t index, const Port& port, const Frame& frame,
                 const FrameTransform& transform, size_t image);

// The input that the planes replace, and how the picture is converted.
struct PictureInput {
  size_t index = 0;  // of the model's inputs
  FrameTransform transform;
  int64_t width = 0, height = 0;
};

// Returns the only input of rank 4 with 1 or 3 channels. Throws Error{unsupported} if there is none
// or more than one.
PictureInput find_picture(const std::vector<Port>& inputs);

// Returns `inputs` with NAME_Y and NAME_UV in place of the picture.
std::vector<Port> with_planes(const std::vector<Port>& inputs, const PictureInput& picture);

// The planes that a request was given. Not thread-safe.
class PicturePlanes {
 public:
  // Sets a plane (0: Y, 1: UV). Throws Error{bad_argument} unless `value` matches `port` in all but
  // height and width.
  void set(size_t plane, const Port& port, const Tensor& value);
  // Returns true if a plane was set since the last call of frame(), so that a picture has to be
  // made of both.
  bool pending() const { return pending_; }
  // Returns picture `image` of the batch, which refers to the planes' memory. Throws
  // Error{bad_argument} if a plane is missing or their sizes do not fit together.
  Frame frame(int64_t image);

 private:
  std::array<Tensor, 2> planes_;
  bool pending_ = false;
};

}  // namespace clinfer
