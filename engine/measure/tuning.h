// Tunes one model on one device: selects valid records, measures kernels, writes the file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/measure/tuning_run.h"
#include "engine/plan/plan.h"
#include "tuning/tuning_cache.h"

namespace clinfer {

// A tuning problem of a network, and the source of its kernel.
struct ProblemRecord {
  std::string op;      // the record's key
  std::string kernel;  // family and point in use
  LayerTuning::Source source = LayerTuning::Source::untuned;
  size_t layers = 0;  // layers of the network that share it; 0 for a kernel that converts frames
  double multiply_adds = 0;  // of all these layers in one inference
};

class Tuning {
 public:
  // Reads the file in modes that use it, and checks in modes that write it that this is possible.
  // `traits`: the context's traits, with which kernels are chosen. `clock`: measures the budget
  // TUNING_SECONDS. `context` and `traits` must outlive the object. Throws Error{bad_argument,
  // not_found, io}.
  Tuning(const Config& config, const ocl::Context& context, const DeviceTraits& traits,
         SecondsClock clock = steady_seconds);

  // Returns whether measure() may have something to do.
  bool measures() const;

  // Returns the kernel for an operation: the measured one, else the file's, else a shipped one,
  // else the best family's heuristic.
  KernelChoice choose(const OpDesc& desc, std::span<const KernelFamily* const> families);
  KernelChooser chooser();  // returns choose(), bound to this object

  // Returns the tuning point of the kernel that converts frames into an input (preprocess_op()).
  TuningPoint choose_preprocess(const OpDesc& desc);

  // Gives up untuned kernels that spill registers: takes the next of untuned_candidates(), and if
  // all of them spill, the one that spills least. `spilled` returns the bytes that a step's
  // kernels spill as they are built. Returns true if choose() returns other kernels from now on,
  // which are to be built and asked about in turn.
  bool avoid_spills(const Plan& plan, const std::function<uint64_t(size_t step)>& spilled);

  // Measures the kernels that the mode asks for, on a built network whose plan was made by choose()
  // and whose steps each have their own launches, and writes the file. Returns true if choose() returns other kernels from now on. Throws Error; the
  // file then has the results so far.
  bool measure(const std::shared_ptr<const DeviceNetwork>& network, const TuningObserver& observer);

  // Returns whether a network with the measured kernels is no slower as a whole than one without
  // tuning, each with two requests in flight for each stream: kernels that are faster alone can be
  // slower beside others. Throws as measure() does.
  bool is_not_slower(const std::shared_ptr<const DeviceNetwork>& tuned,
                     const std::shared_ptr<const DeviceNetwork>& untuned,
                     const TuningObserver& observer);

  // Takes the kernels of those layers that gained least back to the untuned ones, here and in the
  // file; each call takes back more. Returns false if no layer is left that measure() has changed.
  bool revert_least_gains(const Plan& plan);

  // Returns all problems that have more than one kernel or point to choose from, in the order of
  // execution.
  std::vector<ProblemRecord> records(const Plan& plan) const;

  // Returns a warning if the file does not exist or has records of another engine; else "".
  std::string warning() const;

  // Reports on the layers of the plan. Removes lapsed records from the file in mode update.
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
  size_t foreign_ = 0;  // number of records in the file that another engine wrote
  std::map<std::string, TuningProblem> problems_;  // by the operation's key
  std::vector<OpDesc> pictures_;                   // that choose_preprocess() was asked about
  std::vector<std::pair<std::string, TuningRecord>> fresh_;  // measured and not yet written
  TuningStatus status_;                                      // of measure()
  size_t reverts_ = 0;
  double gain_ = 0, seconds_ = 0;
};

}  // namespace clinfer
