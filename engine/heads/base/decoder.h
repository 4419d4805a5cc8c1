// The meaning of a network's outputs. A head is one way to read them: pure functions of tensors,
// without GStreamer, safe for any values (NaN, infinities, absurd counts).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/tensor.h"
#include "kernels/frames/preprocess.h"

namespace clinfer {

// Coordinates are pixels of the network's input, continuous: pixel i covers [i, i+1). They may lie
// outside of the picture.
struct Point {
  float x = 0, y = 0;
};

// A point of a skeleton. Its name and its bones follow from Detection::skeleton and its index in
// the list.
struct KeyPoint {
  float x = 0, y = 0;
  float confidence = 0;  // 0..1
};

// The kinds of key points, by their order. skeleton_of() returns names and bones.
enum class Skeleton { none, coco17, body25, body18, face5, hand21, body33, other };

struct SkeletonFacts {
  const char* name = "";                         // "coco-17"
  std::vector<std::string> points;               // names in the order of the key points
  std::vector<std::pair<int, int>> connections;  // bones, as pairs of indices into `points`
};
// Returns no points and no bones for `none` and `other`.
const SkeletonFacts& skeleton_of(Skeleton kind);

// A rectangle that may be turned around its centre. Rotation is in radians, clockwise as seen on
// the picture (x to the right, y down): the width lies along (cos r, sin r).
struct OrientedBox {
  float x_center = 0, y_center = 0, width = 0, height = 0, rotation = 0;
};

// The pixels of an object's box that belong to the object. The grid covers the rectangle; its
// values are interpolated (bilinear, half-pixel centres), and a pixel belongs to the object if its
// value is above `level`. No pixel outside of the object's own box does.
struct ObjectMask {
  int columns = 0, rows = 0;
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;  // of the grid, in network pixels
  float level = 0.5f;                                // 0 for logits
  std::vector<float> values;                         // row-major
};

// The kind of a detection. There is at most one of the last two kinds; on a region it is no further
// object, but its points are the region's own.
enum class Subject {
  found,   // one of any number of objects that were looked for
  whole,   // the one object that fills the picture; the box is the network's input
  refined  // that object, with a better box than the picture
};

struct Detection {
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;
  float confidence = 0;                     // 0..1
  int label_id = 0;                         // >= 0, the model's class number
  std::string label;                        // empty: follows from label_id and the labels
  std::optional<OrientedBox> oriented_box;  // the box above encloses it
  Skeleton skeleton = Skeleton::none;       // which skeleton the key points belong to
  std::vector<KeyPoint> keypoints;
  std::vector<Point> landmarks;  // points without a confidence (faces: eyes, nose, mouth corners)
  std::shared_ptr<const ObjectMask> mask;  // null: none
  Subject subject = Subject::found;
};

// An answer of a classifying output about the whole picture. Several answers of one attribute
// (top-k, multi-label) follow each other, best first.
struct Classification {
  std::string attribute;  // the output's name
  int label_id = 0;
  std::string label;  // empty when unknown
  float confidence = 0;
};

// A map with a value for each place of the picture. The grid covers the rectangle.
enum class MapKind { classes, depth, saliency, anomaly };
struct PictureMap {
  std::string name;  // name of the output
  MapKind kind = MapKind::classes;
  int columns = 0, rows = 0;
  float x_min = 0, y_min = 0, x_max = 0, y_max = 0;  // of the grid, in network pixels
  std::vector<uint16_t> classes;    // for kind classes: label_id of each cell, row-major
  std::vector<float> values;        // for the other kinds; saliency and anomaly: 0..1
  std::vector<std::string> labels;  // of classes, by label_id; empty: unknown
};

// Text that was recognised in the picture, or in the region that was inferred.
struct RecognizedText {
  std::string attribute;  // the output's name
  std::string text;       // UTF-8
  float confidence = 0;   // 0..1
};

// A vector that represents the picture or region.
struct Embedding {
  std::string name;  // name of the output
  std::vector<float> values;
};

struct NamedTensor {
  std::string name;
  Tensor value;  // owns its memory
};

struct Results {
  std::vector<Detection> detections;  // best first
  std::vector<Classification> classifications;
  std::vector<PictureMap> maps;
  std::vector<RecognizedText> texts;
  std::vector<Embedding> embeddings;
  std::vector<NamedTensor> tensors;
  // Why the values contradict the head; empty if they do not. With a contradiction there are only
  // tensors.
  std::string contradiction;
};

// Settings that may change from frame to frame.
struct DecodeSettings {
  float threshold = 0.5f;       // least confidence
  float iou_threshold = 0.45f;  // boxes of one label that overlap more count as one object
  unsigned max_detections = 0;  // 0: no limit
  bool attach_tensors = false;  // adds the raw tensors to what was decoded
  // True if the user set iou_threshold, which then also applies to boxes that are known to be
  // suppressed.
  bool suppress_all = false;
  // The distance between the values of the only output, which is quantised as a whole: a score of 1
  // may come out larger by half of it. 0 for other outputs. run_head() sets it from the head.
  float step = 0;
};

// Facts that are known about a model before it runs.
struct OutputFacts {
  std::string name;
  std::vector<std::string> aliases;  // further names of the tensor
  ElementType type = ElementType::f32;
  Shape shape;
  std::string op;                                 // type of the operation that makes it
  std::map<std::string, std::string> attributes;  // of that operation
};

struct ModelFacts {
  int width = 0, height = 0;   // of the image input
  int channels = 3;            // of the image input
  bool channels_last = false;  // of the image input, as in TensorFlow
  bool open_width = false;     // of the image input, so that lines of text of any length fit
  std::string name;            // of the model's file, without folder and suffix
  std::vector<OutputFacts> outputs;
  std::vector<std::string> input_names;  // of all inputs, in lower case
  // rt_info/model_info without that prefix, and values from files beside the model under the same
  // keys.
  std::map<std::string, std::string> model_info;
  std::vector<std::string> labels;  // empty: unknown
  // True if the labels are the model's own, so that their number tells what the columns of an
  // output are.
  bool own_labels = true;
};

// `outputs`: in the order of ModelFacts::outputs, for one image. Appends to Results.
using Decode =
    std::function<void(std::span<const Tensor> outputs, const DecodeSettings&, Results&)>;

// How well a head fits. against: the shapes fit, but something speaks against it; used only if the
// user names the head. possible: nothing speaks against it, but other readings fit as well. likely:
// the structure is this family's. certain: names, operations or model_info say so, too.
enum class Fit { no, against, possible, likely, certain };

const char* name_of(Fit fit);

// The way in which a family's networks take pictures, if nothing else states it. Mean and scale are
// as in FrameTransform.
struct PictureDefaults {
  std::string family;                                      // for messages
  std::optional<ResizeMode> resize = ResizeMode::stretch;  // nullopt: they take any size
  float pad_value = 0;
  bool centered = true;
  ColorOrder color = ColorOrder::rgb;
  std::vector<float> mean{0}, scale{1};
  bool task = false;        // true for what is usual for a task, not for one project
  float share = 1;          // of the picture's centre, if it is cropped
  bool transposed = false;  // rows are the picture's columns
  bool converted = false;   // true if the family's networks are known as a converter left them
};

struct Match {
  Fit fit = Fit::no;
  std::string reason;      // why it fits, or why not
  Decode decode;           // set unless `fit` is no
  std::string doubt = {};  // what speaks against the reading, or that nothing speaks for it
  std::optional<PictureDefaults> picture = {};
  // Assumptions that no file states, one line each, with how to set it.
  std::vector<std::string> assumptions = {};
  size_t classes = 0;       // number of classes in the outputs; 0: unknown
  bool from_one = false;    // true if label_id counts from 1
  bool background = false;  // true if one of the classes may be a background
  // Names of the classes if no labels are known, for families with fixed classes ("face").
  std::vector<std::string> class_names = {};
  bool lacks_labels = false;  // true if it would fit with the labels for which `reason` asks
  // True if an assumption is a guess, so that raw tensors are attached as well.
  bool unsure = false;
};

// Kinds of results of heads. Networks with several tasks have heads of more than one kind.
enum class HeadKind {
  objects,  // boxes of objects in the picture
  points,   // points of the one object that fills the picture
  map,      // a value for each place
  text,     // where text is, or its characters
  answers   // classes of the picture, or vectors that represent it
};

// The treatment of outputs that are alike: a head reads one of them (main and auxiliary heads), or
// all.
enum class Alike { one, all };

// The sizes of pictures that a head's networks are given.
enum class Sizes {
  own,      // the size of training
  any,      // any size, and also the frame's if a file leaves the size open
  examples  // any size; files state a small one, an example from the export
};

struct Head {
  const char* name;  // value of the post-process property
  HeadKind kind;
  Alike alike;
  Sizes sizes;
  const char* description;  // one line for the property's documentation
  Match (*match)(const ModelFacts&);
};

std::span<const Head> heads();

struct HeadFit {
  std::string name;
  Fit fit = Fit::no;
  std::string reason;
};

struct HeadChoice {
  std::string name, reason;
  Decode decode;
  Fit fit = Fit::no;
  Sizes sizes = Sizes::own;
  std::optional<PictureDefaults> picture = {};
  std::vector<std::string> warnings = {};  // what was guessed, each with how to set it; for users
  bool attach_tensors = false;  // true for a guess: raw tensors are attached to its results
  int first_label = 0;          // class number of the first label
  float step = 0;               // as in DecodeSettings
  std::vector<std::string> class_names = {};  // used if no labels are known
  std::vector<HeadFit> considered = {};  // every head that was considered, in the order of the list
};

// Chooses the head. `post_process`: a head's name, "none" (raw tensors) or "auto": by the evidence
// of model_info and of the names, types and shapes of the outputs. `outputs`: names of those to
// read; empty: all. With auto, a model that nothing fits gives "none"; if several heads fit equally
// well, or one is only possible, the first is taken, with a warning that names the candidates, and
// raw tensors are attached. Throws Error{bad_argument} if the named head does not fit, or if the
// model has no output of a name.
HeadChoice choose_head(const ModelFacts& facts, const std::string& post_process,
                       const std::vector<std::string>& outputs = {});

// Decodes outputs. If these contradict the head, `results` has only the raw tensors and the
// contradiction, so that nothing wrong is taken for objects. Resolves labels whose first one does
// not name class 0. Attaches raw tensors also if the head is a guess, or if `attach_tensors`.
void run_head(const HeadChoice& head, const ModelFacts& facts, std::span<const Tensor> outputs,
              const DecodeSettings& settings, bool attach_tensors, Results& results);

// Returns a line for the user if a detection's class number exceeds the labels, else "".
std::string unnamed_class(const HeadChoice& head, const ModelFacts& facts, const Results& results);

// Returns a line for the user if an output holds NaN, which is never an object, else "".
std::string not_numbers(const ModelFacts& facts, std::span<const Tensor> outputs);

// Tells whether to trust a head, which is dropped if the values of all of the first 10 inferences
// contradict it. Thread-safe.
class HeadTrust {
 public:
  bool dropped() const { return dropped_.load(); }
  // Returns true if this inference is the one that drops the head.
  bool note(bool contradicted);
  uint64_t contradictions() const { return contradictions_.load(); }
  // Returns true if this is the first inference with a class that has no name.
  bool note_unnamed() { return !unnamed_.exchange(true); }
  // Returns whether an earlier inference gave NaN.
  bool knows_nan() const { return nan_.load(); }
  bool note_nan() { return !nan_.exchange(true); }

 private:
  std::atomic<uint64_t> inferences_ = 0, contradictions_ = 0;
  std::atomic<bool> agreed_ = false, dropped_ = false, unnamed_ = false, nan_ = false;
};

}  // namespace clinfer
