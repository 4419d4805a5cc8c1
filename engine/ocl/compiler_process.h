// A compiler in a process of its own: the requests that it takes, and both ends of the socket.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "engine/ocl/device.h"
#include "kernels/base/files.h"

namespace clinfer::ocl {

// A launch as a kernel will see it. Drivers that make code for one size of work-groups (PoCL) do so
// when they first see such a launch.
struct TrialLaunch {
  std::array<size_t, 3> global{1, 1, 1}, local{1, 1, 1};
  std::vector<Argument> arguments;
  std::array<size_t, 3> offset{};  // PoCL makes other code unless it is zero
};

// PoCL makes other code for launches of so many work-items in a dimension.
inline constexpr size_t kWideLaunch = 65535;

// One program of one kernel.
struct CompileRequest {
  std::string options, source, kernel_name;
  std::vector<TrialLaunch> launches;
  bool wants_binary = false;
};

struct CompileAnswer {
  enum class Outcome {
    built,
    refused,  // by the compiler; `text` is its error and log
    crashed,  // the process ended by itself; `text` says how
    lost,  // somebody else killed it (the system does where memory is short), or it did not answer
    limited,  // a limit of the system keeps it from running, and this process would meet it, too
    stopped,  // by stop()
    none,     // there is no such process; `text` says why
  };
  Outcome outcome = Outcome::none;
  std::string text;
  std::vector<unsigned char> binary;  // "" also where the driver gives none
};

// The process is `clinfer-compiler DEVICE`, which takes requests from a socket that it inherits. It ends when that
// does, also in the middle of a program; so it never outlives its owner. Nothing of the application is open in it,
// and signals of the terminal do not reach it. One that neither answers nor computes for ten seconds is given up.
class CompilerProcess {
 public:
  // `program`: path of clinfer-compiler. Where it cannot be started, compile() says so.
  CompilerProcess(const std::string& program, const DeviceInfo& device);
  ~CompilerProcess();  // does not wait for what is being compiled
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  // Both calls block, and one thread at a time may make them. compile() waits until the process
  // serves, unless wait_until_ready() did, and says what is wrong.
  void wait_until_ready();
  CompileAnswer compile(const CompileRequest& request);
  // Lets compile() answer `stopped`, now and later. Any thread may call it.
  void stop();
  bool is_stopped() const { return stopped_; }

 private:
  using Outcome = CompileAnswer::Outcome;
  // Waits for the process to be gone, and kills it if it is not by then; its status, as waitpid() gives it; none where the application took it.
  std::optional<int> end(int most_ms) noexcept;
  bool is_patient(short events);
  // Says why the process, which is not there any more, did not answer.
  CompileAnswer what_ended_it();

  const DeviceInfo device_;
  const std::string program_;
  Descriptor socket_;
  pid_t process_ = -1;
  CompileAnswer problem_{Outcome::built, "", {}};  // why it does not work
  bool greeted_ = false, silent_ = false;
  std::atomic<bool> stopped_{false};
};

// The helper process's main loop: serves the owner at the other end of kCompilerSocket. Returns where there is no
// owner of the same build. Throws Error{no_device}.
void serve_as_compiler(const std::string& device_id);

// Builds and launches in this process, as the compilers' processes do. Throws cl::Error where it
// does not build; a launch that fails is passed over.
cl::Program build_here(const Context& context, const CompileRequest& request);

}  // namespace clinfer::ocl
