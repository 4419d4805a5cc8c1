// Compilers in processes of their own, on whatever driver there is.
#include "engine/ocl/compiler/compiler_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "engine/ocl/compiler/compiler_messages.h"
#include "engine/ocl/compiler/compiler_pool.h"
#include "engine/ocl/compiler/programs.h"
#include "tests/another_user.h"
#include "tests/engine/test_files.h"

namespace clinfer::ocl {
namespace {

using namespace std::chrono_literals;

std::string path_in(const char* variable) {
  const char* path = std::getenv(variable);
  return path != nullptr ? path : "";
}
std::string program() { return path_in("CLINFER_COMPILER"); }
std::string clinfer() { return path_in("CLINFER_PROGRAM"); }

std::shared_ptr<const Context> context() { return Context::create(select_device("GPU")); }

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

using Outcome = CompileAnswer::Outcome;

const DeviceInfo& info() { return select_device("GPU").info; }

CompileRequest request(const std::string& source, const std::string& options = "") {
  return {options, source, "k", {}, false};
}

TEST(CompilerProcess, SaysWhetherItCompiled) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  CompilerProcess process(program(), info());
  const CompileAnswer built =
      process.compile(request("__kernel void k(__global int* a) { *a = 1; }"));
  EXPECT_EQ(built.outcome, Outcome::built) << built.text;
  const CompileAnswer refused =
      process.compile(request("__kernel void k(__global int* a) { *a = b; }"));
  EXPECT_EQ(refused.outcome, Outcome::refused);
  EXPECT_NE(refused.text.find("CL_BUILD_PROGRAM_FAILURE"), std::string::npos) << refused.text;
  EXPECT_NE(refused.text.find("undeclared identifier 'b'"), std::string::npos) << refused.text;
  EXPECT_EQ(
      process.compile(request("__kernel void k(__global int* a) { *a = B; }", "-DB=2")).outcome,
      Outcome::built);
}

TEST(CompilerProcess, OneThatDoesNotWorkCompilesNothing) {
  for (const char* none : {"/nonexistent/clinfer", "/bin/false", "/dev/null"}) {
    CompilerProcess process(none, info());
    for (int i = 0; i < 2; ++i) {
      const CompileAnswer answer = process.compile(request("__kernel void k() {}"));
      EXPECT_EQ(answer.outcome, Outcome::none) << none;
      EXPECT_NE(answer.text.find(none), std::string::npos) << answer.text;
    }
  }
  if (program().empty()) return;
  for (const auto change : {+[](DeviceInfo& other) { other.id = "no such device"; },
                            +[](DeviceInfo& other) { other.driver = "another driver"; }}) {
    DeviceInfo other = info();
    change(other);
    CompilerProcess process(program(), other);
    EXPECT_EQ(process.compile(request("__kernel void k() {}")).outcome, Outcome::none);
  }
}

TEST(CompilerProcess, IsStoppedWhileItCompiles) {
  const Silent silent;
  CompilerProcess process(silent.path(), info());
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    process.stop();
  });
  EXPECT_EQ(process.compile(request("__kernel void k() {}")).outcome, Outcome::stopped);
  EXPECT_EQ(process.compile(request("__kernel void k() {}")).outcome, Outcome::stopped);
}

// An owner may give up just when its compiler has answered. The next owner gets one that works.
TEST(CompilerProcess, TheNextOwnerGetsOneThatWorks) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  CompilerPool pool(info(), program(), 1);
  const int first = 0, second = 0;
  const std::atomic<bool> abandoned{false};
  auto process = pool.take(&first, abandoned);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->compile(request("__kernel void k() {}")).outcome, Outcome::built);
  pool.abandon(&first);
  pool.give_back(std::move(process), true);
  EXPECT_EQ(pool.compile(request("__kernel void k() {}"), &second, abandoned).outcome,
            Outcome::built);
}

