// What a network's outputs mean. A head is one way to read them: pure functions of tensors, without
// GStreamer, safe for any values (NaN, infinities, nonsense counts).
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/tensor.h"

namespace clinfer {

// An object, in pixels of the network's input (continuous: pixel i covers [i, i+1)); may reach
// beyond the picture.
struct Detection {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;
  float confidence = 0;  // 0..1
  int label_id = 0;      // >= 0
};

// One answer of a classifying output about the whole picture.
struct Classification {
  std::string attribute;  // the output's name
  int label_id = 0;
  std::string label;  // empty when unknown
  float confidence = 0;
};

struct NamedTensor {
  std::string name;
  Tensor value;  // owns its memory
};

struct Results {
  std::vector<Detection> detections;  // best first
  std::vector<Classification> classifications;
  std::vector<NamedTensor> tensors;
};

// May change from frame to frame.
struct DecodeSettings {
  float threshold = 0.5f;       // least confidence
  float iou_threshold = 0.45f;  // boxes of one label that overlap more are one object
  unsigned max_detections = 0;  // 0: no limit
};

// What is known of a model before it runs.
struct OutputFacts {
  std::string name;
  std::vector<std::string> aliases;  // further names of the tensor
  ElementType type = ElementType::f32;
  Shape shape;
  std::string op;                                 // type of the operation that makes it
  std::map<std::string, std::string> attributes;  // of that operation
};

struct ModelFacts {
  int width = 0, height = 0;  // of the image input
  std::vector<OutputFacts> outputs;
  std::map<std::string, std::string> model_info;  // rt_info/model_info, without that prefix
  std::vector<std::string> labels;                // empty: unknown
};

// outputs: in the order of ModelFacts::outputs, for one image. Appends to Results.
using Decode =
    std::function<void(std::span<const Tensor> outputs, const DecodeSettings&, Results&)>;

// against: the shapes fit, but labels speak against it; only where the head is named.
enum class Fit { no, against, possible, certain };

struct Match {
  Fit fit = Fit::no;
  std::string reason;  // why, or why not
  Decode decode;       // set unless fit is no
};

struct Head {
  const char* name;         // value of the post-process property
  const char* description;  // one line for the property's documentation
  Match (*match)(const ModelFacts&);
};

std::span<const Head> heads();

struct HeadChoice {
  std::string name, reason;
  Decode decode;
};

// post_process: a head's name, "none" (raw tensors) or "auto": model_info's model_type, then shapes
// and operations. With auto, a model that nothing fits, or whose vectors nothing says to be class
// scores, gives "none". Throws Error{bad_argument}
// when the named head does not fit, or when several fit equally well (the message lists them).
HeadChoice choose_head(const ModelFacts& facts, const std::string& post_process);

}  // namespace clinfer
