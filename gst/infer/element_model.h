// The model of the element: read and checked by state changes, compiled once it is known which frames
// come.
#pragma once

#include <gst/video/video.h>

#include <memory>
#include <string>

#include "gst/frames/va_surface.h"
#include "gst/infer/element_shared.h"
#include "gst/infer/model_loader.h"

namespace clinfer {

// The signal that asks the application for a model: GBytes *handler(GstElement *, const gchar *path, gpointer),
// NULL where the file is to be read.
inline constexpr const char* kLoadModel = "load-model";

// Room in the queue for the frames of a session, or of one that is still to come (null).
size_t frames_in_flight_for(const Settings& settings, const Session* session);

void warn_of_unknown_classes(GstElement* element, const Network& network, const ObjectRules& rules);

// State changes call open() to close(), and the streaming thread compile_for() and follow_frame(), never
// at the same time; any thread calls the others. State changes throw Error.
class ElementModel {
 public:
  ElementModel(ElementShared& shared, ModelLoader::Loaded loaded)
      : shared_(shared), loader_(shared.element, std::move(loaded)) {}

  void open();  // reads and checks the model
  // Reads and describes the model for the settings in force from now on, which it gives, and takes
  // their rules.
  Settings read();
  // Takes the model of before where it still serves, else begins to compile unless that has to wait
  // for the frames' caps.
  void prepare(const Settings& current);
  void close();

  // Compiles for a display, or for none, unless that is done or under way. A session for another
  // display is dropped; frames in flight keep it until they are done.
  void compile_for(std::shared_ptr<const SurfaceDisplay> display);
  // Where the network follows the frame and the frame's size is a new one: what was compiled for
  // another is dropped. The loader reads and describes the model.
  void follow_frame(const GstVideoInfo& info);

  // Compiles another model beside the one that runs.
  void change(Settings settings);

  ModelLoader& loader() { return loader_; }
  const ModelLoader& loader() const { return loader_; }
  std::shared_ptr<const Session> session() const { return loader_.session(); }
  // As it was read; a session has one of its own.
  const Network& network() const { return network_; }
  // Whether VA surfaces, DMA-BUFs and memory of CUDA are read on the device, as the properties say.
  bool takes_surfaces() const { return kHaveSurfaces && takes_imports_; }
  bool takes_imports() const { return takes_imports_; }

 private:
  Settings checked_settings();
  // Gives the settings the bytes that the application has for this model (load-model), if it has any.
  void ask_for_model(Settings& settings) const;
  Settings settings_with_model();

  ElementShared& shared_;
  std::shared_ptr<const Model> model_;
  std::string model_path_, model_reshape_;
  std::shared_ptr<const std::string> model_data_;
  Settings answered_;  // what load-model gave, by `model`; null data: nothing
  bool asked_ = false;
  Settings compile_settings_;
  Network network_;
  bool follows_frame_ = false;  // reshape=frame
  bool takes_imports_ = false;
  ModelLoader loader_;
};

}  // namespace clinfer
