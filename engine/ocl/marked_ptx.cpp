// Marked instructions of inline PTX become instructions.
#include "engine/ocl/marked_ptx.h"

#include "kernels/base/error.h"

namespace clinfer::ocl {

namespace {
const std::string kMark = "//@", kTarget = ".target sm_90";
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
  for (size_t at = 0; (at = ptx.find(kMark, at)) != std::string::npos;) ptx.erase(at, kMark.size());
  cl::Program patched(context, {device},
                      cl::Program::Binaries{std::vector<unsigned char>(ptx.begin(), ptx.end())});
  patched.build(device, options.c_str());
  return patched;
}

}  // namespace clinfer::ocl
