// Kernels that several threads of the application build at once, where no process compiles for them.
#include <chrono>
#include <latch>
#include <thread>

#include "engine/ocl/compiler/compiler_pool.h"
#include "engine/ocl/compiler/programs.h"
#include "tests/engine/devices/two_devices.h"
#include "tests/temporary_folder.h"

namespace clinfer::ocl {
namespace {

class BuildHere : public test::TwoDevices {};

// Elements of one model that start together build the same kernels.
TEST_F(BuildHere, ThreadsMayBuildTheSameKernels) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count() % 1000000000;
  for (int round = 0; round < 6; ++round) {
    const std::string name = "k" + std::to_string(now + round);
    std::vector<Instantiation> wanted;
    for (int i = 0; i < 4; ++i) {
      const std::string own = name + "_" + std::to_string(i);
      const TrialLaunch narrow{{8, 1, 1}, {4, 1, 1}, {Argument::output(0, 4), Argument::value(7)}};
      TrialLaunch wide = narrow;
      wide.global[0] = 1 << 17;
      wanted.push_back(
          {own,
           "__attribute__((reqd_work_group_size(4, 1, 1)))\n__kernel void " + own +
               "(__global int* a, int at, int n) { if (get_global_id(0) < n) a[at] = n; }\n",
           {narrow, wide}});
    }
    const TemporaryFolder folder;
    const ProgramCache cache(folder / "cache");
    std::latch all_there(4);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        const auto on = Context::create(select_device(round % 2 ? "CPU.1" : "CPU.0"));
        BuildOptions options;
        options.compilers = std::make_shared<CompilerPool>(on->device.info, "/bin/false", 2);
        options.cache = &cache;
        all_there.arrive_and_wait();
        const auto counts = Programs::build(*on, wanted, options)->counts();
        EXPECT_EQ(counts.built + counts.cached, 4u);
      });
  }
}

}  // namespace
}  // namespace clinfer::ocl
