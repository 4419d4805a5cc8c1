// Files of other formats are told by their content.
#include "engine/runtime/model_kind.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <vector>

#include "tests/temporary_folder.h"

namespace clinfer {
namespace {

using namespace std::string_literals;

std::string kind_of(const std::string& name, const std::string& content) {
  const TemporaryFolder folder;
  std::ofstream(folder / name, std::ios::binary) << content;
  return foreign_kind(folder / name, name.ends_with(".onnx"));
}

TEST(ModelKind, TellsOtherFormats) {
  for (const auto& [name, content, part] : std::vector<std::array<std::string, 3>>{
           {"m.pt", "PK\x03\x04 archive", "PyTorch"},
           {"m.onnx", "PK\x03\x04 archive", "PyTorch"},
           {"m.pth", "\x80\x02}q.", "PyTorch"},
           {"m.tflite", "\x1c\0\0\0TFL3"s, "TensorFlow Lite"},
           {"m.engine", "ftrt....", "TensorRT"},
           {"m.safetensors", "\x40\0\0\0\0\0\0\0{\"__metadata__\""s, "safetensors"},
           {"m.h5", "\x89HDF\r\n\x1a\n", "Keras"},
           {"m.pb", "\x0a\x10node", "TensorFlow"},
           {"m.bin", "\x08\x08\x12\x07pytorch", "name it .onnx"},
           {"m.xml", "version https://git-lfs.github.com/spec/v1", "Git LFS"},
           {"m.xml", "<!DOCTYPE html><html>", "web page"},
           {"m.onnx", "<?xml version=\"1.0\"?><net/>", "name it .xml"}})
    EXPECT_NE(kind_of(name, content).find(part), std::string::npos)
        << name << ": " << kind_of(name, content);
}

TEST(ModelKind, LeavesModelsAndUnknownFilesToTheReaders) {
  EXPECT_EQ(kind_of("m.xml", "<?xml version=\"1.0\"?><net/>"), "");
  EXPECT_EQ(kind_of("m.xml", "\xef\xbb\xbf <net/>"), "");
  EXPECT_EQ(kind_of("m.onnx", "\x08\x08\x12\x07pytorch"), "");
  EXPECT_EQ(kind_of("m.xml", ""), "");
  EXPECT_EQ(kind_of("m.xml", "no model"), "");
  EXPECT_EQ(foreign_kind("/no/such/file.xml", false), "");
}

TEST(ModelKind, NamesTheModelOfWeights) {
  const TemporaryFolder folder;
  std::ofstream(folder / "m.bin") << "weights";
  std::ofstream(folder / "m.xml") << "<net/>";
  EXPECT_NE(foreign_kind(folder / "m.bin", false).find("give m.xml"), std::string::npos);
}

}  // namespace
}  // namespace clinfer
