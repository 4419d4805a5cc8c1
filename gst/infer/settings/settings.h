// The element's properties as plain values. Unset optionals leave the choice to the model.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>

#include "engine/heads/network.h"

namespace clinfer {

enum class RegionChoice { full_frame, roi_list };
enum class RegionShape { as_is, square };
enum class InferenceWhen { always, motion };
enum class OverloadPolicy { block, skip_inference, drop };

struct Settings : ModelOptions {
  std::string device = "GPU";
  unsigned nireq = 0;  // 0: twice the streams
  // 0: the engine's choice. Unset: 1, unless a target chooses.
  std::optional<unsigned> throughput_streams;
  unsigned batch_size = 1;  // 0: from the tuning file, else from the model
  int batch_timeout = -1;   // in milliseconds; -1: automatic
  std::string model_instance_id;
  QueueHint priority = QueueHint::automatic, throttle = QueueHint::automatic;
  bool exclusive = false;
  bool perf_count = false;
  unsigned device_timeout = 10000;  // in milliseconds; 0: no limit
  bool first_tier = true;
  unsigned max_num_threads = 0;  // 0: one for each core
  std::optional<std::string> cache_dir;
  unsigned cache_size = Config{}.cache_size;
  bool dump_kernels = false;
  std::string graph_dumps_dir, sources_dumps_dir;
  std::optional<TuningMode> tuning_mode;  // unset: use_existing if there is a tuning_file
  std::string tuning_file;
  std::string config;  // KEY=VALUE,...
  bool nv12_two_inputs = true;
  std::optional<double> threshold, iou_threshold;
  unsigned max_detections = 0;
  bool attach_tensors = false;
  bool roi_meta = true;
  unsigned inference_interval = 1;
  InferenceWhen inference_when = InferenceWhen::always;
  double motion_threshold = 8;  // of 255
  std::string motion_regions;   // parsed by ObjectRules
  unsigned motion_hold = 2;     // in frames
  unsigned clip_stride = 1;
  GstVideoOrientationMethod video_direction = GST_VIDEO_ORIENTATION_AUTO;
  RegionChoice inference_region = RegionChoice::full_frame;
  std::string region_reach, region_shift, region_turn, region_margin;  // parsed by ObjectRules
  RegionShape region_shape = RegionShape::as_is;
  std::string object_class;          // labels, comma separated; empty: all
  unsigned reclassify_interval = 1;  // in frames of a track; 0: once
  // Parsed by ObjectRules. Empty: no rule.
  std::string classes, thresholds, min_size, max_size, regions, tiles;
  OverloadPolicy overload_policy = OverloadPolicy::block;
  unsigned share = 1;           // weight among live streams of one model-instance-id
  unsigned hold_results = 0;    // in frames
  unsigned target_latency = 0;  // in milliseconds; 0: none
  double target_power = 0;      // in watts; 0: none
  // Precisions that a target may choose: bit P for Precision P.
  unsigned allow_precision = 0;
  bool qos = true;
  unsigned verify = 0;             // in frames; 0: never
  unsigned stats_interval = 0;     // in milliseconds; 0: no messages
  unsigned frozen_after = 10'000;  // in milliseconds; 0: never

  bool allows(Precision precision) const {
    return (allow_precision >> static_cast<unsigned>(precision) & 1) != 0;
  }
  bool has_targets() const { return target_latency != 0 || target_power > 0; }
  // The policy for live sources: none that waits can keep a target.
  OverloadPolicy live_policy() const {
    return has_targets() && overload_policy == OverloadPolicy::block
               ? OverloadPolicy::skip_inference
               : overload_policy;
  }
};

}  // namespace clinfer
