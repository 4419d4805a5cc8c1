// The inputs of a request. An input, or an image of it, stays set until it is set anew: tensors
// and frames of the host by their values, which are copied once, memory of the device by what it holds when
// an inference starts.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/ocl/host_memory.h"
#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/frames/lost_images.h"
#include "engine/runtime/request_work.h"
#include "engine/runtime/tensor_copy.h"

namespace clinfer {

class RequestInputs {
 public:
  explicit RequestInputs(RequestWork& work);

  // As the functions of InferRequest and of engine/opencl.h. They throw cl::Error, too.
  void set_tensor(size_t index, const Tensor& value);
  std::span<std::byte> memory(size_t index);
  void set_buffer(size_t index, const cl::Buffer& buffer, size_t offset, const cl::Event& ready);
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory);
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform, size_t image);
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image);
  Placement set_image(size_t index, const cl::Image2D& image, const FrameTransform& transform,
                      size_t image_in_batch);

  // As opencl::explain(), of inputs.
  std::vector<std::string> explain() const;

  // Before an inference of so many images (0: all): turns planes into pictures. Throws Error{bad_argument}
  // where an image is not there, so that no inference takes an earlier one instead.
  void begin(size_t images);
  // Whether the next inference needs OpenCL's queue, since graphs know memory of the host alone.
  bool need_queue() const;
  // Copies the inputs that the next inference does not overwrite into the memory that it uses. The stream
  // is locked.
  void take_along(const RequestMemory& before);
  // Gives the device all that the next inference reads. Locks the stream.
  void enqueue();
  // An inference was broken off: frames that the device has not got are gone.
  void abandon();
  // Hands over what work in flight may still use.
  std::shared_ptr<void> leave();

 private:
  // An input given by the host: its bytes as the plan stores them, to be uploaded by the next
  // start().
  struct HostInput {
    std::vector<std::byte> bytes;
    bool dirty = false;
    // Of memory(), as the port states the input; whether it counts.
    std::shared_ptr<ocl::HostMemory> memory;
    bool from_memory = false;
  };
  // An input in a buffer of the application, which each start() copies.
  struct DeviceInput {
    cl::Buffer buffer;
    size_t offset = 0;
    cl::Event ready;  // which the next copy waits for; or none
    std::unique_ptr<TensorCopy> copy;
    bool bound = false;    // else another function has set the input since
    bool pending = false;  // for the next start(), also where images of the input were set since
  };
  // An image of an input, made of a picture in memory of the host or of the device.
  struct Picture {
    DeviceFrame input;
    // Where it lies on the device; expired: the application has released it.
    std::weak_ptr<ImportedSurface> surface;
    std::array<std::weak_ptr<ImportedMemory>, 3> memories;
    cl::Image2D image;
    std::shared_ptr<ocl::ExternalMemory> image_copy;  // of `image`, which kernels read
    bool on_device = false;  // one of these counts, and is read again by each start()
    bool due = false;        // read by the next start(), where that computes the image
  };
  using Place = LostImages::Place;  // of the network

  size_t network_input(size_t index) const;  // of an index into the model's inputs()
  size_t tensor_input(size_t index) const;   // the same, of an input that is no plane
  const TensorDesc& stored_input(size_t target) const;
  size_t images_in(size_t target, bool nhwc) const;
  // Whether the next inference computes the image.
  bool is_wanted(const Place& place, bool nhwc) const;
  bool reads_now(const Place& place, const Picture& picture) const;
  bool is_set_anew(size_t target) const;
  // Forgets earlier values of an input.
  void replace_input(size_t target);
  // Prepares for an image of an input: others keep what the input was set to before.
  void keep_other_images(size_t target, size_t images);
  void convert_memory(size_t target);
  bool is_stored_as_given(size_t target) const;
  Placement set_picture(size_t target, const Frame& frame, DeviceFrame::Source source,
                        const std::array<int, 3>& offsets, const FrameTransform& transform,
                        size_t image);
  void prepare(DeviceFrame& input);
  void upload();  // the stream is locked
  // Copies pending frames and launches their kernels.
  void enqueue_frames();
  // Enqueues the kernels of a picture on the device. Throws Error{bad_argument} where it is gone.
  void read_surface(Picture& picture);
  void read_memory(Picture& picture);
  void read_again(const Place& place, Picture& picture);
  void set_on_device(const Place& place, Picture& picture);
  // Enqueues them after `acquired`; returns the event of the last one.
  cl::Event enqueue_kernels(DeviceFrame& input, const cl::Event& acquired);

  RequestWork& work_;
  const DeviceNetwork& network_;
  std::vector<HostInput> host_;
  std::map<size_t, DeviceInput> device_;  // by input of the network
  std::map<Place, Picture> pictures_;
  LostImages lost_;       // frames of an inference that never began
  PicturePlanes planes_;  // with NV12_TWO_INPUTS
  size_t images_ = 0;     // of the next inference; 0: all
  // Whether OpenCL has work for the next inference, from set_surface() and set_memory().
  bool given_to_queue_ = false;
};

}  // namespace clinfer