// The binary holds the code that PoCL would else compile at the first launch.
TEST(CompilerProcess, GivesTheCodeThatALaunchNeeds) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  if (pocl_version(select_device("GPU")) == 0) GTEST_SKIP() << "the device is not PoCL's";
  CompilerProcess process(program(), info());
  const auto now = std::chrono::system_clock::now().time_since_epoch().count() % 1000000000;
  const auto compile = [&](const std::vector<TrialLaunch>& launches) {
    // A source that is not in PoCL's own cache, which leaves comments out of account.
    const std::string number = std::to_string(now + static_cast<long>(launches.size()));
    const std::string source =
        "__attribute__((reqd_work_group_size(4, 1, 1)))\n"
        "__kernel void k(__global int* a, int at, int n) { if "
        "(get_global_id(0) < n) a[at] = n + " +
        number + "; }\n";
    return process.compile({"", source, "k", launches, true});
  };
  const TrialLaunch narrow{{8, 1, 1}, {4, 1, 1}, {Argument::output(0, 4), Argument::value(7)}};
  TrialLaunch wide = narrow;
  wide.global[0] = 1 << 17;
  const CompileAnswer without = compile({}), with = compile({narrow}),
                      both = compile({narrow, wide});
  for (const CompileAnswer* answer : {&without, &with, &both})
    ASSERT_EQ(answer->outcome, Outcome::built) << answer->text;
  EXPECT_GT(with.binary.size(), without.binary.size() + 1000);
  EXPECT_GT(both.binary.size(), with.binary.size() + 1000);
}

// As a copy along a negative stride does.
TEST(CompilerProcess, TrialsMayReadBackwards) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  CompilerProcess process(program(), info());
  const CompileAnswer answer = process.compile(
      {"",
       "__attribute__((reqd_work_group_size(4, 1, 1)))\n__kernel void k(__global int* a, int at) "
       "{ a[at] = a[at - 5000000 * (int)get_local_id(0) - 1]; }\n",
       "k",
       {{{8, 1, 1}, {4, 1, 1}, {Argument::output(0, 4)}}},
       false});
  EXPECT_EQ(answer.outcome, Outcome::built) << answer.text;
}

// As a resize does, whose tables say where its input begins.
TEST(CompilerProcess, TrialsDoNotWriteWhatTheyRead) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  CompilerProcess process(program(), info());
  const CompileAnswer answer = process.compile(
      {"",
       "__attribute__((reqd_work_group_size(1, 1, 1)))\n__kernel void k(__global const int* in, "
       "int "
       "in_at, __global const int* table, int table_at, __global int* partial, int partial_at, "
       "__global int* out, int out_at) { for (int i = 0; i < 64; ++i) { out[out_at + i] = "
       "0x3f800000; "
       "partial[partial_at + i] = 0x3f800000; out[out_at + i] += in[in_at + 8192L * table[table_at "
       "+ "
       "i]]; } }\n",
       "k",
       {{{1, 1, 1},
         {1, 1, 1},
         {Argument::input(0, 4),
          Argument::packed(0, 4),
          {Argument::Kind::workspace, 0, 4},
          Argument::output(0, 4)}}},
       false});
  EXPECT_EQ(answer.outcome, Outcome::built) << answer.text;
}

size_t children() {
  size_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(thread.path() / "children");
    for (std::string pid; in >> pid;) ++count;
  }
  return count;
}

// Without those of pools that are gone, which go meanwhile.
size_t lasting_children() {
  size_t least = children();
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(2ms);
    least = std::min(least, children());
  }
  return least;
}

TEST(CompilerProcess, NoMoreThanAllowedStartAtATime) {
  const size_t before = lasting_children();
  const Silent silent;
  CompilerPool pool(info(), silent.path(), 4, 2);
  const int owner = 0;
  std::atomic<bool> abandoned{false};
  {
    std::vector<std::jthread> takers;
    for (int i = 0; i < 4; ++i)
      takers.emplace_back([&] {
        if (auto process = pool.take(&owner, abandoned)) pool.give_back(std::move(process), false);
      });
    while (children() < before + 2) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(children(), before + 2);
    abandoned = true;
    pool.abandon(&owner);
  }
  EXPECT_EQ(children(), before);
}

