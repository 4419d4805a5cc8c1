// Compiles programs for CUDA, loads their modules and gets their kernels.
#include "engine/cuda/kernel.h"

#include <cstdint>
#include <cstring>

#include "engine/cuda/ptx.h"

namespace clinfer::cuda {

namespace {

// Lies in front of a packed binary.
struct Header {
  uint32_t dynamic_shared = 0, begins_early = 0;
};

[[noreturn]] void refuse(const Driver& driver, CUresult result, const std::string& what,
                         const std::string& log) {
  throw Failure(
      result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::unsupported,
      "CUDA does not " + what + " (" + name_of(driver, result) + ")" +
          (log.empty() ? "" : " " + log));
}

// A compilation in the driver, with its log, to which the driver writes until it is destroyed.
class Link {
 public:
  explicit Link(const Driver& driver) : driver_(driver) {
    std::array options{CUjit_option{CU_JIT_ERROR_LOG_BUFFER},
                       CUjit_option{CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES}};
    std::array<void*, 2> values{log_.data(), reinterpret_cast<void*>(log_.size() - 1)};
    driver.cuLinkCreate_v2(options.size(), options.data(), values.data(), &link_);
  }
  ~Link() { driver_.cuLinkDestroy.result_of(link_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::vector<unsigned char> compile(std::string ptx, const std::string& name) {
    void* code = nullptr;
    size_t bytes = 0;
    CUresult result = driver_.cuLinkAddData_v2.result_of(
        link_, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, name.c_str(), 0, nullptr, nullptr);
    if (result == CUDA_SUCCESS) result = driver_.cuLinkComplete.result_of(link_, &code, &bytes);
    if (result != CUDA_SUCCESS)
      refuse(driver_, result, "compile kernel " + name, printable(log_.data()));
    const auto* const begin = static_cast<const unsigned char*>(code);  // the link owns it
    return {begin, begin + bytes};
  }

 private:
  const Driver& driver_;
  CUlinkState link_ = nullptr;
  std::array<char, 1024> log_{};
};

}  // namespace

std::vector<unsigned char> Code::pack() const {
  const Header header{dynamic_shared, begins_early};
  std::vector<unsigned char> bytes(sizeof header + binary.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(binary.begin(), binary.end(), bytes.begin() + sizeof header);
  return bytes;
}

std::optional<Code> Code::unpack(const std::vector<unsigned char>& bytes) {
  Header header;
  if (bytes.size() <= sizeof header) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  return Code{{bytes.begin() + sizeof header, bytes.end()},
              header.dynamic_shared,
              header.begins_early != 0};
}

Code compile(const Device& device, std::string ptx, const std::string& name) {
  Ptx own = ptx_for_cuda(std::move(ptx));
  const Current current(device);
  return {Link(device.driver()).compile(std::move(own.text), name),
          static_cast<unsigned>(own.dynamic_shared), own.begins_early};
}

Kernel::Kernel(std::shared_ptr<const Device> device, const Code& code, const std::string& name)
    : device_(std::move(device)),
      dynamic_shared_(code.dynamic_shared),
      begins_early_(code.begins_early) {
  const Driver& driver = device_->driver();
  const Current current(*device_);
  if (const CUresult result = driver.cuModuleLoadData.result_of(&module_, code.binary.data());
      result != CUDA_SUCCESS)
    refuse(driver, result, "load kernel " + name, "");
  try {
    driver.cuModuleGetFunction(&function_, module_, name.c_str());
    if (dynamic_shared_ != 0)
      driver.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                static_cast<int>(dynamic_shared_));
  } catch (...) {
    driver.cuModuleUnload.result_of(module_);
    throw;
  }
}

Kernel::~Kernel() {
  const Current current(*device_, std::nothrow);
  device_->driver().cuModuleUnload.result_of(module_);
}

}  // namespace clinfer::cuda
