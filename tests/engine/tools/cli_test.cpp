// The `clinfer` program as a user meets it: exit status, one line on stderr, files written.
// CLINFER_PROGRAM names it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "engine/tools/output/npy.h"
#include "kernels/base/system/processors.h"
#include "tests/engine/ball_model.h"
#include "tests/engine/loop_model.h"
#include "tests/engine/test_files.h"
#include "tests/foreign_tuning_file.h"
#include "tests/host_layer_model.h"
#include "tests/small_ir.h"

namespace clinfer {
namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
};

// Standard error without the line that is there wherever no GPU is.
std::string without_stand_in(const std::string& err) {
  const size_t at = err.find("clinfer: there is no GPU: ");
  return at == std::string::npos ? err : err.substr(0, at) + err.substr(err.find('\n', at) + 1);
}

Outcome run_line(std::string line) {
  const TemporaryFolder folder;
  line += " >" + (folder / "out") + " 2>" + (folder / "err") + " </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "out"),
          without_stand_in(read_file(folder / "err"))};
}

// Words are quoted for the shell.
Outcome run(const std::vector<std::string>& words) {
  std::string line = std::getenv("CLINFER_PROGRAM");
  for (const std::string& word : words) line += " '" + word + "'";
  return run_line(line);
}

// Fails with that status and one line that holds `part`.
void expect_refused(const std::vector<std::string>& words, const std::string& part, int status) {
  const Outcome outcome = run(words);
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::getenv("CLINFER_PROGRAM")) GTEST_SKIP() << "CLINFER_PROGRAM names no program";
    std::vector<float> data(12);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    input_ = folder_ / "in.npy";
    write_npy(input_, Tensor::of(ElementType::f32, {2, 6}, data));
  }
  const std::string model_ = test_data("models/reshape.xml");
  TemporaryFolder folder_;
  std::string input_;
};

