// A compiler in a process of its own, for drivers that compile one program at a time in a process.
#pragma once

#include <sys/types.h>

#include <string>

#include "engine/ocl/device.h"

namespace clinfer::ocl {

// NVIDIA's driver builds one program at a time, on however many threads, and keeps what it built on
// disk for all processes of the user. What another process has built is there in milliseconds.
//
// The process is the clinfer program: `clinfer --compiler DEVICE`, which takes sources from its
// standard input until that ends. It dies with its owner.
class CompilerProcess {
 public:
  // `program`: path of clinfer. Starting it fails silently: then nothing is ever compiled.
  CompilerProcess(const std::string& program, const std::string& device_id);
  ~CompilerProcess();  // does not wait for what is being compiled
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  // Builds a program there; blocks. False when it did not succeed, for whatever reason: the caller
  // finds it out for itself by building. One thread at a time.
  bool compile(const std::string& options, const std::string& source);
  // Any thread: compile() returns false, now and later.
  void stop();

 private:
  int socket_ = -1;
  pid_t process_ = -1;
};

// The other end: serves whoever is at the other side of standard input. Throws Error{no_device}.
void serve_as_compiler(const std::string& device_id);

// How many such processes are worth having for a context, and the program that they run: none
// where the driver compiles side by side, or keeps nothing on disk, or clinfer is not to be found
// (it is this process, or installed).
struct CompilerProcesses {
  std::string program;
  unsigned most = 0;
};
CompilerProcesses compiler_processes(const Context& context);

}  // namespace clinfer::ocl
