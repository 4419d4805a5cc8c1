// Tunes one model on one device: selects valid records, measures kernels, writes the file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/measure/bench.h"
#include "engine/measure/tuning_run.h"
#include "engine/plan/plan.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

// A tuning problem of a network, and where its kernel comes from.
struct ProblemRecord {
  std::string op;      // the key of the record
  std::string kernel;  // family and point in use
  LayerTuning::Source source = LayerTuning::Source::untuned;
  size_t layers = 0;         // of the network that share it; 0: a kernel that frames go through
  double multiply_adds = 0;  // of all these layers in one inference
};

class Tuning {
 public:
  // Reads the file in modes that use it, and checks that it is writable in modes that write it.
  // `traits`: the context's, as kernels are chosen. Throws Error{bad_argument, not_found, io}.
  // `context` and `traits` outlive it. `clock`: of the budget TUNING_SECONDS.
  Tuning(const Config& config, const ocl::Context& context, const DeviceTraits& traits,
         SecondsClock clock = steady_seconds);

  // Whether measure() may have something to do.
  bool measures() const;

  // The kernel for an operation: the measured one, else the file's, else a shipped one, else the
  // best family's own choice.
  KernelChoice choose(const OpDesc& desc, std::span<const KernelFamily* const> families);
  KernelChooser chooser();  // choose(), which it refers to

  // The tuning point of the kernel that converts frames into an input (preprocess_op).
  TuningPoint choose_preprocess(const OpDesc& desc);

  // Measures the kernels that the mode asks for, on a bench whose plan was made by choose(), and
  // writes the file. True if choose() gives other kernels from now on. Throws Error; the file then
  // has the results so far.
  bool measure(const Bench& bench, const TuningObserver& observer);

  // Kernels that are faster alone can be slower beside the others: whether a network with the
  // measured ones is no slower as a whole than one without tuning, each with two requests in flight
  // a stream. Throws as measure() does.
  bool is_not_slower(const std::shared_ptr<const DeviceNetwork>& tuned,
                     const std::shared_ptr<const DeviceNetwork>& untuned,
                     const TuningObserver& observer);

  // Reverts the layers of the plan that gained least alone to their untuned kernels, here and in
  // the file; each call reverts more. False if no layer is left that measure() has changed.
  bool revert_least_gains(const Plan& plan);

  // All problems with more than one kernel or point to choose from, in the order of execution.
  std::vector<ProblemRecord> records(const Plan& plan) const;

  // Tells the user that the file is not there, or has records of another engine; else "".
  std::string warning() const;

  // Reports on the layers of the plan. In mode update it removes lapsed records from the file.
  TuningReport finish(const Plan& plan);

 private:
  TuningProblem& problem(const OpDesc& desc, std::span<const KernelFamily* const> families);
  void look_up(TuningProblem& problem, const OpDesc& desc,
               std::span<const KernelFamily* const> families);
  bool wants_measuring(const TuningProblem& problem) const;
  TuningRecord record_of(const TuningProblem& problem, const OpDesc& desc) const;
  void save();

  const Config& config_;
  const TuningMode mode_;
  const ocl::Context& context_;
  const DeviceTraits& traits_;
  const SecondsClock clock_;
  const unsigned units_;
  const std::string name_, driver_, kind_;
  TuningCache file_;
  size_t foreign_ = 0;                             // records of another engine in the file
  std::map<std::string, TuningProblem> problems_;  // by op
  std::vector<OpDesc> pictures_;                   // by choose_preprocess()
  std::vector<std::pair<std::string, TuningRecord>> fresh_;  // measured and not yet written
  TuningStatus status_;                                      // of measure()
  size_t reverts_ = 0;
  double gain_ = 0, seconds_ = 0;
};

}  // namespace clinfer