// `clinfer graph` says which loops the device runs; a warning names those that stay on the host.
TEST_F(Cli, SaysWhereLoopsRun) {
  folder_.write("loop.xml", test::loop_model());
  folder_.write("rest.xml", test::loop_model("end='-1'", "end='2'"));
  folder_.write("loop.bin", "");
  folder_.write("rest.bin", "");
  const std::vector<std::string> rolled{"--config", "ENABLE_LOOP_UNROLLING=NO"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), rolled.begin(), rolled.end());
    return run(words);
  };
  const auto bench = [&](const std::string& model) {
    return with({"bench", folder_ / model, "--seconds", "0.01", "--sync"});
  };
  Outcome outcome = bench("loop.xml");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  outcome = with({"graph", folder_ / "loop.xml"});
  EXPECT_NE(outcome.out.find("on the device: 3 iterations of 1 launch"), std::string::npos)
      << outcome.out << outcome.err;
  outcome = bench("rest.xml");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("runs on the host, in one thread: an input's parts leave gaps"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Cli, SaysWhatThereIs) {
  EXPECT_EQ(run({"--help"}).status, 0);
  const Outcome help = run({"bench", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("--perf-count"), std::string::npos);
  expect_refused({}, "a command is needed", 2);
  EXPECT_TRUE(run({"--version"}).out.starts_with("clinfer "));
  expect_refused({"bench", model_, "--device", "gpu"}, "its name here is GPU", 2);
  expect_refused({"bench", model_, "--device", "cuda:0"}, "its name here is GPU.0", 2);
  expect_refused({"teleport"}, "devices, run, bench, tune, graph", 2);
  expect_refused({"run", model_, "--tepid"}, "--output-dir", 2);
  expect_refused({"run"}, "MODEL is missing", 2);
  expect_refused({"run", model_, "more"}, "more", 2);
  expect_refused({"bench", model_, "--seconds", "-1"}, "--seconds", 2);
  expect_refused({"bench", model_, "--nireq", "0"}, "--nireq", 2);
  expect_refused({"bench", model_, "--nireq", "257"}, "from 1 to 256", 2);
  expect_refused({"bench", model_, "--streams", "65"}, "a device takes up to 64", 2);
  expect_refused({"bench", model_, "--config", "GPU_THROUGHPUT_STREAMS=65"},
                 "a device takes up to 64", 2);
  expect_refused({"bench", model_, "--frames", "640:NV12"}, "WIDTHxHEIGHT", 2);
  expect_refused({"bench", model_, "--frames", "640x480:P010"}, "NV12, NV21", 2);
  expect_refused({"bench", model_, "--config", "NOTHING"}, "KEY=VALUE", 2);
}

TEST_F(Cli, ListsDevices) {
  const Outcome text = run({"devices"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("compute units"), std::string::npos);
  const Outcome json = run({"devices", "--json"});
  EXPECT_TRUE(json.out.starts_with("{\"devices\":[{\"id\":\"")) << json.out;
  EXPECT_TRUE(json.out.ends_with("]}\n"));
  const Outcome kernels = run({"devices", "--kernels"});
  EXPECT_NE(kernels.out.find("used: conv_tile"), std::string::npos) << kernels.out;
  EXPECT_NE(kernels.out.find("not:  conv_mma: the device has no matrix instructions of warps"),
            std::string::npos)
      << kernels.out;
  EXPECT_NE(run({"devices", "--json", "--kernels"}).out.find("\"families\":[\"conv_tile\""),
            std::string::npos);
}

TEST_F(Cli, RunsAModel) {
  for (const std::string key : {"0", "data"}) {
    const Outcome outcome =
        run({"run", model_, "--input", key + "=" + input_, "--output-dir", folder_ / "new/out"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "0 turned f32 [2,3,2]\n1 half f32 [2]\n");
    EXPECT_EQ(read_npy(folder_ / "new/out/0.npy").to_floats(),
              (std::vector<float>{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));
    EXPECT_EQ(read_npy(folder_ / "new/out/1.npy").to_floats(), (std::vector<float>{0.5, -2}));
  }
}

TEST_F(Cli, GivesInputsOtherShapes) {
  write_npy(input_, Tensor::allocate(ElementType::f32, {4, 6}));
  const auto with = [&](const std::string& shape) {
    return std::vector<std::string>{"run",     model_,        "--reshape",    shape,
                                    "--input", "0=" + input_, "--output-dir", folder_ / "out"};
  };
  const Outcome outcome = run(with("data=4,6"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "0 turned f32 [4,3,2]\n1 half f32 [2]\n");
  expect_refused(with("0=4"), "another number of dimensions", 2);
  expect_refused(with("0=4,0"), "numbers from 1", 2);
  expect_refused(with("9=4,6"), "no input \"9\"", 2);
  expect_refused(with("0=4,7"), "does not allow inputs of [4,7]", 1);
}

TEST_F(Cli, ComparesLayers) {
  const std::string out = folder_ / "out";
  ASSERT_EQ(run({"run", model_, "--input", "0=" + input_, "--output-dir", out}).status, 0);
  const Outcome outcome = run({"run", model_, "--input", "0=" + input_, "--compare-with", out});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("11         0          0          turned (Transpose)"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("output 0 against " + out + "/0.npy: error 0, largest value 11\n"),
            std::string::npos)
      << outcome.out;
  expect_refused({"run", model_, "--input", "0=" + input_, "--compare-with", folder_ / "nowhere"},
                 "there is no 0.npy", 1);
}

TEST_F(Cli, TakesPlanesOfAnyEvenSize) {
  const std::string ball = std::string(CLINFER_SOURCE_DIR) + "/pipelines/models/ball.xml";
  const std::string y = folder_ / "y.npy", uv = folder_ / "uv.npy", out = folder_ / "out";
  write_npy(y, Tensor::allocate(ElementType::u8, {1, 1, 50, 642}));
  write_npy(uv, Tensor::allocate(ElementType::u8, {1, 2, 25, 321}));
  const std::vector<std::string> words{"run",     ball,     "--config",     "NV12_TWO_INPUTS=YES",
                                       "--input", "0=" + y, "--output-dir", out,
                                       "--input"};
  const auto with_last = [&](const std::string& last) {
    std::vector<std::string> all = words;
    all.push_back(last);
    return all;
  };
  const Outcome outcome = run(with_last("1=" + uv));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(out + "/0.npy"));
  expect_refused(with_last("1=" + y), "needs [1,2,96,128]", 2);
}

// A network that gives its picture back.
TEST_F(Cli, ConvertsPlanesExactly) {
  const Shape picture{1, 3, 2, 2};
  test::SmallIr ir("same");
  ir.result(ir.add("ReLU", 1, "", {ir.input(picture)}, picture, "relu"));
  const std::string same = ir.write(folder_);
  const std::string y = folder_ / "y.npy", uv = folder_ / "uv.npy", out = folder_ / "out";
  const struct {
    std::array<int, 3> yuv;
    std::array<float, 3> bgr;
  } cases[] = {{{235, 128, 128}, {255, 255, 255}},
               {{200, 128, 128}, {214, 214, 214}},
               {{128, 90, 160}, {54, 119, 181}}};
  for (const auto& c : cases) {
    write_npy(y, Tensor::of(ElementType::u8, {1, 1, 6, 4}, std::vector<int>(24, c.yuv[0])));
    std::vector<int> chroma(6, c.yuv[1]);
    chroma.insert(chroma.end(), 6, c.yuv[2]);
    write_npy(uv, Tensor::of(ElementType::u8, {1, 2, 3, 2}, chroma));
    const Outcome outcome = run({"run", same, "--config", "GPU_NV12_TWO_INPUTS=YES", "--input",
                                 "0=" + y, "--input", "1=" + uv, "--output-dir", out});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<float> bgr = read_npy(out + "/0.npy").to_floats();
    for (size_t i = 0; i < bgr.size(); ++i) EXPECT_EQ(bgr[i], c.bgr[i / 4]) << i;
  }
}

TEST_F(Cli, RefusesWrongInputs) {
  const std::string out = folder_ / "out";
  const Outcome printed = run({"run", model_, "--input", "0=" + input_});
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_TRUE(printed.out.starts_with("0 ")) << printed.out;
  expect_refused({"run", model_, "--output-dir", out},
                 "input 0 is not given; the inputs are 0 = \"data\" f32[2,6]", 2);
  expect_refused({"run", model_, "--input", "1=" + input_, "--output-dir", out}, "no input \"1\"",
                 2);
  expect_refused({"run", model_, "--input", input_, "--output-dir", out}, "INDEX_OR_NAME=FILE", 2);
  expect_refused(
      {"run", model_, "--input", "0=" + input_, "--input", "data=" + input_, "--output-dir", out},
      "twice", 2);
  expect_refused({"run", model_, "--input", "0=" + (folder_ / "none.npy"), "--output-dir", out},
                 "none.npy", 1);
  const std::string other = folder_ / "other.npy";
  write_npy(other, Tensor::allocate(ElementType::f32, {6, 2}));
  expect_refused({"run", model_, "--input", "0=" + other, "--output-dir", out}, "needs [2,6]", 2);
  expect_refused({"run", model_, "--input", "0=" + input_, "--output-dir", input_}, "in.npy", 1);
}

TEST_F(Cli, RefusesWrongModels) {
  expect_refused({"run", folder_ / "none.xml", "--output-dir", folder_ / "out"}, "none.xml", 1);
  expect_refused({"bench", test_data("corrupt/weights_cut_short.xml")}, "cut short", 1);
  expect_refused({"graph", test_data("corrupt/cycle.xml")}, "its own output", 1);
}

TEST_F(Cli, DrawsTheGraph) {
  const Outcome read = run({"graph", model_, "--after", "read"});
  ASSERT_EQ(read.status, 0) << read.err;
  EXPECT_TRUE(read.out.starts_with("digraph")) << read.out;
  EXPECT_NE(read.out.find("ShapeOf"), std::string::npos);
  const std::string file = folder_ / "g.dot";
  ASSERT_EQ(run({"graph", model_, "-o", file}).status, 0);
  EXPECT_EQ(read_file(file).find("ShapeOf"), std::string::npos);  // folded
  expect_refused({"graph", model_, "--after", "nothing"}, "read, keep_compressed", 2);
  expect_refused({"graph", model_, "-o", folder_ / "no/such/g.dot"}, "g.dot", 1);
}

TEST_F(Cli, Measures) {
  const Outcome outcome = run({"bench", model_, "--seconds", "0.2", "--streams", "1", "--nireq",
                               "3", "--perf-count", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string& last = outcome.out;
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 1) << last;
  EXPECT_TRUE(last.starts_with("{\"model\":\"")) << last;
  for (const char* part :
       {"\"streams\":1", "\"nireq\":3", "\"batch\":2", "\"load_ms\":", "\"latency_ms\":{\"p50\":"})
    EXPECT_NE(last.find(part), std::string::npos) << part << " in " << last;
  EXPECT_NE(run({"bench", model_, "--seconds", "1e-6", "--perf-count"}).out.find("device us"),
            std::string::npos);
  EXPECT_NE(last.find("\"layers\":[{\"layer\":"), std::string::npos) << last;
  const std::string report = folder_ / "report.csv";
  ASSERT_EQ(run({"bench", model_, "--seconds", "1e-6", "--perf-csv", report}).status, 0);
  const std::string rows = read_file(report);
  EXPECT_TRUE(rows.starts_with("layerName;execStatus;layerType;execType;realTime (ms);"));
  for (const char* part : {";NOT_RUN;Parameter;an input;", "(gaps);EXECUTED;", "(download);"})
    EXPECT_NE(rows.find(part), std::string::npos) << part << " in " << rows;
  EXPECT_EQ(run({"bench", model_, "--seconds", "0.1", "--sync"}).status, 0);
  EXPECT_EQ(run({"bench", model_, "--seconds", "0.1", "--sync", "--inputs-once", "--half-outputs"})
                .status,
            0);
}

TEST_F(Cli, BenchComparesRepeatedInferences) {
  const Outcome text =
      run({"bench", model_, "--seconds", "1e-6", "--repeat", "20", "--nireq", "3"});
  EXPECT_EQ(text.status, 0) << text.out;
  EXPECT_NE(text.out.find("0 of 20 inferences gave other results than the first"),
            std::string::npos)
      << text.out;
  const Outcome json = run({"bench", model_, "--seconds", "1e-6", "--repeat", "20", "--json"});
  EXPECT_NE(json.out.find(",\"repeated\":20,\"different\":0}"), std::string::npos) << json.out;
}

TEST_F(Cli, SaysWhatRunsOnTheHostAndByHowManyThreads) {
  const std::string model = test::host_layer_model(folder_);
  const Outcome outcome = run(
      {"bench", model, "--seconds", "0.1", "--perf-count", "--config", "GPU_MAX_NUM_THREADS=2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const size_t row = outcome.out.find("\ninvert ");
  ASSERT_NE(row, std::string::npos) << outcome.out;
  const std::string line = outcome.out.substr(row + 1, outcome.out.find('\n', row + 1) - row - 1);
  EXPECT_TRUE(line.ends_with(available_processors() > 1 ? "host, 2 threads" : "host")) << line;
  const Outcome graph = run({"graph", model});
  EXPECT_NE(graph.out.find("on the host"), std::string::npos) << graph.out;
}

TEST_F(Cli, MeasuresAtLeastOneInference) {
  const Outcome outcome = run({"bench", model_, "--seconds", "1e-6", "--nireq", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 inferences in"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("latency p50"), std::string::npos);
}

// PoCL finds no device where it can write no cache.
TEST_F(Cli, RunsWhereHomeCannotBeWritten) {
  const std::string program = std::getenv("CLINFER_PROGRAM");
  const std::string command =
      "TMPDIR=" + (folder_ / "t") + " env -u XDG_CACHE_HOME -u POCL_CACHE_DIR";
  std::filesystem::create_directory(folder_ / "t");
  for (const std::string home :
       {"HOME=/proc", "HOME=/dev/null", "-u HOME POCL_CACHE_DIR=/proc/x"}) {
    const Outcome outcome = run_line(command + " " + home + " " + program + " run " + model_ +
                                     " --input 0=" + input_ + " --output-dir " + (folder_ / "out"));
    ASSERT_EQ(outcome.status, 0) << home << ": " << outcome.err;
    EXPECT_EQ(read_npy(folder_ / "out/1.npy").to_floats(), (std::vector<float>{0.5, -2}));
    EXPECT_NE(outcome.err.find("PoCL keeps what it compiles in " + (folder_ / "t/clinfer-")),
              std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("cache-dir"), std::string::npos) << "how to keep what is compiled";
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err;
  }
  // The cache's folder of the user's own serves PoCL as well.
  const std::string own = folder_ / "own";
  const Outcome outcome = run_line(command + " HOME=/proc " + program + " bench " + model_ +
                                   " --seconds 1e-6 --config CACHE_DIR=" + own);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_directory(own + "/pocl")) << outcome.err;
}

TEST_F(Cli, DumpsWhateverTheCacheHolds) {
  const auto dump = [&](const std::string& folder) {
    return run({"bench", test_data("models/tunable.xml"), "--seconds", "1e-6", "--config",
                "CACHE_DIR=" + (folder_ / "cache"), "--config", "SOURCES_DUMPS_DIR=" + folder,
                "--config", "GRAPH_DUMPS_DIR=" + folder});
  };
  const auto sources = [](const std::string& folder) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      count += entry.path().extension() == ".cl";
    return count;
  };
  ASSERT_EQ(dump(folder_ / "built").status, 0);
  const Outcome cached = dump(folder_ / "cached");
  ASSERT_EQ(cached.status, 0) << cached.err;
  EXPECT_GT(sources(folder_ / "built"), 0u);
  EXPECT_EQ(sources(folder_ / "cached"), sources(folder_ / "built")) << cached.out;
  size_t drawings = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cached"))
    drawings += entry.path().filename().string().starts_with("tunable_0");
  EXPECT_GT(drawings, 0u) << "several models may be drawn into one folder";
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cached"))
    if (entry.path().filename().string().ends_with("_kernels.dot"))
      last = read_file(entry.path().string());
  EXPECT_NE(last.find("kernel: softmax"), std::string::npos) << last;
  const Outcome refused = dump("/proc/nowhere");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("/proc/nowhere cannot be made"), std::string::npos) << refused.err;
}

TEST_F(Cli, WritesIntoPipesAndThroughLinks) {
  const Outcome piped = run({"graph", model_, "--after", "read", "-o", "/dev/stdout"});
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_TRUE(piped.out.starts_with("digraph"));
  expect_refused({"graph", model_, "--after", "read", "-o", "/dev/full"}, "No space left", 1);
  expect_refused({"graph", model_, "--after", "read", "-o", folder_ / "no/such"}, "folder", 1);
}

// A part in the middle counts as well as the last one.
TEST_F(Cli, SaysThatItsOutputIsLost) {
  const std::string ball = CLINFER_SOURCE_DIR "/pipelines/models/ball.xml";
  const std::string program = std::getenv("CLINFER_PROGRAM");
  for (const std::string& words :
       {std::string("--help"), "graph " + ball + " --after read",
        "bench " + ball + " --device CPU --seconds 1e-6 --perf-count --json"}) {
    const Outcome outcome = run_line("( " + program + " " + words + " >/dev/full )");
    EXPECT_EQ(outcome.status, 1) << words;
    EXPECT_NE(outcome.err.find("clinfer: cannot write to stdout"), std::string::npos)
        << outcome.err;
  }
}

TEST_F(Cli, TunesIntoAFile) {
  const std::string model = test_data("models/tunable.xml"), file = folder_ / "t.json",
                    cache = "CACHE_DIR=" + (folder_ / "cache");
  const Outcome tuned =
      run({"tune", model, "--tuning-file", file, "--seconds", "0.2", "--config", cache});
  EXPECT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("whole network"), std::string::npos);
  EXPECT_NE(tuned.out.find("soft "), std::string::npos) << tuned.out;
  const Outcome used = run({"bench", model, "--seconds", "0.05", "--config", cache, "--config",
                            "TUNING_MODE=TUNING_USE_EXISTING", "--config", "TUNING_FILE=" + file});
  EXPECT_EQ(used.status, 0) << used.err;
  EXPECT_NE(used.out.find(" hits"), std::string::npos) << used.out;
  // The problems that have a record, without measuring.
  const Outcome none = run({"tune", model, "--check", "--config", "TUNING_DB=NO"});
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_NE(none.out.find("records for 0 of "), std::string::npos) << none.out;
  EXPECT_EQ(none.out.find("file "), std::string::npos) << none.out;
  const Outcome some = run({"tune", model, "--check", "--tuning-file", file});
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_EQ(some.out.find("records for 0 of "), std::string::npos) << some.out;
  EXPECT_NE(some.out.find("\nfile "), std::string::npos) << some.out;
  expect_refused({"tune", model, "--check", "--tuning-file", folder_ / "no.json"}, "no.json", 1);
  expect_refused({"tune", model}, "--tuning-file", 2);
  expect_refused({"tune", model, "--tuning-file", folder_ / "no/folder/t.json"}, "t.json", 1);
  const std::string broken = folder_.write("broken.json", "{\"2\": [");
  expect_refused({"tune", model, "--tuning-file", broken}, "is not JSON", 1);
  EXPECT_EQ(read_file(broken), "{\"2\": [");
  expect_refused({"bench", model, "--config", "TUNING_MODE=SOMETIMES"}, "TUNING_CREATE", 2);
}

// AUTO uses the streams and requests that were found best.
TEST_F(Cli, TunesThePipeline) {
  const std::string model = test_data("models/tunable.xml"), file = folder_ / "t.json",
                    cache = "CACHE_DIR=" + (folder_ / "cache");
  const Outcome tuned = run({"tune", model, "--tuning-file", file, "--seconds", "0.2", "--batch",
                             "1", "--pipeline", "--config", cache});
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const size_t table = tuned.out.find("streams  requests  batch"),
               best = tuned.out.find("best: ", table);
  ASSERT_NE(best, std::string::npos) << tuned.out;
  // 1 to 4 streams with one or two requests each.
  EXPECT_EQ(std::count(tuned.out.begin() + static_cast<ptrdiff_t>(table),
                       tuned.out.begin() + static_cast<ptrdiff_t>(best), '\n'),
            9)
      << tuned.out;
  unsigned streams = 0, requests = 0, batch = 0;
  ASSERT_EQ(std::sscanf(tuned.out.c_str() + best, "best: %u streams, %u requests, batch %u",
                        &streams, &requests, &batch),
            3);
  EXPECT_EQ(batch, 1u);
  const Outcome used =
      run({"bench", model, "--seconds", "0.05", "--streams", "0", "--batch", "1", "--config", cache,
           "--config", "TUNING_MODE=TUNING_USE_EXISTING", "--config", "TUNING_FILE=" + file});
  EXPECT_EQ(used.status, 0) << used.err;
  const std::string wanted =
      std::to_string(streams) + " streams, " + std::to_string(requests) + " requests, batch 1";
  EXPECT_NE(used.out.find(wanted), std::string::npos) << wanted << " in " << used.out;
}

// An empty file is a new one, and what another engine wrote is kept, said and extended.
TEST_F(Cli, TunesIntoEmptyFilesAndThoseOfAnotherEngine) {
  const std::string model = test_data("models/tunable.xml");
  const auto tune = [&](const std::string& content) {
    const std::string file = folder_.write("t.json", content);
    const Outcome outcome = run({"tune", model, "--tuning-file", file, "--seconds", "0.2",
                                 "--config", "CACHE_DIR=" + (folder_ / "cache")});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(TuningCache::read(file).records().size(), 0u) << content;
    return outcome.err;
  };
  EXPECT_EQ(tune("").find("another engine"), std::string::npos);
  EXPECT_EQ(tune("\n").find("another engine"), std::string::npos);
  EXPECT_EQ(TuningCache::read(folder_ / "t.json").foreign_records(), 0u);

  const std::string err = tune(test::kFileOfAnotherEngine);
  EXPECT_NE(err.find("t.json: 3 records are of another engine"), std::string::npos) << err;
  test::expect_kept(folder_ / "t.json");
  const Outcome used =
      run({"bench", model, "--seconds", "0.05", "--config", "CACHE_DIR=" + (folder_ / "cache"),
           "--config", "TUNING_MODE=TUNING_USE_EXISTING", "--config",
           "TUNING_FILE=" + (folder_ / "t.json")});
  EXPECT_EQ(used.status, 0) << used.err;
  EXPECT_NE(used.err.find("3 records are of another engine"), std::string::npos) << used.err;
  EXPECT_EQ(used.out.find(" 0 hits"), std::string::npos) << used.out;
}

// PoCL's compute units are the threads that it starts.
TEST_F(Cli, ComputesOnTheCoresThatItMayUse) {
  const std::string program = std::getenv("CLINFER_PROGRAM");
  const Outcome outcome = run_line(
      "unset POCL_MAX_PTHREAD_COUNT POCL_CPU_MAX_CU_COUNT; first=$(taskset -pc $$ | sed 's/.*: //; "
      "s/[,-].*//'); "
      "taskset -c $first " +
      program + " devices");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" 1 compute unit"), std::string::npos) << outcome.out;
}

TEST_F(Cli, StopsWithinASecond) {
  // While it builds or measures: what it works on then must neither hold it up nor make it crash.
  // The time counts from when the program catches SIGINT, which its mask in /proc shows; before
  // that the signal would end it without a word, or be lost in the shell that is about to start it
  // and catches SIGINT itself.
  for (const char* after : {"0", "1", "2"}) {
    const std::string program = std::getenv("CLINFER_PROGRAM");
    const Outcome outcome = run_line(
        "{ " + program + " tune '" + test::ball_model() + "' --exhaustive --tuning-file '" +
        (folder_ / "t.json") + "' --config 'CACHE_DIR=" + (folder_ / after) +
        "' & p=$!; n=0; until { readlink /proc/$p/exe | grep -q 'clinfer$' && "
        "grep -q 'SigCgt.*[2367abef]$' /proc/$p/status; } || "
        "[ $n = 6000 ]; do sleep 0.01; n=$((n + 1)); done; sleep " +
        after + "; kill -INT $p; b=$(date +%s); wait $p; s=$?; echo $(($(date +%s) - b)); " +
        "exit $s; }");
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_LT(
        std::atoi(outcome.out.substr(outcome.out.rfind('\n', outcome.out.size() - 2) + 1).c_str()),
        30);  // 1 on an idle machine
    EXPECT_NE(outcome.err.find("clinfer: "), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace clinfer