// A process that becomes free is taken instead of one that is still to start.
TEST(CompilerProcess, WhatIsReadyComesBeforeWhatStarts) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  const TemporaryFolder folder;
  const std::string path = folder.write("first-answers", "#!/bin/sh\nmkdir " + folder / "begun" +
                                                             " 2>/dev/null && exec " + program() +
                                                             " \"$@\"\nexec sleep 1000\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  CompilerPool pool(info(), path, 4, 1);
  const int owner = 0, silent = 0;
  const std::atomic<bool> abandoned{false};
  auto first = pool.take(&owner, abandoned);
  const CompilerProcess* const ready = first.get();
  const size_t before = lasting_children();
  std::jthread starts([&] { pool.give_back(pool.take(&silent, abandoned), false); });
  while (children() == before) std::this_thread::sleep_for(1ms);
  std::jthread waits([&] {
    auto second = pool.take(&owner, abandoned);
    EXPECT_EQ(second.get(), ready);
    pool.give_back(std::move(second), true);
    pool.abandon(&silent);
  });
  std::this_thread::sleep_for(50ms);
  pool.give_back(std::move(first), true);
}

TEST(CompilerProcess, TheLongestOfThoseThatWaitComesFirst) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  CompilerPool pool(info(), program(), 1);
  const int owner = 0;
  const std::atomic<bool> abandoned{false};
  auto process = pool.take(&owner, abandoned);
  std::mutex mutex;
  std::vector<size_t> order;
  {
    std::vector<std::jthread> waiting;
    for (const size_t length : {10, 30, 20}) {
      waiting.emplace_back([&, length] {
        auto taken = pool.take(&owner, abandoned, length);
        {
          const std::lock_guard lock(mutex);
          order.push_back(length);
        }
        pool.give_back(std::move(taken), true);
      });
      std::this_thread::sleep_for(20ms);
    }
    pool.give_back(std::move(process), true);
  }
  EXPECT_EQ(order, (std::vector<size_t>{30, 20, 10}));
}

TEST(CompilerProcess, LeavesNoProcessBehind) {
  const size_t before = lasting_children();
  {
    const Silent silent;
    CompilerProcess process(silent.path(), info());
    EXPECT_EQ(children(), before + 1);
  }
  EXPECT_EQ(children(), before);
}

TEST(CompilerProcess, ProgramsAreBuiltWhetherProcessesWorkOrNot) {
  const auto on = context();
  std::vector<Instantiation> wanted = writes_all(8);
  for (const std::string& path : {program(), std::string("/bin/false")}) {
    BuildOptions options;
    options.compilers = std::make_shared<CompilerPool>(on->device.info, path, 2);
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

// PoCL looks for each kernel that is released among all of its program's, from the newest on.
TEST(CompilerProcess, KernelsOfRequestsAreUsedAgain) {
  const auto on = context();
  const auto programs = Programs::build(*on, writes_all(1), {});
  const std::string name = writes_all(1)[0].kernel_name;
  cl::Kernel first = programs->take_kernel(name), second = programs->take_kernel(name);
  EXPECT_NE(first(), second());
  const cl_kernel known = first();
  programs->give_back(std::move(first));
  EXPECT_EQ(programs->take_kernel(name)(), known);
  EXPECT_NE(programs->take_kernel(name)(), second());
  EXPECT_THROW(programs->take_kernel("nothing"), Error);
}

// So that it does not begin when all others are done.
TEST(CompilerProcess, TheLongestProgramComesFirst) {
  const auto on = context();
  const TemporaryFolder folder;
  std::vector<Instantiation> wanted = writes_all(3);
  wanted[2].text += "// " + std::string(1000, 'x') + "\n";
  BuildOptions options;
  options.threads = 1;
  options.sources_dumps_dir = folder / "dumps";
  Programs::build(*on, wanted, options);
  const auto when = [&](const Instantiation& one) {
    return std::filesystem::last_write_time(folder /
                                            ("dumps/clDNN_program_" + one.kernel_name + ".cl"));
  };
  EXPECT_LT(when(wanted[2]), when(wanted[0]));
  EXPECT_LT(when(wanted[2]), when(wanted[1]));
}

TEST(CompilerProcess, ErrorsAreThoseOfTheOwnCompiler) {
  const auto on = context();
  std::vector<Instantiation> wanted = writes_all(8);
  wanted[5].text = "__kernel void writes_5() { nothing_there(); }";
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, program(), 2);
  try {
    Programs::build(*on, wanted, options);
    FAIL() << "it was built";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_NE(std::string(error.what()).find("nothing_there"), std::string::npos) << error.what();
  }
}

// A program that serves as a compiler, and ends by a signal at every request.
class Dying {
 public:
  Dying(const DeviceInfo& device, const std::string& signal)
      : path_(folder_.write("dying",
                            "#!/usr/bin/env python3\n"
                            "import os, signal, socket, struct\n"
                            "owner = socket.socket(fileno=3)\n"
                            "greeting = owner.recv(struct.unpack('Q', owner.recv(8))[0]) + b\"" +
                                answer_to("", device) +
                                "\"\n"
                                "owner.sendall(struct.pack('Q', len(greeting)) + greeting)\n"
                                "owner.recv(8)\n"
                                "os.kill(os.getpid(), signal." +
                                signal + ")\n")) {
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  const std::string path_;
};

TEST(CompilerProcess, ACrashIsAnError) {
  const auto on = context();
  const Dying crashing(on->device.info, "SIGSEGV");
  const Instantiation wanted = writes(1000);
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, crashing.path(), 2);
  try {
    Programs::build(*on, {&wanted, 1}, options);
    FAIL() << "it was built";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_failed);
    EXPECT_NE(std::string(error.what()).find("the compiler crashed: signal 11"), std::string::npos)
        << error.what();
  }
}

