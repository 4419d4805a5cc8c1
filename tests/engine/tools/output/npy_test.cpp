// .npy files: round trips, files that NumPy writes, and malformed ones.
#include "engine/tools/output/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/base/error.h"
#include "tests/engine/test_files.h"

namespace clinfer {
namespace {

// A file with this header text (not padded) and data.
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += static_cast<char>(dict.size() >> 8 * i & 255);
  return file + dict + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

Tensor parse(const std::string& file) { return parse_npy(std::as_bytes(std::span(file)), "x.npy"); }

std::string refusal_of_file(const std::string& file) {
  try {
    parse(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_argument);
    return error.what();
  }
  return "";
}

TEST(Npy, KeepsEveryTypeAndShape) {
  const TemporaryFolder folder;
  const ElementType types[] = {ElementType::f32, ElementType::f16, ElementType::f64,
                               ElementType::i8,  ElementType::u8,  ElementType::i16,
                               ElementType::u16, ElementType::i32, ElementType::u32,
                               ElementType::i64, ElementType::u64, ElementType::boolean};
  for (const ElementType type : types)
    for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 0, 3}, Shape{1, 2, 2}}) {
      std::vector<float> values(static_cast<size_t>(count(shape)), 1);
      if (!values.empty()) values[0] = 0;
      const Tensor tensor = Tensor::of(type, shape, values);
      write_npy(folder / "a.npy", tensor);
      const Tensor back = read_npy(folder / "a.npy");
      EXPECT_EQ(back.type(), type);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(back.to_floats(), values) << name_of(type);
    }
}

TEST(Npy, WritesAnAlignedHeader) {
  const TemporaryFolder folder;
  write_npy(folder / "a.npy", Tensor::of(ElementType::f32, {1, 3}, std::vector<float>{1, 2, 3}));
  const std::string file = read_file(folder / "a.npy");
  EXPECT_EQ(file.size() % 64, 12u);
  EXPECT_NE(file.find("{'descr': '<f4', 'fortran_order': False, 'shape': (1,3,), }"),
            std::string::npos);
}

TEST(Npy, ReadsVersionTwoAndFortranOrder) {
  const std::string data = bytes_of(std::vector<int32_t>{1, 4, 2, 5, 3, 6});
  const Tensor tensor =
      parse(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n", data, 2));
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.to_ints(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, RefusesWhatIsMalformed) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string data(8, '\0');
  EXPECT_EQ(refusal_of_file(npy(good, data)), "");
  EXPECT_NE(refusal_of_file(npy(good, data.substr(1))).find("cut short"), std::string::npos);
  EXPECT_NE(refusal_of_file("").find("not a .npy file"), std::string::npos);
  EXPECT_NE(refusal_of_file("PK\3\4 a zip file").find("not a .npy file"), std::string::npos);
  EXPECT_NE(refusal_of_file(npy(good, data).substr(0, 30)).find("header"), std::string::npos);
  EXPECT_NE(refusal_of_file(npy(good, data, 9)).find("version 9"), std::string::npos);
  const auto with_shape = [&](const std::string& shape) {
    return refusal_of_file(
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n", data));
  };
  EXPECT_NE(with_shape("(4294967296, 4294967296)").find("too large"), std::string::npos);
  EXPECT_NE(with_shape("(-1,)").find("shape"), std::string::npos);
  EXPECT_NE(with_shape("(2").find("no end"), std::string::npos);
  EXPECT_NE(with_shape("2").find("no tuple"), std::string::npos);
  EXPECT_NE(with_shape("(2 2)").find("tuple of sizes"), std::string::npos);
  const auto with_type = [&](const std::string& type) {
    return refusal_of_file(
        npy("{'descr': " + type + ", 'fortran_order': False, 'shape': (2,), }\n", data));
  };
  EXPECT_NE(with_type("'>f4'").find("big-endian"), std::string::npos);
  EXPECT_NE(with_type("'<c8'").find("<c8"), std::string::npos);
  EXPECT_NE(with_type("[('a', '<f4')]").find("not supported"), std::string::npos);
  EXPECT_NE(refusal_of_file(npy("{'descr': '<f4', 'shape': (2,), }\n", data)).find("fortran_order"),
            std::string::npos);
}

TEST(Npy, NamesAFileThatIsNotThere) {
  const TemporaryFolder folder;
  try {
    read_npy(folder / "none.npy");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("none.npy"), std::string::npos);
  }
  EXPECT_THROW(read_npy(folder / ""), Error);
  EXPECT_THROW(write_npy(folder / "no/such/folder.npy", Tensor::allocate(ElementType::f32, {1})),
               Error);
}

}  // namespace
}  // namespace clinfer
