// Rewrites OpenCL's PTX for CUDA.
#include "engine/cuda/ptx.h"

#include <algorithm>
#include <charconv>

#include "engine/cuda/driver.h"
#include "kernels/base/numbers.h"

namespace clinfer::cuda {

namespace {

// The most shared memory that a kernel may declare, in bytes.
constexpr size_t kStaticShared = 48 << 10;

// Returns the expression that replaces a register of this number in launches by CUDA; "" for a
// register that is not known.
std::string in_place_of(const std::string& number) {
  if (number.size() != 1 || number[0] < '0' || number[0] > '9') return "";
  const int n = number[0] - '0';
  if (n == 9) return std::to_string(kDimensions);
  return n < 6 ? "0" : std::string("%nctaid.") + "xyz"[n - 6];
}

void replace_registers(std::string& text) {
  constexpr std::string_view kRegister = "%envreg";
  for (size_t at = 0; (at = text.find(kRegister, at)) != std::string::npos;) {
    const size_t digits = at + kRegister.size();
    const size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    const std::string number = text.substr(digits, end - digits), value = in_place_of(number);
    if (value.empty())
      throw Failure(ErrorCode::unsupported, "a kernel reads the register " +
                                                std::string(kRegister) + number +
                                                ", which CUDA does not set");
    text.replace(at, end - at, value);
  }
}

// A declaration of an array in shared memory, ".shared .align 16 .b8 NAME[BYTES];", and where it
// stands in the text.
struct Array {
  // Positions of the start, of the bracket, and behind the semicolon.
  size_t begin = 0, open = 0, end = 0;
  size_t bytes = 0;
};

Array next_array(const std::string& text, size_t from) {
  constexpr std::string_view kShared = ".shared .align ";
  Array array;
  array.begin = text.find(kShared, from);
  if (array.begin == std::string::npos) return array;
  const size_t semicolon = text.find(';', array.begin);
  array.open = text.find('[', array.begin);
  if (semicolon == std::string::npos || array.open == std::string::npos || array.open > semicolon) {
    array.end = array.begin + kShared.size();
    return array;  // no array was found
  }
  array.end = semicolon + 1;
  std::from_chars(text.data() + array.open + 1, text.data() + semicolon, array.bytes);
  return array;
}

// Turns the largest array into dynamic shared memory if the text declares more than a kernel may.
size_t make_dynamic(std::string& text) {
  size_t sum = 0;
  Array largest;
  for (Array array = next_array(text, 0); array.begin != std::string::npos;
       array = next_array(text, array.end)) {
    sum += array.bytes;
    if (array.bytes > largest.bytes) largest = array;
  }
  if (sum <= kStaticShared) return 0;
  if (sum - largest.bytes > kStaticShared)
    throw Failure(ErrorCode::unsupported, "a kernel has several large arrays of shared memory");
  const std::string declaration =
      ".extern " + text.substr(largest.begin, largest.open - largest.begin) + "[];\n";
  text.erase(largest.begin, largest.end - largest.begin);
  // A dynamic array must be declared outside of functions, and before them.
  const size_t size = text.find(".address_size");
  const size_t line = size == std::string::npos ? size : text.find('\n', size);
  if (line == std::string::npos || line > largest.begin)
    throw Failure(ErrorCode::unsupported, "a kernel's program is no PTX for 64-bit addresses");
  text.insert(line + 1, declaration);
  return largest.bytes;
}

// The number behind a directive, ".target sm_90a" or ".version 8.8", in hundredths; 0: there is
// none.
int number_behind(const std::string& text, const std::string& directive) {
  const size_t at = text.find(directive);
  if (at == std::string::npos) return 0;
  return static_cast<int>(number_at(text.c_str() + at + directive.size()) * 100 + 0.5);
}

// Where the instructions of the kernel begin, behind its declarations; npos: it was not found.
size_t find_first_instruction(const std::string& text) {
  const size_t entry = text.find(".entry ");
  const size_t body = entry == std::string::npos ? entry : text.find("\n{", entry);
  size_t line = body == std::string::npos ? body : text.find('\n', body + 1);
  while (line != std::string::npos) {
    const size_t first = text.find_first_not_of(" \t\n", line);
    if (first == std::string::npos) return first;
    const bool instruction = text[first] != '.' && text[first] != '/';
    if (instruction) return text.rfind('\n', first) + 1;
    line = text.find('\n', first);
  }
  return line;
}

// Each work-item waits before anything else: then the end of a launch says that all before it are
// over, too. Without griddepcontrol.launch_dependents, work-groups that have ended let the next
// launch begin: where they did so at their own beginning, an H200 took up to 5 % longer.
bool begin_early(std::string& text) {
  constexpr int kTarget = 90'00, kVersion = 7'80;  // which have the instructions
  if (number_behind(text, ".target sm_") < kTarget || number_behind(text, ".version ") < kVersion)
    return false;
  const size_t first = find_first_instruction(text);
  if (first == std::string::npos) return false;
  text.insert(first, "\tgriddepcontrol.wait;\n");
  return true;
}

}  // namespace

Ptx ptx_for_cuda(std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.find(".version") == std::string::npos || text.find(".target") == std::string::npos)
    throw Failure(ErrorCode::unsupported, "the driver's programs are no PTX");
  Ptx ptx;
  replace_registers(text);
  ptx.dynamic_shared = make_dynamic(text);
  ptx.begins_early = begin_early(text);
  ptx.text = std::move(text);
  return ptx;
}

}  // namespace clinfer::cuda
