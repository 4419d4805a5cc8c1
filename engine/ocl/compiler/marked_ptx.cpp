// Turns marked instructions of inline PTX into instructions.
#include "engine/ocl/compiler/marked_ptx.h"

#include "kernels/base/error.h"

namespace clinfer::ocl {

namespace {
const std::string kMark = "//@", kSize = "//#local ", kTarget = ".target sm_90";
}

std::string with_marks_in_force(std::string ptx) {
  for (size_t at = 0; (at = ptx.find(kSize, at)) != std::string::npos; at += kSize.size()) {
    const size_t digits = at + kSize.size();
    const std::string size =
        ptx.substr(digits, ptx.find_first_not_of("0123456789", digits) - digits);
    const size_t declared = ptx.rfind(".shared ", at);
    const size_t open = declared == std::string::npos ? declared : ptx.find('[', declared);
    const size_t close = open == std::string::npos ? open : ptx.find(']', open);
    if (close == std::string::npos || close > at || size.empty())
      throw Error(ErrorCode::device_failed, "the driver's program declares no local memory");
    ptx.replace(open + 1, close - open - 1, size);
    at = at + size.size() + open + 1 - close;
  }
  for (size_t at = 0; (at = ptx.find(kMark, at)) != std::string::npos;) ptx.erase(at, kMark.size());
  return ptx;
}

bool has_marked_ptx(const std::string& source) { return source.find(kMark) != std::string::npos; }

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
