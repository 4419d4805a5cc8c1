// The processes that compile for one device, shared by all of its models.
#pragma once

#include <atomic>
#include <climits>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/ocl/compiler/compiler_process.h"

namespace clinfer::ocl {

// Runs compilers in separate processes. They can be stopped at any time, a crash is an error
// message, and drivers that compile one program at a time in a process (NVIDIA, PoCL) compile as
// many as there are processes. Processes start when first needed, and end with the last holder of
// the pool. Thread-safe.
class CompilerPool {
 public:
  // Returns the pool of the context's device, which lives while somebody holds it.
  static std::shared_ptr<CompilerPool> of(const Context& context);

  // `program`: path of clinfer-compiler. Starts at most `most` processes (0: everything is compiled
  // in this process), at most `most_starting` at the same time.
  CompilerPool(const DeviceInfo& device, std::string program, unsigned most,
               unsigned most_starting = UINT_MAX);
  ~CompilerPool();  // does not wait for the processes to end
  CompilerPool(const CompilerPool&) = delete;
  CompilerPool& operator=(const CompilerPool&) = delete;

  unsigned most() const { return most_; }

  // Blocks. A program whose compiler crashed is compiled again without its launches. One whose
  // compiler was killed, did not answer or met a limit is compiled again by fewer processes, until
  // none is left (Outcome::none). `owner`: the argument of a later abandon(); `abandoned`: set
  // before that is called.
  CompileAnswer compile(const CompileRequest& request, const void* owner,
                        const std::atomic<bool>& abandoned);
  // Stops the processes that work for `owner`; their compile() then answers `stopped`.
  void abandon(const void* owner);

  // The two halves of compile(). take() blocks while all processes are busy or starting; the
  // longest source is served first, because it takes longest. Returns null if the request was
  // abandoned or no process can be had any more. Each process must be given back, with whether it
  // may serve again.
  std::unique_ptr<CompilerProcess> take(const void* owner, const std::atomic<bool>& abandoned,
                                        size_t length = 0);
  void give_back(std::unique_ptr<CompilerProcess> process, bool works);

  // Ends all processes of all pools for good. To be called at the end of this process.
  static void stop_all();

  // Returns why fewer processes compile than should, or none; "" if that was returned before in
  // this process.
  std::string take_problem();
  // Returns true if a process was wanted and none could be started, also after take_problem() has
  // returned the reason.
  bool has_problem();

 private:
  // Notes the failure of a process that was taken when `allowed` processes were allowed. Returns
  // whether to try again.
  bool go_on_with_fewer(const CompileAnswer& failed, unsigned allowed);

  const DeviceInfo device_;
  const std::string program_;
  const unsigned most_, most_starting_;
  std::atomic<bool> any_worked_{false};
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  unsigned allowed_ = most_;                      // less than most_ once processes have failed
  std::map<CompilerProcess*, const void*> busy_;  // busy processes and their owners
  std::vector<std::unique_ptr<CompilerProcess>> idle_;
  unsigned starting_ = 0;
  std::multiset<size_t, std::greater<>> waiting_;  // lengths of sources that wait
  std::string fewer_, none_;                       // the reasons
};

// Returns the path of the program clinfer-compiler that belongs to this code. It must lie in the
// installation or the build folder from which this code was loaded, and nobody may be able to
// change it who could not change this code. Throws Error{not_found}, which tells where it was
// looked for.
std::string find_compiler();

}  // namespace clinfer::ocl
