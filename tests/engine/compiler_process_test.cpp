// Compilers in processes of their own, on whatever driver there is.
#include "engine/ocl/compiler_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/ocl/programs.h"
#include "tests/engine/test_files.h"

namespace clinfer::ocl {
namespace {

using namespace std::chrono_literals;

std::string program() {
  const char* path = std::getenv("CLINFER_PROGRAM");
  return path != nullptr ? path : "";
}

std::shared_ptr<const Context> context() { return Context::create(select_device("CPU")); }

// A program that never answers.
class Silent {
 public:
  Silent() { std::filesystem::permissions(path_, std::filesystem::perms::owner_all); }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  const std::string path_ = folder_.write("silent", "#!/bin/sh\nexec sleep 1000\n");
};

Instantiation writes(int value) {
  const std::string name = "writes_" + std::to_string(value);
  return {name, "__kernel void " + name + "(__global int* to) { *to = " + std::to_string(value) +
                    "; }\n"};
}

std::vector<Instantiation> writes_all(int count) {
  std::vector<Instantiation> all;
  for (int i = 0; i < count; ++i) all.push_back(writes(i));
  return all;
}

TEST(CompilerProcess, SaysWhetherItCompiled) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_PROGRAM names no program";
  CompilerProcess process(program(), "CPU");
  EXPECT_TRUE(process.compile("", "__kernel void k(__global int* a) { *a = 1; }"));
  EXPECT_FALSE(process.compile("", "__kernel void k(__global int* a) { *a = b; }"));
  EXPECT_TRUE(process.compile("-DB=2", "__kernel void k(__global int* a) { *a = B; }"));
}

TEST(CompilerProcess, OneThatDoesNotWorkCompilesNothing) {
  for (const char* none : {"/nonexistent/clinfer", "/bin/false", "/dev/null"}) {
    CompilerProcess process(none, "CPU");
    EXPECT_FALSE(process.compile("", "__kernel void k() {}")) << none;
    EXPECT_FALSE(process.compile("", "__kernel void k() {}")) << none;
  }
  if (program().empty()) return;
  CompilerProcess process(program(), "no such device");
  EXPECT_FALSE(process.compile("", "__kernel void k() {}"));
}

TEST(CompilerProcess, IsStoppedWhileItCompiles) {
  const Silent silent;
  CompilerProcess process(silent.path(), "CPU");
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    process.stop();
  });
  EXPECT_FALSE(process.compile("", "__kernel void k() {}"));
  EXPECT_FALSE(process.compile("", "__kernel void k() {}"));
}

TEST(CompilerProcess, LeavesNoProcessBehind) {
  const auto children = [] {
    size_t count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream in(thread.path() / "children");
      for (std::string pid; in >> pid;) ++count;
    }
    return count;
  };
  const size_t before = children();
  {
    const Silent silent;
    CompilerProcess process(silent.path(), "CPU");
    EXPECT_EQ(children(), before + 1);
  }
  EXPECT_EQ(children(), before);
}

TEST(CompilerProcess, ProgramsAreBuiltWhetherProcessesWorkOrNot) {
  const auto on = context();
  std::vector<Instantiation> wanted = writes_all(8);
  for (const std::string& path : {program(), std::string("/bin/false")}) {
    BuildOptions options;
    options.processes = CompilerProcesses{path, 2};
    const auto programs = Programs::build(*on, wanted, options);
    EXPECT_EQ(programs->counts().built, 8u);
    cl::CommandQueue queue(on->context, on->device.device);
    cl::Buffer buffer(on->context, CL_MEM_READ_WRITE, 4);
    for (int i = 0; i < 8; ++i) {
      cl::Kernel kernel = programs->kernel(wanted[static_cast<size_t>(i)].kernel_name);
      kernel.setArg(0, buffer);
      queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1));
      cl_int value = -1;
      queue.enqueueReadBuffer(buffer, CL_TRUE, 0, 4, &value);
      EXPECT_EQ(value, i);
    }
  }
}

TEST(CompilerProcess, ErrorsAreThoseOfTheOwnCompiler) {
  const auto on = context();
  std::vector<Instantiation> wanted = writes_all(8);
  wanted[5].text = "__kernel void writes_5() { nothing_there(); }";
  BuildOptions options;
  options.processes = CompilerProcesses{program(), 2};
  try {
    Programs::build(*on, wanted, options);
    FAIL() << "it was built";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_NE(std::string(error.what()).find("nothing_there"), std::string::npos) << error.what();
  }
}

TEST(CompilerProcess, WhoGivesUpDoesNotWaitForThem) {
  const auto on = context();
  const Silent silent;
  const auto begin = std::chrono::steady_clock::now();
  {
    BuildOptions options;
    options.processes = CompilerProcesses{silent.path(), 2};
    ProgramBuilder builder(*on, options);
    for (int i = 0; i < 8; ++i) builder.want(writes(100 + i));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace clinfer::ocl
