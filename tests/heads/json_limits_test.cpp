// JSON of any origin that is nested too deeply: each reader refuses it, none overflows the stack.
#include <gtest/gtest.h>

#include "engine/heads/classes/gallery.h"
#include "engine/heads/files/beside.h"
#include "engine/heads/files/json_text.h"
#include "kernels/base/error.h"
#include "tests/says.h"
#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

const std::string kDeep(100000, '[');

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonOfAnyOrigin, IsRefusedWhereItIsTooDeep) {
  const TemporaryFolder folder;
  const std::string path = folder.write("deep.json", kDeep);
  EXPECT_TRUE(test::says(refusal([] { parse_json(kDeep); }), "more than 64 levels"));
  EXPECT_TRUE(test::says(refusal([&] { Gallery{path}; }), "more than 64 levels"));
  EXPECT_TRUE(test::says(refusal([&] { read_model_proc(path); }), "more than 64 levels"));
}

TEST(JsonOfAnyOrigin, IsIgnoredBesideAModelWhereItIsTooDeep) {
  for (const char* name : {"config.json", "preprocessor_config.json", "pipeline.json"}) {
    const TemporaryFolder folder;
    const std::string model = folder.write("model.onnx", "");
    folder.write(name, kDeep);
    const BesideFacts facts = read_beside(model);
    ASSERT_EQ(facts.warnings.size(), 1u) << name;
    EXPECT_TRUE(test::says(facts.warnings[0], std::string(name) + ": line 1: more than 64 levels"));
  }
}

}  // namespace
}  // namespace clinfer