// The kernel is right, but must not run by itself.
TEST(CompilerProcess, ALaunchThatCrashesIsNotTriedAgain) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  const auto on = context();
  const Instantiation wanted{"wild",
                             "__kernel void wild(int n) { *(__global int*)(ulong)16 = n; }\n",
                             {{{1, 1, 1}, {1, 1, 1}, {Argument::value(1)}}}};
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, program(), 2);
  const TemporaryFolder folder;
  const ProgramCache cache(folder / "cache");
  options.cache = &cache;
  EXPECT_EQ(Programs::build(*on, {&wanted, 1}, options)->counts().built, 1u);
  // The process may have crashed over the binary, so that this process does not ask for it.
  EXPECT_FALSE(std::filesystem::exists(folder / "cache"));
}

TEST(CompilerProcess, AMissingProgramIsSaidOnce) {
  const auto on = context();
  const std::vector<Instantiation> wanted = writes_all(3);
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, "/nonexistent/clinfer", 2);
  EXPECT_EQ(options.compilers->take_problem(), "");
  EXPECT_EQ(Programs::build(*on, wanted, options)->counts().built, 3u);
  const std::string problem = options.compilers->take_problem();
  EXPECT_NE(problem.find("/nonexistent/clinfer"), std::string::npos) << problem;
  EXPECT_EQ(options.compilers->take_problem(), "");
}

// As the system kills where memory is short.
TEST(CompilerProcess, KilledOnesAreFollowedByFewerThenByNone) {
  const auto on = context();
  const Dying killed(on->device.info, "SIGKILL");
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, killed.path(), 6);
  EXPECT_EQ(Programs::build(*on, writes_all(8), options)->counts().built, 8u);
  EXPECT_TRUE(options.compilers->has_problem());
  const int owner = 0;
  const std::atomic<bool> abandoned{false};
  const CompileAnswer answer =
      options.compilers->compile(request("__kernel void k() {}"), &owner, abandoned);
  EXPECT_EQ(answer.outcome, Outcome::none);
  EXPECT_NE(answer.text.find("signal 9"), std::string::npos) << answer.text;
}

// An application that ignores SIGCHLD, or that waits for all children, takes the status of ours.
TEST(CompilerProcess, ACrashIsToldFromAKillWithoutAStatus) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  const auto on = context();
  const Dying killed(on->device.info, "SIGKILL");
  const auto before = signal(SIGCHLD, SIG_IGN);
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, killed.path(), 6);
  size_t built = 0;
  EXPECT_NO_THROW(built = Programs::build(*on, writes_all(8), options)->counts().built);
  CompilerProcess process(program(), on->device.info);
  CompileRequest wild = request("__kernel void k(int n) { *(__global int*)(ulong)16 = n; }");
  wild.launches = {{{1, 1, 1}, {1, 1, 1}, {Argument::value(1)}}};
  const CompileAnswer answer = process.compile(wild);
  signal(SIGCHLD, before);
  EXPECT_EQ(built, 8u);
  EXPECT_EQ(answer.outcome, Outcome::crashed);
  EXPECT_EQ(answer.text.find("the compiler crashed: signal 11"), 0u) << answer.text;
}

