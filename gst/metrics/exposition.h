// The statistics of a pipeline's elements in the text format of Prometheus (version 0.0.4).
#pragma once

#include <gst/gst.h>

#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// Samples by metric, in the order in which they come; the text has each metric once, with its help and type.
// For one thread.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;  // name and value

  // Adds what the elements in `pipeline`, and in bins inside, have in their property `stats`, and how full its queues
  // are. A sample has the labels `pipeline`, `element` and `camera`: the name of the source whose frames the
  // element gets.
  void add_pipeline(GstElement* pipeline);
  // Memory, CPU time and file descriptors of this process, as the client libraries of Prometheus name them.
  void add_process();

  std::string text() const;

 private:
  struct Metric {
    std::string name;
    const char* type;
    const char* help;
    std::string samples;
  };
  void add(const std::string& name, const char* type, const char* help, const Labels& labels,
           double value);
  void add_stats(const GstStructure* stats, Labels labels);
  void add_queue(GstElement* queue, const Labels& labels);

  std::vector<Metric> metrics_;
};

// The name of the source element whose frames `element` gets: of several inputs, by the first. "" where it gets none.
std::string camera_of(GstElement* element);

}  // namespace clinfer
