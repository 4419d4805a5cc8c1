// Tuning files: what is read, what is refused, what is kept, and what survives other processes,
// kills and full disks.
#include "tuning/tuning_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "kernels/base/error.h"
#include "tests/temporary_folder.h"
#include "tuning/op_key.h"
#include "tuning/shipped.h"

namespace clinfer {
namespace {

constexpr const char* kRecord =
    R"({"132": {"9f86d081884c7d65": ["conv_tile", 17, {"op": "Convolution in=1x56x56x64:f16", "point": {"TILE_P": 6, "TILE_OC": 16},
        "family_version": 3, "device": "NVIDIA H200", "driver": "580.159.04", "ns": 5123}],
        "00000000000000aa": ["fc_gemv", -1]}})";

std::string refusal(const std::string& text) {
  try {
    TuningCache::parse(text, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

TuningRecord record(const std::string& op, int tile) {
  TuningRecord r;
  r.family = "conv_tile";
  r.index = 2;
  r.op = op;
  r.point = TuningPoint{{{"TILE_P", tile}}};
  r.family_version = 1;
  r.device = "a device";
  r.driver = "1.0";
  r.ns = 1000;
  return r;
}

TEST(TuningCache, ReadsTheDocumentedRecord) {
  const TuningCache cache = TuningCache::parse(kRecord, "t.json");
  EXPECT_EQ(cache.size(), 2u);
  const TuningRecord* full = cache.find(132, "9f86d081884c7d65");
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(full->family, "conv_tile");
  EXPECT_EQ(full->index, 17);
  ASSERT_TRUE(full->point);
  EXPECT_EQ((*full->point)["TILE_OC"], 16);
  EXPECT_EQ(full->family_version, 3);
  EXPECT_EQ(full->driver, "580.159.04");
  EXPECT_EQ(full->ns, 5123);
  const TuningRecord* brief = cache.find(132, "00000000000000aa");
  ASSERT_NE(brief, nullptr);
  EXPECT_EQ(brief->index, -1);
  EXPECT_FALSE(brief->point);
  EXPECT_EQ(cache.find(131, "00000000000000aa"), nullptr);
  EXPECT_EQ(cache.find(132, "00000000000000ab"), nullptr);
}

TEST(TuningCache, KeepsWhatItDoesNotKnow) {
  const std::string text =
      R"({"version_2": {"24": {"CONVOLUTION": {"key": ["k", 1]}}}, "comment": "mine",
          "7": {"0000000000000001": ["k", 1, {"op": "x", "mine": [1, {"a": null}]}], "12345678901234567890": ["old", 3]}})";
  TuningCache cache = TuningCache::parse(text, "t.json");
  cache.set(8, "0000000000000002", record("y", 4));
  const std::string written = cache.to_text();
  for (const char* part :
       {"\"version_2\"", "\"CONVOLUTION\"", "\"mine\"", "\"comment\"", "12345678901234567890"})
    EXPECT_NE(written.find(part), std::string::npos) << written;
  const TuningCache again = TuningCache::parse(written, "t.json");
  EXPECT_EQ(again.size(), 3u);
  EXPECT_EQ(again.to_text(), written);
  ASSERT_NE(again.find(8, "0000000000000002"), nullptr);
  EXPECT_EQ((*again.find(8, "0000000000000002")->point)["TILE_P"], 4);
}

TEST(TuningCache, WritesAllThatARecordHolds) {
  TuningRecord r = record("Convolution \"quoted\" \n\xff", 6);
  r.partial = true;
  r.default_ns = 1200;
  r.kind = "pocl cpu";
  r.failed = {{"conv_tile TILE_P=8", "outputs \\ differ"}};
  TuningCache cache;
  cache.set(2, "0000000000000001", r);
  const TuningCache again = TuningCache::parse(cache.to_text(), "t.json");
  const TuningRecord* read = again.find(2, "0000000000000001");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->op, "Convolution \"quoted\" \n\xef\xbf\xbd");  // was not UTF-8
  EXPECT_TRUE(read->partial);
  EXPECT_EQ(read->default_ns, 1200);
  EXPECT_EQ(read->kind, "pocl cpu");
  EXPECT_EQ(read->failed, r.failed);
  cache.erase(2, "0000000000000001");
  EXPECT_EQ(cache.size(), 0u);
}