TEST(CompilerProcess, OneThatStandsStillIsGivenUp) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  CompilerPool pool(info(), program(), 2);
  const int owner = 0;
  const std::atomic<bool> abandoned{false};
  auto process = pool.take(&owner, abandoned);
  ASSERT_TRUE(process);
  std::string pid;
  std::ifstream("/proc/self/task/" + std::to_string(getpid()) + "/children") >> pid;
  ASSERT_EQ(kill(std::stoi(pid), SIGSTOP), 0);
  pool.give_back(std::move(process), true);
  // A request that does not fit into the socket, too.
  const std::string source = "__kernel void k() {} // " + std::string(4 << 20, 'x');
  EXPECT_EQ(pool.compile(request(source), &owner, abandoned).outcome, Outcome::built);
  EXPECT_FALSE(pool.has_problem()) << "another one compiled it";
}

TEST(CompilerProcess, WhatNeverAnswersIsGivenUp) {
  const auto on = context();
  const Silent silent;
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, silent.path(), 4);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Programs::build(*on, writes_all(8), options)->counts().built, 8u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
  EXPECT_TRUE(options.compilers->has_problem());
}

// Nothing but its owner, of the same build, makes it work.
TEST(CompilerProcess, ItServesNobodyElse) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  EXPECT_EQ(WEXITSTATUS(std::system((program() + " CPU.0 2>/dev/null").c_str())), 2);
  EXPECT_EQ(WEXITSTATUS(std::system((program() + " CPU.0 3</dev/null 2>/dev/null").c_str())), 2);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::string device = info().id;  // a fork may not ask for devices
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], kCompilerSocket);
    if (ends[0] != kCompilerSocket) close(ends[0]);
    close(STDERR_FILENO);
    execl(program().c_str(), "clinfer-compiler", device.c_str(), nullptr);
    _exit(99);
  }
  close(ends[1]);
  std::string other = new_greeting(), answer;
  EXPECT_TRUE(is_of_this_build(other));
  other[other.find('|') + 1] ^= 1;
  EXPECT_FALSE(is_of_this_build(other));
  EXPECT_TRUE(send_message(ends[0], other));
  EXPECT_FALSE(receive_message(ends[0], answer));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 2);
  close(ends[0]);
  EXPECT_NE(new_greeting(), new_greeting());
}

TEST(CompilerProcess, TheProgramIsFoundInTheBuildFolder) {
  if (program().empty()) GTEST_SKIP() << "CLINFER_COMPILER names no program";
  EXPECT_EQ(find_compiler(), std::filesystem::path(program()).lexically_normal());
}

// A program that is called clinfer or clinfer-compiler and lies where one might be looked for.
TEST(CompilerProcess, NothingOfAnotherUsersIsStarted) {
  NEEDS_ANOTHER_USER();
  if (clinfer().empty()) GTEST_SKIP() << "CLINFER_PROGRAM names no program";
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  for (const char* made : {"engine/dir", "engine/tools"}) fs::create_directories(folder / made);
  // The program finds its library where it does in a build folder.
  fs::copy_file(clinfer(), folder / "engine/dir/application");
  fs::copy_file(fs::path(clinfer()).parent_path().parent_path() / "libclinfer.so.0",
                folder / "engine/libclinfer.so.0");
  for (const char* planted :
       {"engine/clinfer", "engine/clinfer-compiler", "engine/dir/clinfer",
        "engine/dir/clinfer-compiler", "engine/tools/clinfer", "engine/tools/clinfer-compiler"}) {
    const std::string path = folder.write(planted, "#!/bin/sh\ntouch " + folder / "started" + "\n");
    fs::permissions(path, fs::perms::owner_all);
    ASSERT_EQ(chown(path.c_str(), test::kAttacker, test::kAttacker), 0);
  }
  const std::string command = "env -u LD_LIBRARY_PATH POCL_CACHE_DIR=" + folder / "pocl" +
                              " XDG_CACHE_HOME=" + folder / "cache" + " " +
                              folder / "engine/dir/application" + " bench " + CLINFER_SOURCE_DIR +
                              "/pipelines/models/ball.xml --device " + info().id +
                              " --seconds 0.01 >" + folder / "output" + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder / "output");
  EXPECT_FALSE(fs::exists(folder / "started"));
  const std::string output = read_file(folder / "output");
  EXPECT_NE(output.find("engine/tools/clinfer-compiler, which is not started: "), std::string::npos)
      << output;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they want to be first

