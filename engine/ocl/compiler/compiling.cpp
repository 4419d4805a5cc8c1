// Starts threads that compile.
#include "engine/ocl/compiler/compiling.h"

#include <memory>
#include <system_error>
#include <thread>

#include "engine/ocl/compiler/compiler_pool.h"
#include "kernels/base/error.h"
#include "kernels/base/system/leaving.h"

namespace clinfer::ocl {

bool start_compiling(std::function<void()> work) {
  when_leaving(CompilerPool::stop_all);
  notice_exit();
  try {
    auto waits = std::make_unique<ExitWaits>(ExitWaits::Until::to_the_end);
    std::thread([work = std::move(work), waits = std::move(waits)]() mutable {
      work();
      work = nullptr;  // must be freed before the process may end
      waits.reset();
    }).detach();
  } catch (const std::system_error&) {
    return false;
  } catch (const Error&) {
    return false;  // the process is ending
  }
  return true;
}

}  // namespace clinfer::ocl
