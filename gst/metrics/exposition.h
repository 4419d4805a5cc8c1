// Writes the statistics of a pipeline's elements in the text format of Prometheus (version 0.0.4).
#pragma once

#include <gst/gst.h>

#include <string>
#include <utility>
#include <vector>

namespace clinfer {

// Collects samples by metric, in the order in which they come. The text has each metric once, with
// its help and type. Not thread-safe.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;  // names and values

  // Adds the property `stats` of the elements in `pipeline`, and in bins inside of it, and how full
  // its queues are. A sample has the labels `pipeline`, `element` and `camera`: the name of the
  // source whose frames the element gets.
  void add_pipeline(GstElement* pipeline);
  // Adds memory, CPU time and file descriptors of this process, with the names that Prometheus'
  // client libraries use.
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

}  // namespace clinfer