TEST(TuningCache, RefusesWhatIsMalformed) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "is not a JSON object"},
      {"{", "is not JSON"},
      {"{\"2\": {\"a\": [\"k\", 1]}", "is not JSON"},
      {"{\"2\": []}", "device \"2\": is not an object"},
      {"{\"2\": {\"a\": {}}}", "record \"a\": is not an array"},
      {"{\"2\": {\"a\": [\"k\"]}}", "1 elements"},
      {"{\"2\": {\"a\": [\"k\", 1, {}, 2]}}", "4 elements"},
      {"{\"2\": {\"a\": [1, 1]}}", "not the name of a kernel"},
      {"{\"2\": {\"a\": [\"k\", \"1\"]}}", "not a whole number"},
      {"{\"2\": {\"a\": [\"k\", 1.5]}}", "not a whole number"},
      {"{\"2\": {\"a\": [\"k\", 99999999999]}}", "out of range"},
      {"{\"2\": {\"a\": [\"k\", 1, 3]}}", "third element"},
      {"{\"2\": {\"a\": [\"k\", 1, {\"op\": 3}]}}", "\"op\" is not a text"},
      {"{\"2\": {\"a\": [\"k\", 1, {\"ns\": -3}]}}", "\"ns\""},
      {"{\"2\": {\"a\": [\"k\", 1, {\"ns\": 1e999}]}}", "\"ns\""},
      {"{\"2\": {\"a\": [\"k\", 1, {\"point\": [1]}]}}", "\"point\""},
      {"{\"2\": {\"a\": [\"k\", 1, {\"point\": {\"V\": true}}]}}", "whole number"},
      {"{\"2\": {\"a\": [\"k\", 1, {\"partial\": 1}]}}", "\"partial\""},
      {"{\"2\": {\"a\": [\"k\", 1, {\"failed\": {\"x\": 1}}]}}", "\"failed\""},
      {"\xff\xfe", "is not JSON"},
  };
  for (const auto& [text, part] : cases)
    EXPECT_NE(refusal(text).find(part), std::string::npos) << text << ": " << refusal(text);
  // Depth that would overflow a recursive parser's stack.
  EXPECT_NE(refusal("{\"2\":" + std::string(1000000, '[')).find("levels"), std::string::npos);
}

TEST(TuningCache, BoundsWhatIsRead) {
  std::string many = "{\"comment\": [";
  for (int i = 0; i < 600000; ++i) many += "0,";
  EXPECT_NE(refusal(many + "0]}").find("values"), std::string::npos);
  std::string empty_sections = "{";  // the smallest that cost most to read
  for (int i = 0; i < 600000; ++i) empty_sections += "\"1\":{},";
  EXPECT_NE(refusal(empty_sections + "\"2\":{}}").find("values"), std::string::npos);
  EXPECT_EQ(TuningCache::parse("", "t.json").size(), 0u) << "an empty file is a new one";
  EXPECT_EQ(TuningCache::parse(" \n", "t.json").size(), 0u);
  const TemporaryFolder folder;
  const std::string path = folder.write("t.json", "{}" + std::string(16 << 20, ' '));
  EXPECT_THROW(TuningCache::read(path), Error);
  EXPECT_THROW(check_tuning_file(path), Error);
  EXPECT_EQ(std::filesystem::file_size(path), (16u << 20) + 2) << "left as it is";
}

