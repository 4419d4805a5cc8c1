// Lists of devices as a user of the program meets them. CLINFER_PROGRAM names it.
#include <sys/wait.h>

#include <cstdlib>

#include "engine/tools/output/npy.h"
#include "tests/engine/devices/two_devices.h"
#include "tests/says.h"

namespace clinfer {
namespace {

using test::says;

class DevicesCli : public test::TwoDevices {
 protected:
  void SetUp() override {
    if (!std::getenv("CLINFER_PROGRAM")) GTEST_SKIP() << "CLINFER_PROGRAM names no program";
    TwoDevices::SetUp();
    write_npy(folder_ / "in.npy", picture(3));
  }

  struct Outcome {
    int status = -1;
    std::string out, err;
  };
  Outcome run(const std::string& arguments, const std::string& environment = "") const {
    const std::string line = environment + " " + std::getenv("CLINFER_PROGRAM") + " " + arguments +
                             " >" + (folder_ / "out") + " 2>" + (folder_ / "err") + " </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "out"),
            read_file(folder_ / "err")};
  }
  Outcome infer_on(const std::string& device, const std::string& more = "",
                   const std::string& environment = "") const {
    return run("run " + test::ball_model() + " --input 0=" + (folder_ / "in.npy") +
                   " --output-dir " + (folder_ / "out.d") + " --device " + device + " " + more,
               environment);
  }

