// Turns marked instructions of inline PTX into instructions.
#include "engine/ocl/compiler/marked_ptx.h"

#include "kernels/base/error.h"

namespace clinfer::ocl {

namespace {
const std::string kMark = "//@", kSize = "//#local ", kGroups = "//#groups ",
                  kTarget = ".target sm_90";

// Returns the digits behind a mark.
std::string number_behind(const std::string& ptx, size_t mark_end) {
  return ptx.substr(mark_end, ptx.find_first_not_of("0123456789", mark_end) - mark_end);
}

// Lets the compiler use only so many registers that a compute unit can hold the stated number of
// work-groups at once.
void limit_registers(std::string& ptx) {
  constexpr std::string_view kSizes = ".reqntid ";
  for (size_t at = 0; (at = ptx.find(kGroups, at)) != std::string::npos; at += kGroups.size()) {
    const std::string groups = number_behind(ptx, at + kGroups.size());
    const size_t sizes = ptx.rfind(kSizes, at);
    const size_t line = sizes == std::string::npos ? sizes : ptx.find('\n', sizes);
    if (line == std::string::npos || line > at || groups.empty())
      throw Error(ErrorCode::device_failed, "the driver's program states no work-group size");
    const std::string directive = "\n.minnctapersm " + groups;
    ptx.insert(line, directive);
    at += directive.size();
  }
}
}  // namespace

std::string with_marks_in_force(std::string ptx) {
  for (size_t at = 0; (at = ptx.find(kSize, at)) != std::string::npos; at += kSize.size()) {
    const std::string size = number_behind(ptx, at + kSize.size());
    const size_t declared = ptx.rfind(".shared ", at);
    const size_t open = declared == std::string::npos ? declared : ptx.find('[', declared);
    const size_t close = open == std::string::npos ? open : ptx.find(']', open);
    if (close == std::string::npos || close > at || size.empty())
      throw Error(ErrorCode::device_failed, "the driver's program declares no local memory");
    ptx.replace(open + 1, close - open - 1, size);
    at = at + size.size() + open + 1 - close;
  }
  limit_registers(ptx);
  for (size_t at = 0; (at = ptx.find(kMark, at)) != std::string::npos;) ptx.erase(at, kMark.size());
  return ptx;
}

bool has_marked_ptx(const std::string& source) {
  return source.find(kMark) != std::string::npos || source.find(kGroups) != std::string::npos;
}

cl::Program build_marked_ptx(const cl::Context& context, const cl::Device& device,
                             const cl::Program& program, const std::string& options) {
  const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
  std::string ptx = binaries.empty() ? "" : std::string(binaries[0].begin(), binaries[0].end());
  const size_t target = ptx.find(kTarget);
  if (target == std::string::npos)
    throw Error(ErrorCode::device_failed, "the driver's program is no PTX for sm_90");
  if (ptx.compare(target + kTarget.size(), 1, "a") != 0) ptx.insert(target + kTarget.size(), "a");
  ptx = with_marks_in_force(std::move(ptx));
  cl::Program patched(context, {device},
                      cl::Program::Binaries{std::vector<unsigned char>(ptx.begin(), ptx.end())});
  patched.build(device, options.c_str());
  return patched;
}

}  // namespace clinfer::ocl