TEST(TuningFile, IsMadeAndExtended) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  EXPECT_THROW(TuningCache::read(path), Error);
  EXPECT_EQ(TuningCache::read_or_empty(path).size(), 0u);
  check_tuning_file(path);
  EXPECT_FALSE(std::filesystem::exists(path)) << "a check leaves no trace";
  update_tuning_file(path,
                     [](TuningCache& cache) { cache.set(2, "0000000000000001", record("x", 1)); });
  update_tuning_file(path,
                     [](TuningCache& cache) { cache.set(2, "0000000000000002", record("y", 2)); });
  EXPECT_EQ(TuningCache::read(path).size(), 2u);
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    EXPECT_EQ(entry.path(), path);
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST(TuningFile, IsLeftAloneWhereItIsMalformed) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.json", "{\"2\": [");
  EXPECT_THROW(check_tuning_file(path), Error);
  EXPECT_THROW(update_tuning_file(path, [](TuningCache&) { FAIL() << "must not come this far"; }),
               Error);
  EXPECT_EQ(read_file(path), "{\"2\": [");
}

TEST(TuningFile, KeepsLinksAndPermissions) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.json", "{}"), link = folder / "link.json";
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  update_tuning_file(link,
                     [](TuningCache& cache) { cache.set(2, "0000000000000001", record("x", 1)); });
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(TuningCache::read(path).size(), 1u);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(TuningFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {std::string("/dev/zero"), std::string("/dev/null"), folder / "", pipe}) {
    EXPECT_THROW(TuningCache::read(path), Error) << path;
    EXPECT_THROW(check_tuning_file(path), Error) << path;
  }
  EXPECT_THROW(check_tuning_file(folder / "no/such/folder/t.json"), Error);
}

// Names that an attacker could know: the former FILE.tmp<pid> and FILE.lock.
TEST(TuningFile, WritesThroughNoLinkAndRemovesNoForeignFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json", victim = folder.write("victim", "precious");
  const std::string lock = folder.write("t.json.lock", "a foreign file");
  ASSERT_EQ(symlink(victim.c_str(), (path + ".tmp" + std::to_string(getpid())).c_str()), 0);
  ASSERT_EQ(chmod(victim.c_str(), 0600), 0);
  for (int i = 0; i < 3; ++i) {
    check_tuning_file(path);
    update_tuning_file(
        path, [&](TuningCache& cache) { cache.set(2, "000000000000000a", record("x", i)); });
  }
  EXPECT_EQ(read_file(victim), "precious");
  struct stat status {};
  ASSERT_EQ(stat(victim.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(read_file(lock), "a foreign file");
  EXPECT_EQ(TuningCache::read(path).size(), 1u);
}

TEST(TuningFile, LeavesNoTraceOfWhatFailed) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  EXPECT_THROW(update_tuning_file(path, [](TuningCache&) { throw Error(ErrorCode::io, "no"); }),
               Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A file-size limit stands for a full disk: the write fails half-way.
TEST(TuningFile, SurvivesAFullDisk) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  update_tuning_file(path,
                     [](TuningCache& cache) { cache.set(2, "0000000000000001", record("x", 1)); });
  const std::string before = read_file(path);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    int refused = 0;
    try {
      check_tuning_file(path);
    } catch (const Error& error) {
      refused += error.code() == ErrorCode::io;
    }
    try {
      update_tuning_file(
          path, [](TuningCache& cache) { cache.set(2, "0000000000000002", record("y", 2)); });
    } catch (const Error& error) {
      refused += error.code() == ErrorCode::io;
    }
    _exit(refused == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(read_file(path), before);
  const std::filesystem::directory_iterator files(folder / ""), end;
  EXPECT_EQ(std::distance(files, end), 1) << "what was begun is gone";
}

TEST(TuningFile, TwoProcessesLoseNothing) {
  constexpr int kProcesses = 3, kRecords = 20;
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (int i = 0; i < kRecords; ++i)
          update_tuning_file(path, [&](TuningCache& cache) {
            const std::string op = std::to_string(p) + "/" + std::to_string(i);
            cache.set(2, record_hash(op, "d"), record(op, i));
          });
      } catch (const std::exception&) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(TuningCache::read(path).size(), static_cast<size_t>(kProcesses * kRecords));
}

TEST(TuningFile, AKillLeavesTheOldOrTheNewFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "t.json";
  size_t least = 0;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0;; ++i)
        update_tuning_file(path, [&](TuningCache& cache) {
          const std::string op = std::to_string(getpid()) + "/" + std::to_string(i % 200);
          cache.set(2, record_hash(op, "d"), record(op, i));
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 7 * round));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    // Whenever the writer was killed: the file is complete, keeps its records, and the next process
    // can write it.
    update_tuning_file(path, [&](TuningCache& cache) {
      EXPECT_GE(cache.size(), least);
      least = cache.size();
    });
  }
  EXPECT_GT(least, 0u);
  const std::filesystem::directory_iterator files(folder / ""), end;
  EXPECT_EQ(std::distance(files, end), 1) << "what the killed processes left is gone";
}

