// The processes that compile for one device, shared by all that compile for it at a time.
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

#include "engine/ocl/compiler_process.h"

namespace clinfer::ocl {

// Compilers run in processes of their own, so that the application's never is inside of one: they
// can be stopped at any time, one that crashes is an error message, and drivers that compile one
// program at a time in a process (NVIDIA, PoCL) compile as many as there are. Processes start when
// they are first needed, and end with the last holder of the pool. Thread-safe.
class CompilerPool {
 public:
  // The pool of the context's device, as long as somebody has it.
  static std::shared_ptr<CompilerPool> of(const Context& context);

  // `program`: path of clinfer-compiler. At most `most` processes; 0: none, all is compiled in this process.
  // At most `most_starting` start at a time.
  CompilerPool(const DeviceInfo& device, std::string program, unsigned most,
               unsigned most_starting = UINT_MAX);
  ~CompilerPool();  // does not wait for the processes to be gone
  CompilerPool(const CompilerPool&) = delete;
  CompilerPool& operator=(const CompilerPool&) = delete;

  unsigned most() const { return most_; }

  // Blocks. A program whose compiler crashed is tried again without its launches; one whose compiler was killed, did
  // not answer or met a limit, in fewer processes, until there is none (Outcome::none). `owner`: the argument of a
  // later abandon(); `abandoned`: whether that was called.
  CompileAnswer compile(const CompileRequest& request, const void* owner,
                        const std::atomic<bool>& abandoned);
  // Ends the processes that work for `owner`, whose compile() then answers `stopped`.
  void abandon(const void* owner);

  // The two halves of compile(). take() blocks while all processes are busy or start; the longest
  // source comes first, since it takes longest. Null: abandoned, or no process may be had any more. Each process is
  // given back, with whether it may serve again.
  std::unique_ptr<CompilerProcess> take(const void* owner, const std::atomic<bool>& abandoned,
                                        size_t length = 0);
  void give_back(std::unique_ptr<CompilerProcess> process, bool works);

  // Ends all processes of all pools; no more are started. For the end of this process.
  static void stop_all();

  // Says why fewer processes compile than should, or none; "" where that has been said in this
  // process.
  std::string take_problem();
  // True when a process was wanted and none could be started, also after take_problem() has said so.
  bool has_problem();

 private:
  // Notes that a process failed that was taken when `allowed` might run. Returns whether it is to
  // be tried again.
  bool go_on_with_fewer(const CompileAnswer& failed, unsigned allowed);

  const DeviceInfo device_;
  const std::string program_;
  const unsigned most_, most_starting_;
  std::atomic<bool> any_worked_{false};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  unsigned allowed_ = most_;                      // fewer than most_ once processes failed
  std::map<CompilerProcess*, const void*> busy_;  // and for whom
  std::vector<std::unique_ptr<CompilerProcess>> idle_;
  unsigned starting_ = 0;
  std::multiset<size_t, std::greater<>> waiting_;  // lengths of sources
  std::string fewer_, none_;                       // why
};

// Path of the program clinfer-compiler that belongs to this code: it lies in the installation or the build folder
// that this code was loaded from, and nobody can change it who could not change this code. Throws Error{not_found}
// that says where it was looked for.
std::string find_compiler();

}  // namespace clinfer::ocl
