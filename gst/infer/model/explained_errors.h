// Tells a device's errors from faults: what rounding in its precision explains, learned by computing
// pictures again with errors like the device's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/heads/results/agreement.h"
#include "engine/verify.h"

namespace clinfer {

// The outputs of a network for one picture, and the results decoded of them.
struct ComputedPicture {
  std::vector<Tensor> outputs;
  PictureResults results;
};

// The difference between a device's results and the host's.
struct ResultDifference {
  bool differs = false;  // by more than its precision explains
  std::string what;      // for people: what differs and by how much
  std::string output;    // name of the output that differs most beyond what precision explains
  // The difference of that output, and the most that the precision explains, as shares of its
  // typical value.
  double difference = 0, explained = 0;
  size_t lost = 0, added = 0;  // objects that the device lacks, or has in addition
};

// Compares results, and keeps what it learns of a network's errors. One thread at a time.
class ExplainedErrors {
 public:
  struct Output {
    std::string name;
    // True if an operation before it selects or sorts, so that a small error exchanges elements.
    bool is_selected = false;
  };
  // Computes the picture with errors like the device's, which differ by `seed`. May throw.
  using Roughly = std::function<ComputedPicture(unsigned seed)>;

  // `is_exact`: the device computes in f32, so that it finds the same objects.
  ExplainedErrors(std::vector<Output> outputs, bool is_exact);

  // Compares a picture's results, which must contain objects from `threshold` - kNear on. Calls
  // `roughly` only while what is known does not explain the difference, and at most 16 times.
  ResultDifference compare(const ComputedPicture& device, const ComputedPicture& host,
                           double threshold, const Roughly& roughly);

 private:
  // The errors that the precision explains at one output, as shares of its typical and its largest
  // value.
  struct Explained {
    double typical = 0, largest = 0;
  };
  // The differences of decoded results that the precision explains.
  struct ExplainedResults {
    size_t alone = 0, answers = 0;
    double cells = 0, confidence = 0;
  };

  void learn(const ComputedPicture& rough, const ComputedPicture& host, double threshold);
  // Fills in `found`, and returns how many times the allowed difference there is: 1 if results
  // decoded of selected outputs differ.
  double compare_with_known(const ComputedPicture& device, const ComputedPicture& host,
                            double threshold, ResultDifference& found) const;
  bool compare_results(const Agreement& agreed, ResultDifference& found) const;

  const std::vector<Output> outputs_;
  const bool is_exact_;
  bool is_known_ = false;
  std::vector<Explained> explained_;  // by output
  ExplainedResults explained_results_;
};

}  // namespace clinfer
