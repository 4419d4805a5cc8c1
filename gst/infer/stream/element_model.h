// The model of the element. State changes read and check it; it is compiled once it is known which
// frames come.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <string>

#include "gst/frames/va_surface.h"
#include "gst/infer/model/model_loader.h"
#include "gst/infer/stream/element_shared.h"

namespace clinfer {

// The signal that asks the application for a model: GBytes *handler(GstElement *, const gchar
// *path, gpointer). NULL means that the file is read.
inline constexpr const char* kLoadModel = "load-model";

// Returns the places in the queue for the frames of a session, or of one that is still to come
// (null).
size_t frames_in_flight_for(const Settings& settings, const Session* session);
// Returns how many of these a pool upstream is to allocate when it starts.
size_t pooled_frames_for(const Settings& settings, const Session* session);

void warn_of_unknown_classes(GstElement* element, const Network& network, const ObjectRules& rules);

// State changes call open() to close(), and the streaming thread compile_for() and follow_frame(),
// never at the same time; any thread may call the others. State changes throw Error.
class ElementModel {
 public:
  ElementModel(ElementShared& shared, ModelLoader::Loaded loaded)
      : shared_(shared), loader_(shared.element, std::move(loaded)) {}

  void open();  // reads and checks the model
  // Reads and describes the model for the settings in force from now on, which it returns, and
  // takes over their rules.
  Settings read();
  // Keeps the present model if it is still usable; else begins to compile, unless that has to wait
  // for the frames' caps.
  void prepare(const Settings& current);
  void close();

  // Compiles for a display (may be null), unless that is done or under way. Drops a session for
  // another display; frames in flight keep it until they are finished.
  void compile_for(std::shared_ptr<const SurfaceDisplay> display);
  // If the network follows the frame and the frame's size is new, drops what was compiled for
  // another size. The loader reads and describes the model.
  void follow_frame(const GstVideoInfo& info);

  // Compiles another model beside the one that runs.
  void change(Settings settings);

  ModelLoader& loader() { return loader_; }
  const ModelLoader& loader() const { return loader_; }
  std::shared_ptr<const Session> session() const { return loader_.session(); }
  // Returns the network as it was read; a session has one of its own.
  const Network& network() const { return network_; }
  // Return whether VA surfaces, DMA-BUFs and CUDA memory are read on the device, as the properties
  // demand.
  bool takes_surfaces() const { return kHaveSurfaces && takes_imports_; }
  bool takes_imports() const { return takes_imports_; }

 private:
  Settings checked_settings();
  // Sets the bytes that the application has for this model (load-model), if it has any.
  void ask_for_model(Settings& settings) const;
  Settings settings_with_model();

  ElementShared& shared_;
  std::shared_ptr<const Model> model_;
  std::string model_path_, model_reshape_;
  std::shared_ptr<const std::string> model_data_;
  Settings answered_;  // what load-model returned for `model`; null data: nothing
  bool asked_ = false;
  Settings compile_settings_;
  Network network_;
  bool follows_frame_ = false;  // true for reshape=frame
  bool takes_imports_ = false;
  ModelLoader loader_;
};

}  // namespace clinfer