// The first run of a process compiles, the others find what it made.
const TemporaryFolder& bench_folder() {
  static const TemporaryFolder folder;
  return folder;
}

// Status and output of `clinfer bench` of the ball with a library preloaded.
struct Ended {
  int status = -1;
  std::string output;
};
Ended bench_with(const std::string& variables, const std::string& options) {
  const TemporaryFolder& folder = bench_folder();
  const std::string model = std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
  const std::string command = "POCL_CACHE_DIR=" + folder / "pocl" +
                              " XDG_CACHE_HOME=" + folder / "" + " " + variables + " " + clinfer() +
                              " bench " + model + " --device " + info().id + " --seconds 0.01 " +
                              options + " >" + folder / "output" + " 2>&1";
  Ended run;
  run.status = std::system(command.c_str());
  run.output = read_file(folder / "output");
  return run;
}

TEST(CompilerProcess, TheApplicationItselfNeverCompiles) {
  const char* library = std::getenv("CLINFER_COUNT_COMPILERS");
  if (library == nullptr || clinfer().empty()) GTEST_SKIP() << "CLINFER_COUNT_COMPILERS is not set";
  const std::string lines = bench_folder() / "lines";
  const Ended run = bench_with("COUNT_COMPILERS=" + lines + " LD_PRELOAD=" + library,
                               "--frames 320x240:NV12 --config PERSISTENT_KERNEL=NO");
  EXPECT_EQ(run.status, 0) << run.output;
  size_t here = 0, elsewhere = 0;
  std::ifstream in(lines);
  for (std::string line; std::getline(in, line);)
    (line.find("clinfer-compiler ") == std::string::npos ? here : elsewhere)++;
  if (here + elsewhere == 0) GTEST_SKIP() << "the driver has no LLVM that this test can count";
  EXPECT_EQ(here, 0u);
  EXPECT_GT(elsewhere, 10u);
}

// From the n-th thread on, none can be had.
TEST(CompilerProcess, FewThreadsAreEnoughOrAnError) {
  const char* library = std::getenv("CLINFER_FAIL_THREADS");
  if (library == nullptr || clinfer().empty()) GTEST_SKIP() << "CLINFER_FAIL_THREADS is not set";
  for (int n = 20; n >= 0; --n) {
    const Ended run =
        bench_with("FAIL_THREADS=" + std::to_string(n) + " LD_PRELOAD=" + library, "");
    const bool one_line = std::count(run.output.begin(), run.output.end(), '\n') == 1 &&
                          run.output.starts_with("clinfer: ");
    EXPECT_TRUE(run.status == 0 || (one_line && run.output.find("thread") != std::string::npos))
        << n << " threads: status " << run.status << "\n"
        << run.output;
  }
}

#endif

TEST(CompilerProcess, WhoGivesUpDoesNotWaitForThem) {
  const auto on = context();
  const Silent silent;
  const auto begin = std::chrono::steady_clock::now();
  {
    BuildOptions options;
    options.compilers = std::make_shared<CompilerPool>(on->device.info, silent.path(), 2);
    ProgramBuilder builder(*on, options);
    for (int i = 0; i < 8; ++i) builder.want(writes(100 + i));
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);  // the silent one never answers
}

bool is_fork = false;

}  // namespace
}  // namespace clinfer::ocl

// Asked by LeakSanitizer at exit: what the threads of the parent hold is no leak of a fork.
extern "C" int __lsan_is_turned_off() { return clinfer::ocl::is_fork; }

namespace clinfer::ocl {
namespace {

// exit() of a fork does not wait for threads that it does not have.
TEST(CompilerProcess, AForkMeanwhileEnds) {
  const auto on = context();
  const Silent silent;
  BuildOptions options;
  options.compilers = std::make_shared<CompilerPool>(on->device.info, silent.path(), 2);
  ProgramBuilder builder(*on, options);
  for (int i = 0; i < 4; ++i) builder.want(writes(200 + i));
  std::this_thread::sleep_for(50ms);
  const pid_t child = fork();
  if (child == 0) {
    is_fork = true;
    alarm(60);
    std::exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

}  // namespace
}  // namespace clinfer::ocl
