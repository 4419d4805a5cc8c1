// A compiler in a process of its own: both ends of the socket between them.
#include "engine/ocl/compiler_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

namespace clinfer::ocl {

namespace {

// A request is two texts, each behind its length; the answer is one byte.
constexpr char kBuilt = 1, kNotBuilt = 0;
constexpr uint64_t kLongest = 64 << 20;  // of a text

bool send_all(int socket, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = send(socket, at, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = recv(socket, at, size, 0);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool send_text(int socket, std::string_view text) {
  const uint64_t length = text.size();
  return send_all(socket, &length, sizeof length) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text) {
  uint64_t length = 0;
  if (!receive_all(socket, &length, sizeof length) || length > kLongest) return false;
  text.resize(length);
  return receive_all(socket, text.data(), text.size());
}

}  // namespace

CompilerProcess::CompilerProcess(const std::string& program, const std::string& device_id) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Files of the application must not stay open for as long as the process lives.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::string name = "clinfer", command = "--compiler", device = device_id;
  char* const arguments[] = {name.data(), command.data(), device.data(), nullptr};
  if (posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ) != 0)
    process_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
}

CompilerProcess::~CompilerProcess() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (socket_ >= 0) close(socket_);
}

bool CompilerProcess::compile(const std::string& options, const std::string& source) {
  char answer = kNotBuilt;
  return send_text(socket_, options) && send_text(socket_, source) &&
         receive_all(socket_, &answer, 1) && answer == kBuilt;
}

void CompilerProcess::stop() { shutdown(socket_, SHUT_RDWR); }

void serve_as_compiler(const std::string& device_id) {
  const Device& device = select_device(device_id);
  const cl::Context context(device.device);
  std::string options, source;
  while (receive_text(STDIN_FILENO, options) && receive_text(STDIN_FILENO, source)) {
    char answer = kNotBuilt;
    try {
      cl::Program program(context, source);
      program.build(device.device, options.c_str());
      std::vector<cl::Kernel> kernels;
      program.createKernels(&kernels);  // some drivers put the last step off until now
      answer = kBuilt;
    } catch (const cl::Error&) {
      // The owner will hear it from its own compiler.
    }
    if (!send_all(STDIN_FILENO, &answer, 1)) break;
  }
}

CompilerProcesses compiler_processes(const Context& context) {
  if (context.traits.vendor != Vendor::nvidia) return {};
  const char* off = std::getenv("CUDA_CACHE_DISABLE");
  if (off != nullptr && std::string_view(off) == "1") return {};
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (program.filename() != "clinfer") program = CLINFER_INSTALLED_PROGRAM;
  if (access(program.c_str(), X_OK) != 0) return {};
  // Each has a context of some hundred MiB; all together may take an eighth of the memory.
  constexpr uint64_t kMemory = uint64_t{512} << 20;
  const auto fit = static_cast<unsigned>(context.device.info.memory / 8 / kMemory);
  const unsigned most = std::min(fit, std::thread::hardware_concurrency());
  if (most < 2) return {};  // one is no faster than this process, and has to be started
  return {program, most};
}

}  // namespace clinfer::ocl