  TemporaryFolder folder_;
};

TEST_F(DevicesCli, NamesEachDevice) {
  const Outcome text = run("devices");
  EXPECT_TRUE(says(text.out, "CPU.0  " + name(0)));
  EXPECT_TRUE(says(text.out, "CPU.1  " + name(1)));
  EXPECT_TRUE(says(run("devices --json").out, "\"id\":\"CPU.1\""));
}

TEST_F(DevicesCli, EachListGivesTheSame) {
  for (const char* device :
       {"CPU.1", "MULTI:CPU.0,CPU.1", "AUTO:CPU.1,CPU.0", "AUTO", "HETERO:CPU.0,CPU.1"}) {
    const Outcome outcome = infer_on(device);
    EXPECT_EQ(outcome.status, 0) << device << ": " << outcome.err;
    EXPECT_EQ(outcome.err, "") << device;
    EXPECT_TRUE(same(read_npy(folder_ / "out.d/0.npy").to_floats(), wanted(3))) << device;
  }
}

TEST_F(DevicesCli, TargetFallbackNamesTheDevicesOfHetero) {
  const Outcome outcome = infer_on("HETERO", "--config TARGET_FALLBACK=CPU.1,CPU.0");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(read_npy(folder_ / "out.d/0.npy").to_floats(), wanted(3));
  const Outcome missing = infer_on("HETERO", "--config TARGET_FALLBACK=CPU.7");
  EXPECT_NE(missing.status, 0);
  EXPECT_TRUE(says(missing.err, "CPU.7"));
  EXPECT_TRUE(says(infer_on("CPU.1", "--config TARGET_FALLBACK=CPU.1").err,
                   "HETERO.TARGET_FALLBACK has no effect: device=CPU.1 does not use HETERO"));
}

TEST_F(DevicesCli, WithoutAGpuACpuTakesItsPlaceWithOneWarning) {
  if (!list_devices().devices[0].is_cpu) GTEST_SKIP() << "there is a GPU";
  for (const char* device : {"GPU", "GPU.0", "MULTI:GPU,CPU.1", "AUTO:GPU,CPU.1"}) {
    const Outcome outcome = infer_on(device);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(says(outcome.err, "there is no GPU: CPU.0, " + name(0)));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  const Outcome none = infer_on("GPU.1");
  EXPECT_NE(none.status, 0);
  EXPECT_TRUE(says(none.err, "no OpenCL device \"GPU.1\": found CPU.0 = " + name(0)));
  EXPECT_TRUE(says(none.err, "; CPU.1 = " + name(1)));
}

// Two GPUs: the layer presents PoCL's devices as such.
class DevicesCliGpus : public DevicesCli {
 protected:
  Outcome run_on_gpus(const std::string& arguments, const std::string& integrated) const {
    return run(arguments, std::string("OPENCL_LAYERS=") + CLINFER_GPU_LAYER +
                              " CLINFER_INTEGRATED=" + integrated);
  }
};

TEST_F(DevicesCliGpus, AreNumberedAsTheDriverListsThemTheIntegratedOneFirst) {
  for (const size_t integrated : {0, 1}) {
    const Outcome list = run_on_gpus("devices", "'" + name(integrated) + "'");
    EXPECT_TRUE(says(list.out, "GPU.0  " + name(integrated) + "\n    integrated GPU"));
    EXPECT_TRUE(says(list.out, "GPU.1  " + name(1 - integrated) + "\n    discrete GPU"));
  }
  const Outcome list = run_on_gpus("devices", "none");
  EXPECT_TRUE(says(list.out, "GPU.0  " + name(0) + "\n    discrete GPU"));
  EXPECT_TRUE(says(list.out, "GPU.1  " + name(1) + "\n    discrete GPU"));
}

TEST_F(DevicesCliGpus, GpuIsTheFirst) {
  for (const char* device : {"GPU", "GPU.0"}) {
    const Outcome outcome =
        run_on_gpus("bench " + test::ball_model() + " --seconds 0.05 --device " + device, "none");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(says(outcome.out, name(0) + " (GPU.0)"));
  }
}

// There are no records of PoCL's CPU as a GPU.
TEST_F(DevicesCliGpus, OfAnUnknownOneTheChoiceIsSaidToBeAModels) {
  const std::string said = "kernels are chosen by models of their time";
  EXPECT_TRUE(says(run_on_gpus("devices --kernels", "none").out, said));
  EXPECT_TRUE(says(run_on_gpus("devices --kernels --json", "none").out,
                   "\"measured\":false,\"kernels\":["));
  EXPECT_FALSE(says(run_on_gpus("devices", "none").out, said));
}

// Its compiler puts work-items into the lanes of vectors, and emulates fma().
TEST_F(DevicesCli, ACpuOfMesaGetsTheKernelsOfGpus) {
  const std::string refusal = "a CPU does as well";
  EXPECT_TRUE(says(run("devices --kernels").out, refusal));
  const std::string mesa = std::string("CLINFER_MESA=1 OPENCL_LAYERS=") + CLINFER_GPU_LAYER;
  const Outcome list = run("devices --kernels", mesa);
  EXPECT_TRUE(says(list.out, "CPU.0  " + name(0) + "\n    CPU of"));
  EXPECT_TRUE(says(list.out, "platform rusticl"));
  EXPECT_FALSE(says(list.out, refusal));
  // Mesa compiles kernels at their first launch, which may take longer than an inference. So does
  // PoCL here, on its device "pthread" while the program waits for the result, because compiler
  // processes launch kernels for PoCL only.
  const Outcome outcome =
      infer_on("CPU.0", "--config DEVICE_TIMEOUT=2000",
               mesa + " POCL_DEVICES=pthread XDG_CACHE_HOME=" + (folder_ / "empty"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<float> got = read_npy(folder_ / "out.d/0.npy").to_floats(), want = wanted(3);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST_F(DevicesCli, BenchCountsTheInferencesOfEachDevice) {
  const Outcome outcome = run("bench " + test::ball_model() +
                              " --device MULTI:CPU.0,CPU.1 --seconds 0.5 --frames 320x240:NV12 "
                              "--config CPU.1.THROUGHPUT_STREAMS=2 --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.out, "\"streams\":3,\"nireq\":6"));
  for (const int device : {0, 1})
    EXPECT_TRUE(says(outcome.out, "{\"id\":\"CPU." + std::to_string(device) + "\",\"name\":\"" +
                                      name(device) + "\",\"inferences\":"));
  EXPECT_EQ(outcome.out.front(), '{');
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
}

TEST_F(DevicesCli, ALostDeviceIsOneLineAndTheOthersGoOn) {
  const Outcome outcome =
      run("bench " + test::ball_model() + " --device MULTI:CPU.0,CPU.1 --seconds 2",
          "CLINFER_LOSE_DEVICE='" + name(1) + "' CLINFER_LOSE_AFTER=60");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.err, "CPU.1 (" + name(1)));
  EXPECT_TRUE(says(outcome.err, "is not used any more, the other devices go on"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST_F(DevicesCli, OneDeviceIsNeededForTuning) {
  const Outcome outcome = run("tune " + test::ball_model() + " --tuning-file " +
                              (folder_ / "t.json") + " --device MULTI:CPU.0,CPU.1");
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(says(outcome.err, "one device is needed here, not several"));
}

}  // namespace
}  // namespace clinfer
