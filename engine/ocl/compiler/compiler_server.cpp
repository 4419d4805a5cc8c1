// The process's side of a compiler in a separate process.
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "engine/ocl/amx.h"
#include "engine/ocl/compiler/compiler_messages.h"
#include "engine/ocl/compiler/marked_ptx.h"
#include "kernels/base/system/files.h"

namespace clinfer::ocl {

namespace {

namespace fs = std::filesystem;

// One large allocation of zeros for the tensors of trials; the system provides only the pages that
// are used.
class AnyMemory {
 public:
  explicit AnyMemory(const cl::Context& context, const cl::Device& device) {
    for (bytes_ =
             std::min<size_t>(device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>(), size_t{64} << 30);
         bytes_ > (size_t{1} << 20); bytes_ /= 2) {
      memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory_ != MAP_FAILED) break;
    }
    if (memory_ == MAP_FAILED) throw cl::Error(CL_OUT_OF_HOST_MEMORY, "mmap");
    buffer_ = cl::Buffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes_, memory_);
  }
  ~AnyMemory() {
    buffer_ = cl::Buffer();
    munmap(memory_, bytes_);
  }
  AnyMemory(const AnyMemory&) = delete;
  AnyMemory& operator=(const AnyMemory&) = delete;
  const cl::Buffer& buffer() const { return buffer_; }
  // Returns where a tensor may begin, in elements. It is in the middle, because kernels also read
  // backwards.
  cl_int middle() const {
    constexpr size_t kMost = size_t{1} << 28;  // far below the limit of an int
    constexpr size_t kLargest = 16;            // bytes of the largest element
    return static_cast<cl_int>(std::min(bytes_ / 2 / kLargest, kMost) / 64 * 64);
  }

 private:
  size_t bytes_ = 0;
  void* memory_ = MAP_FAILED;
  cl::Buffer buffer_;
};

void launch_once(const cl::Context& context, const cl::Device& device, cl::Kernel& kernel,
                 const TrialLaunch& launch) {
  // Keeps inputs apart from outputs, so that they stay zeros: inputs may hold indices into other
  // tensors, and overwritten ones would point anywhere.
  const AnyMemory inputs(context, device), outputs(context, device), workspace(context, device);
  std::vector<cl::Image2D> images;  // a kernel does not keep its arguments alive
  cl_uint index = 0;
  for (const Argument& argument : launch.arguments) {
    if (argument.kind == Argument::Kind::value) {
      kernel.setArg(index++, argument.bytes.size(), argument.bytes.data());
    } else if (argument.kind == Argument::Kind::image) {
      images.emplace_back(context, CL_MEM_READ_WRITE, cl::ImageFormat(CL_RGBA, CL_UNORM_INT8), 16,
                          16);
      kernel.setArg(index++, images.back());
    } else {
      const AnyMemory& memory = argument.kind == Argument::Kind::output      ? outputs
                                : argument.kind == Argument::Kind::workspace ? workspace
                                                                             : inputs;
      kernel.setArg(index++, memory.buffer());
      if (argument.address_bytes == 0) kernel.setArg(index++, memory.middle());
    }
  }
  // Launches one work-group, or as many as in earnest where the width matters.
  std::array<size_t, 3> global = launch.local;
  for (size_t d = 0; d < 3; ++d)
    if (launch.global[d] >= kWideLaunch) global[d] = launch.global[d];
  const cl::CommandQueue queue(context, device);
  const auto range = [](const std::array<size_t, 3>& items) {
    return cl::NDRange(items[0], items[1], items[2]);
  };
  queue.enqueueNDRangeKernel(kernel, range(launch.offset), range(global), range(launch.local));
  queue.finish();
}

cl::Program build(const cl::Context& context, const cl::Device& device,
                  const CompileRequest& request) {
  cl::Program program(context, request.source);
  program.build(device, request.options.c_str());
  if (has_marked_ptx(request.source))
    program = build_marked_ptx(context, device, program, request.options);
  // For some drivers the last step of compiling.
  cl::Kernel kernel(program, request.kernel_name.c_str());
  try {
    for (const TrialLaunch& launch : request.launches) launch_once(context, device, kernel, launch);
  } catch (const cl::Error&) {
    // The driver compiles it when it is launched in earnest.
  }
  return program;
}

// Returns the folder where PoCL keeps compiled kernels.
fs::path pocl_cache() {
  const auto of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string own = of("POCL_CACHE_DIR"); !own.empty()) return own;
  if (const std::string user = of("XDG_CACHE_HOME"); !user.empty()) return user + "/pocl/kcache";
  return of("HOME") + "/.cache/pocl/kcache";
}

// Saves PoCL from compiling for work-groups of any size, which it does before it gives a binary and
// which takes as long as the rest. Our kernels have one size each, so that this code would never
// run. While the binary is made, the code for their size stands in its place.
class NoCodeForAnySize {
 public:
  explicit NoCodeForAnySize(const std::string& kernel) {
    std::error_code error;
    const fs::path cache = pocl_cache();
    for (const std::string& group : names_in(cache))
      for (const std::string& program : names_in(cache / group))
        if (const fs::path sizes = cache / group / program / kernel; fs::is_directory(sizes, error))
          stand_in(sizes);
  }
  ~NoCodeForAnySize() {
    std::error_code error;
    for (const fs::path& folder : made_) fs::remove_all(folder, error);
  }
  NoCodeForAnySize(const NoCodeForAnySize&) = delete;
  NoCodeForAnySize& operator=(const NoCodeForAnySize&) = delete;