TEST(OpKey, SaysWhatDecides) {
  OpDesc desc;
  desc.name = "conv1";
  desc.type = "Convolution";
  desc.attributes.set("strides", "2, 2");
  desc.attributes.set("pads_begin", "0,1");
  desc.inputs = {TensorDesc::channels_last(ElementType::f16, {1, 64, 56, 56}),
                 TensorDesc::row_major(ElementType::f32, {32, 64, 3, 3})};
  desc.constants = {Tensor(), Tensor::allocate(ElementType::f32, {32, 64, 3, 3})};
  desc.outputs = {TensorDesc::channels_last(ElementType::f16, {1, 32, 28, 28})};
  desc.own_inputs = 2;
  desc.tail = {{"relu"}};
  const std::string key = op_key(desc);
  EXPECT_EQ(key,
            "Convolution in=1x56x56x64:f16 w=32x64x3x3 out=1x28x28x32:f16 pads_begin=0,1 strides=2 "
            "tail=relu");
  const auto changed = [&](auto change) {
    OpDesc other = desc;
    change(other);
    return op_key(other) != key;
  };
  EXPECT_FALSE(changed([](OpDesc& d) { d.name = "conv2"; }));
  EXPECT_FALSE(changed([](OpDesc& d) { d.tail[0].alpha = 3; }));
  EXPECT_TRUE(changed([](OpDesc& d) { d.tail.clear(); }));
  EXPECT_TRUE(changed([](OpDesc& d) { d.inputs[0].shape[0] = 8; }));
  EXPECT_TRUE(changed([](OpDesc& d) { d.inputs[0].type = ElementType::f32; }));
  EXPECT_TRUE(changed(
      [](OpDesc& d) { d.inputs[0] = TensorDesc::row_major(ElementType::f16, d.inputs[0].shape); }));
  EXPECT_TRUE(changed([](OpDesc& d) { d.outputs[0].strides[3] = 96; }));
  EXPECT_TRUE(changed([](OpDesc& d) { d.outputs[0].offset = 8; }));
  EXPECT_FALSE(changed([](OpDesc& d) { d.outputs[0].offset = 32; }));
  EXPECT_TRUE(changed([](OpDesc& d) { d.attributes.set("strides", "1,1"); }));
  EXPECT_EQ(record_hash("", ""), "af63f14c8602103b") << "FNV-1a 64 of \"|\"";
}

TEST(Shipped, ServeTheirDeviceAndAreGuessesForRelatives) {
  DeviceTraits traits;
  traits.vendor = Vendor::pocl;
  traits.is_cpu = true;
  traits.vector_width = 16;
  const std::string text = read_file(std::string(CLINFER_SOURCE_DIR) + "/tuning/db/pocl.json");
  const std::string op = TuningCache::parse(text, "pocl.json").records().at(0).second->op;
  const auto own = shipped_records(op, traits, false);
  ASSERT_FALSE(own.empty());
  EXPECT_TRUE(own[0].same_device);
  EXPECT_EQ(own[0].record->op, op);
  traits.vector_width = 8;
  EXPECT_TRUE(shipped_records(op, traits, false).empty());
  const auto relatives = shipped_records(op, traits, true);
  ASSERT_EQ(relatives.size(), own.size());
  EXPECT_FALSE(relatives[0].same_device);
  EXPECT_TRUE(shipped_records("Convolution of another kind", traits, true).empty());
}

}  // namespace
}  // namespace clinfer
