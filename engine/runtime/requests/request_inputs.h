// The inputs of a request. An input, or an image of it, stays set until it is set again. Tensors
// and frames of the host are copied when they are set; memory of the device is read when an
// inference starts.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/ocl/device_pointer.h"
#include "engine/ocl/host_memory.h"
#include "engine/runtime/frames/imported_planes.h"
#include "engine/runtime/frames/lost_images.h"
#include "engine/runtime/network/tensor_copy.h"
#include "engine/runtime/requests/request_work.h"
#include "engine/runtime/run/lent_memory.h"

namespace clinfer {

class RequestInputs {
 public:
  explicit RequestInputs(RequestWork& work);

  // Implement the functions of InferRequest and engine/opencl.h that set inputs. Throw cl::Error as
  // well.
  void set_tensor(size_t index, const Tensor& value);
  // Returns the tensor that set_tensor() has set, in the port's type. Throws Error{bad_argument} if
  // it is lost, with an inference that was broken off.
  Tensor value(size_t index) const;
  std::span<std::byte> memory(size_t index);
  void upload_again();
  void set_buffer(size_t index, const cl::Buffer& buffer, size_t offset, const cl::Event& ready);
  void set_host_memory(size_t index, void* data, size_t bytes);
  void set_pointer(size_t index, ocl::DevicePointer::Kind kind, void* data, size_t bytes,
                   const cl::Event& ready);
  Placement set_frame(size_t index, const Frame& frame, const FrameTransform& transform,
                      size_t image, const FrameMemory* memory);
  Placement set_surface(size_t index, const std::shared_ptr<ImportedSurface>& surface,
                        const Frame& picture, const FrameTransform& transform, size_t image);
  Placement set_memory(size_t index, const ImportedPlanes& planes, const Frame& picture,
                       const FrameTransform& transform, size_t image);
  Placement set_image(size_t index, const cl::Image2D& image, const FrameTransform& transform,
                      size_t image_in_batch);

  // Implements opencl::explain() for inputs.
  std::vector<std::string> explain() const;

  // Prepares an inference of `images` images (0: all) and turns planes into pictures. Throws
  // Error{bad_argument} if an image is missing, so that no inference computes an earlier one
  // instead.
  void begin(size_t images);
  // Returns whether the next inference needs OpenCL's queue. CUDA graphs read host memory, and
  // imported memory that CUDA can map.
  bool need_queue() const;
  // Notes the inputs that kernels of `sized` read in buffers of the application in the next
  // inference.
  void find_in_place(const SizedPlan& sized, InPlace::Wanted& wanted);
  // Copies the inputs that are not set anew from `before` into the memory that the next inference
  // uses. Needs the stream locked.
  void take_along(const RequestMemory& before);
  // Gives the device all that the next inference reads. Locks the stream.
  void enqueue();
  // Enqueues that host memory which was lent to the device goes back to the application. Needs the
  // stream locked.
  void take_back();
  // Forgets an inference that was broken off; frames that the device has not got are lost.
  void abandon();
  // Returns an owner of everything that work in flight may still use.
  std::shared_ptr<void> leave();

 private:
  // An input given by the host: its bytes as the plan stores them, in memory from which the device
  // copies at full speed, to be uploaded by the next start().
  struct HostInput {
    std::shared_ptr<ocl::HostMemory> stored;  // null until the input is first set
    bool dirty = false;
    // The memory that memory() returned, in the port's type and shape.
    std::shared_ptr<ocl::HostMemory> memory;
    // The memory that each start() reads: that one or the application's; null: neither.
    std::shared_ptr<ocl::HostMemory> from;
  };
  // An input in memory of the application, which each start() reads there or copies.
  struct DeviceInput {
    BoundBuffer memory;
    std::unique_ptr<LentMemory> lent;  // if that is host memory; may be null
    cl::Event ready;                   // event that the next copy waits for; may be none
    std::unique_ptr<TensorCopy> copy;
    bool bound = false;    // false: another function has set the input since
    bool pending = false;  // needed by the next start(), even if images of the input were set since
    bool in_place = false;  // the next inference reads it where it lies
  };
  // An image of an input, made of a picture in memory of the host or of the device.
  struct Picture {
    DeviceFrame input;
    // The memory on the device, of which one kind is set. Expired if the application has released
    // it.
    std::weak_ptr<ImportedSurface> surface;
    std::array<std::weak_ptr<ImportedMemory>, 3> memories;
    cl::Image2D image;
    std::shared_ptr<ocl::ExternalMemory> image_copy;  // of `image`; kernels read this copy
    bool on_device = false;  // the picture lies on the device, and each start() reads it again
    bool by_graph = false;   // CUDA read it last, so OpenCL is not needed
    bool due = false;        // the next start() reads it, if that computes the image
  };
  using Place = LostImages::Place;  // of the network's inputs

  std::string why_copied(const SizedPlan& sized, size_t target, const DeviceInput& input) const;
  size_t network_input(size_t index) const;  // converts an index into the model's inputs()
  size_t tensor_input(size_t index) const;   // the same, for an input that is no plane
  // Refuses what tensor_input() does, and memory of the application that does not hold the tensor.
  // Returns how many bytes it takes.
  size_t check_memory(size_t index, const void* data, size_t bytes) const;
  const TensorDesc& stored_input(size_t target) const;
  size_t images_in(size_t target, bool nhwc) const;
  // Returns whether the next inference computes the image.
  bool is_wanted(const Place& place, bool nhwc) const;
  bool reads_now(const Place& place, const Picture& picture) const;
  bool is_set_anew(size_t target) const;
  // Forgets earlier values of an input.
  void replace_input(size_t target);
  void take(size_t target, BoundBuffer memory, std::unique_ptr<LentMemory> lent,
            const cl::Event& ready);
  // Prepares for setting one image of an input: the other images keep the values that they have.
  void keep_other_images(size_t target, size_t images);
  // Stores a tensor of the input's shape as the plan has it.
  void store(size_t target, const Tensor& value);
  void convert_memory(size_t target);
  bool is_stored_as_given(size_t target) const;
  Placement set_picture(size_t target, const Frame& frame, DeviceFrame::Source source,
                        const std::array<int, 3>& offsets, const FrameTransform& transform,
                        size_t image);
  void prepare(DeviceFrame& input);
  void upload();  // needs the stream locked
  // Copies pending frames and launches their kernels.
  void enqueue_frames();
  // Enqueues the kernels of a picture on the device. Throws Error{bad_argument} where it is gone.
  void read_surface(Picture& picture);
  void read_memory(Picture& picture);
  void read_again(const Place& place, Picture& picture);
  void set_on_device(const Place& place, Picture& picture);
  // Enqueues the kernels after `acquired`. Returns the event of the last one.
  cl::Event enqueue_kernels(DeviceFrame& input, const cl::Event& acquired);

  RequestWork& work_;
  const DeviceNetwork& network_;
  std::vector<HostInput> host_;
  std::map<size_t, DeviceInput> device_;  // by index of the network's input
  std::map<Place, Picture> pictures_;
  LostImages lost_;       // frames of inferences that did not begin
  PicturePlanes planes_;  // with NV12_TWO_INPUTS
  size_t images_ = 0;     // of the next inference; 0 means all
  // True if set_surface() or set_memory() gave OpenCL work for the next inference.
  bool given_to_queue_ = false;
};

}  // namespace clinfer