 private:
  void stand_in(const fs::path& sizes) {
    std::error_code error;
    const fs::path any = sizes / "0-0-0";
    const std::string file = sizes.filename().string() + ".so";
    for (const std::string& size : names_in(sizes)) {
      const fs::path code = sizes / size / file;
      if (sizes / size == any || !fs::exists(code, error) || !fs::create_directory(any, error))
        continue;
      made_.push_back(any);
      fs::create_hard_link(code, any / file, error);
    }
  }
  std::vector<fs::path> made_;
};

std::vector<unsigned char> binary_of(const cl::Program& program, const Device& device,
                                     const std::string& kernel) {
  std::optional<NoCodeForAnySize> quickly;
  if (pocl_version(device) != 0) quickly.emplace(kernel);
  try {
    const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
    return binaries.empty() ? std::vector<unsigned char>{} : binaries[0];
  } catch (const cl::Error&) {
    return {};  // some drivers give none
  }
}

CompileAnswer compile(const cl::Context& context, const Device& device,
                      const CompileRequest& request) {
  CompileAnswer answer{CompileAnswer::Outcome::built, "", {}};
  try {
    const cl::Program program = build(context, device.device, request);
    if (request.wants_binary) answer.binary = binary_of(program, device, request.kernel_name);
  } catch (const cl::BuildError& error) {
    answer = {CompileAnswer::Outcome::refused, "(" + error_name(error.err()) + "): ", {}};
    for (const auto& [where, log] : error.getBuildLog()) answer.text += log;
  } catch (const cl::Error& error) {
    answer = {CompileAnswer::Outcome::refused, "(" + error_name(error.err()) + ")", {}};
  }
  return answer;
}

// Ends the process, whatever it is doing, once its owner has closed the socket or ended.
void end_with_owner() {
  const pid_t owner = getppid();
  try {
    std::thread([owner] {
      // In milliseconds; a fork of the owner may keep the socket open.
      constexpr int kAskAgain = 1000;
      for (;;) {
        pollfd socket{kCompilerSocket, POLLRDHUP, 0};
        if (poll(&socket, 1, kAskAgain) > 0 || getppid() != owner) _exit(0);
      }
    }).detach();
  } catch (const std::system_error&) {
    // Without this thread the process ends after the compilation that it has begun.
  }
}

// A message that this process sends when it dies, as an answer. The owner might not learn otherwise
// how it ended, for example if the application ignores SIGCHLD or takes the status of every child.
struct LastWords {
  int signal;  // 0: exit(), with which LLVM ends in a fatal error
  std::string message;
};
std::array<LastWords, 5> last_words{
    {{SIGSEGV, ""}, {SIGBUS, ""}, {SIGILL, ""}, {SIGABRT, ""}, {0, ""}}};

void say_last_words(int signal) {
  for (const LastWords& words : last_words)
    if (words.signal == signal) send_message(kCompilerSocket, words.message);
}

void announce_death() {
  // Uses another stack, because the normal one may have overflowed.
  static std::array<char, 1 << 16> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = say_last_words;
  // Handles a signal once and then restores the default: the instruction is repeated, and abort()
  // raises the signal again.
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  for (LastWords& words : last_words) {
    const std::string how = words.signal == 0 ? "exit()"
                                              : "signal " + std::to_string(words.signal) + ", " +
                                                    sigdescr_np(words.signal);
    words.message =
        pack(CompileAnswer{CompileAnswer::Outcome::crashed, "the compiler crashed: " + how, {}});
    if (words.signal != 0) sigaction(words.signal, &action, nullptr);
  }
  std::atexit([] { say_last_words(0); });
}

}  // namespace

std::unique_lock<std::mutex> alone_with_driver(const Device& device) {
  static auto& mutex = *new std::mutex;
  return pocl_version(device) != 0 ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

cl::Program build_here(const Context& context, const CompileRequest& request) {
  const auto alone = alone_with_driver(context.device);
  return build(context.context, context.device.device, request);
}

void serve_as_compiler(const std::string& device_id) {
  constexpr int kPatience = 10000;  // ms
  const Patience patience = [](short events) {
    pollfd socket{kCompilerSocket, events, 0};
    return poll(&socket, 1, kPatience) > 0;
  };
  std::string greeting;
  if (!receive_message(kCompilerSocket, greeting, patience, kLongestGreeting) ||
      !is_of_this_build(greeting))
    return;
  // Ignores the signal, so that a driver that writes more than the user may gets an error from its
  // own call.
  std::signal(SIGXFSZ, SIG_IGN);
  end_with_owner();
  const Device& device = select_device(device_id);
  const cl::Context context(device.device);
  amx_problem();  // asks for AMX, which kernels in trials may use
  if (!send_message(kCompilerSocket, answer_to(greeting, device.info))) return;
  announce_death();
  std::string message;
  CompileRequest request;
  while (receive_message(kCompilerSocket, message) && unpack(message, request))
    if (!send_message(kCompilerSocket, pack(compile(context, device, request)))) break;
  _exit(0);  // does not wait for the drivers to clean up
}

}  // namespace clinfer::ocl
