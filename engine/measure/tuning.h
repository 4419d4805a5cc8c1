// Tuning of one model on one device: which records count, what is measured, what is written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/runtime/compiled_model.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

class Tuning {
 public:
  // Reads the file where the mode wants it, and checks that it can be written where that will be
  // needed. `traits`: the context's, as kernels are chosen. Throws Error{bad_argument, not_found,
  // io}. `context` and `traits` outlive it.
  Tuning(const Config& config, const ocl::Context& context, const DeviceTraits& traits);

  // Whether measure() may have something to do.
  bool measures() const;

  // The kernel for an operation: a measured one, the file's, a shipped one, else the best family's
  // own choice.
  KernelChoice choose(const OpDesc& desc, std::span<const KernelFamily* const> families);

  // The same for the kernel that makes an input of frames (preprocess_op).
  TuningPoint choose_preprocess(const OpDesc& desc);

  // Measures what the mode wants measured, on a built model whose plan was made by choose(), and
  // writes the file. `parts`: steps whose kernels will be parts of persistent kernels, which the
  // model has its share of the device for. True when choose() gives other kernels now. Throws
  // Error; what was measured before is in the file.
  bool measure(DeviceModel& model, const std::vector<bool>& parts, const ocl::ProgramCache* cache,
               const TuningObserver& observer);

  // Kernels that are faster alone can be slower beside the others: whether a model with the
  // measured ones is no slower as a whole than one without tuning, each with two requests in flight
  // a stream. Throws as measure() does.
  bool is_not_slower(DeviceModel& tuned, DeviceModel& untuned, const TuningObserver& observer);

  // Goes back to the untuned kernels for those layers of the plan that gained least alone, for more
  // at each call, here and in the file. False when nothing is left that measure() has changed.
  bool revert_least_gains(const Plan& plan);

  // What happened to the layers of the plan. Removes lapsed records from the file in mode update.
  TuningReport finish(const Plan& plan);

 private:
  // One tuning problem, shared by the layers with its key.
  struct Problem {
    std::string op, hash;
    KernelChoice fallback, choice;
    std::vector<KernelChoice> guesses;
    LayerTuning::Source source = LayerTuning::Source::untuned;
    bool has_choice = false, partial = false, measured = false, reverted = false;
    std::string lapsed;
    double ns = 0, default_ns = 0;
    size_t tried = 0;
    std::vector<std::pair<std::string, std::string>> failed;
  };

  static constexpr size_t kNoStep = SIZE_MAX;
  // A problem to be measured: a step of the plan or a preprocess kernel.
  struct Task {
    Problem* problem;
    const OpDesc* desc;
    std::vector<const KernelFamily*> families;
    size_t step = kNoStep;  // the first of its layers
    double seconds = 0;     // that all its layers take in one inference
  };

  Problem& problem(const OpDesc& desc, std::span<const KernelFamily* const> families);
  void look_up(Problem& problem, const OpDesc& desc, std::span<const KernelFamily* const> families);
  bool wants_measuring(const Problem& problem) const;
  TuningRecord record_of(const Problem& problem, const OpDesc& desc) const;
  void save();
  [[noreturn]] void stop();  // saves, and throws that it was stopped

  const Config& config_;
  const ocl::Context& context_;
  const DeviceTraits& traits_;
  const unsigned units_;
  const std::string name_, driver_, kind_;
  TuningCache file_;
  std::map<std::string, Problem> problems_;                  // by op
  std::vector<OpDesc> pictures_;                             // by choose_preprocess()
  std::vector<std::pair<std::string, TuningRecord>> fresh_;  // measured and not yet written
  TuningStatus status_;                                      // of measure()
  size_t reverts_ = 0;
  double gain_ = 0, seconds_ = 0;
};

}  // namespace clinfer
