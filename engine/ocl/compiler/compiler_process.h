// A compiler in a separate process: its requests, and both ends of the socket.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/ocl/device.h"
#include "kernels/base/system/files.h"

namespace clinfer::ocl {

// A launch as a kernel will see it, for drivers that compile for one size of work-groups when they
// first see such a launch (PoCL).
struct TrialLaunch {
  std::array<size_t, 3> global{1, 1, 1}, local{1, 1, 1};
  std::vector<Argument> arguments;
  std::array<size_t, 3> offset{};  // PoCL compiles another variant unless it is zero
};

// From this number of work-items in a dimension on, PoCL compiles another variant.
inline constexpr size_t kWideLaunch = 65535;

// A program with one kernel, to be compiled.
struct CompileRequest {
  std::string options, source, kernel_name;
  std::vector<TrialLaunch> launches;
  bool wants_binary = false;
};

struct CompileAnswer {
  enum class Outcome {
    built,
    refused,  // the compiler refused; `text` is its error and log
    crashed,  // the process crashed; `text` tells how
    lost,     // somebody killed it, as the system does if memory is short, or it did not answer
    limited,  // a limit of the system stopped it, which this process would also meet
    stopped,  // stop() was called
    none,     // no process exists; `text` tells why
  };
  Outcome outcome = Outcome::none;
  std::string text;
  std::vector<unsigned char> binary;  // empty if none was wanted, or the driver gives none
};

// Runs `clinfer-compiler DEVICE`, which takes requests from a socket that it inherits. The process
// ends when the socket is closed, even in the middle of a program, so that it never outlives its
// owner. It has none of the application's files open, and gets no signals from the terminal. A
// process that neither answers nor computes for ten seconds is given up.
class CompilerProcess {
 public:
  // `program`: path of clinfer-compiler. If it cannot be started, compile() reports that.
  CompilerProcess(const std::string& program, const DeviceInfo& device);
  ~CompilerProcess();  // does not wait for a compilation
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  // Both functions block, and one thread at a time may call them. compile() waits until the process
  // serves, unless wait_until_ready() has, and reports what is wrong.
  void wait_until_ready();
  CompileAnswer compile(const CompileRequest& request);
  // Makes compile() answer `stopped`, now and later. Any thread may call it.
  void stop();
  bool is_stopped() const { return stopped_; }

 private:
  using Outcome = CompileAnswer::Outcome;
  // Waits for the process to end, and kills it after `most_ms` milliseconds. Returns its status as
  // waitpid() does; nothing if the application has taken it.
  std::optional<int> end(int most_ms) noexcept;
  bool is_patient(short events);
  // Returns why the process, which has ended, did not answer.
  CompileAnswer what_ended_it();

  const DeviceInfo device_;
  const std::string program_;
  Descriptor socket_;
  pid_t process_ = -1;
  CompileAnswer problem_{Outcome::built, "", {}};  // why it does not work
  bool greeted_ = false, silent_ = false;
  std::atomic<bool> stopped_{false};
};

// Runs the helper process's main loop: serves the owner at the other end of kCompilerSocket.
// Returns if there is no owner of the same build. Throws Error{no_device}.
void serve_as_compiler(const std::string& device_id);

// Lets one thread of the process at a time add kernels to PoCL: by builds from binaries, trial launches,
// or making binaries. It counts the users of a kernel's code by name and size of work-groups, though narrow
// and wide launches have code of their own, and its assertion "ref_count > 0" ends the process when two
// threads add both at once. Holds nothing for other drivers.
std::unique_lock<std::mutex> alone_with_driver(const Device& device);

// Builds and launches in this process, as the compiler processes do, alone with the driver. Throws
// cl::Error if the program does not build; ignores a launch that fails.
cl::Program build_here(const Context& context, const CompileRequest& request);

}  // namespace clinfer::ocl
