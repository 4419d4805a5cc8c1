// Runs requests in cycles of start and wait.
#include "engine/tools/measure/throughput.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/measure/noise.h"
#include "engine/runtime/requests/infer_request.h"
#include "kernels/base/nearest_rank.h"
#include "kernels/base/system/threads.h"

namespace clinfer {

namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

double Measured::percentile(double p) const {
  return latencies_ms[nearest_rank(p / 100, latencies_ms.size())];
}

Feed::Feed(const CompiledModel& compiled) {
  for (const Port& port : compiled.inputs()) tensors.push_back(synthetic_tensor(port));
}

void Feed::prepare(InferRequest& request) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!image || i != image->index) request.set_input(i, tensors[i]);
}

void Feed::before_start(InferRequest& request) const {
  if (auto* const own = dynamic_cast<DeviceRequest*>(&request); own && uploads) own->upload_again();
  if (!image) return;
  for (size_t i = 0; i < image->batch; ++i)
    request.set_frame(image->index, *frame, image->transform, i);
}

size_t batch_of(const CompiledModel& compiled) {
  return compiled.inputs().empty() || compiled.inputs()[0].shape.empty()
             ? 1
             : static_cast<size_t>(std::max<int64_t>(compiled.inputs()[0].shape[0], 1));
}

namespace {

// Calls `cycle` for each request on a thread of its own. Throws the error of one of these threads.
void run_beside_each_other(std::vector<std::unique_ptr<InferRequest>>& requests,
                           const std::function<void(InferRequest&)>& cycle) {
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (const auto& request : requests)
      threads.push_back(start_thread<std::jthread>([&] {
        try {
          cycle(*request);
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      }));
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

Measured measure(std::vector<std::unique_ptr<InferRequest>>& requests, const Feed& feed,
                 double seconds, size_t batch) {
  std::mutex mutex;
  Measured measured;
  const auto begin = Clock::now();
  const auto end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  run_beside_each_other(requests, [&](InferRequest& request) {
    std::vector<double> mine;
    auto start = Clock::now();
    do {  // at least one, however short the time
      feed.before_start(request);
      request.start();
      request.wait();
      const auto done = Clock::now();
      mine.push_back(ms_between(start, done));
      start = done;
    } while (start < end);
    const std::lock_guard lock(mutex);
    measured.latencies_ms.insert(measured.latencies_ms.end(), mine.begin(), mine.end());
  });
  measured.seconds = ms_between(begin, Clock::now()) / 1000;
  measured.images_per_second =
      static_cast<double>(measured.latencies_ms.size() * batch) / measured.seconds;
  std::sort(measured.latencies_ms.begin(), measured.latencies_ms.end());
  return measured;
}

size_t count_different(const CompiledModel& compiled,
                       std::vector<std::unique_ptr<InferRequest>>& requests, const Feed& feed,
                       size_t inferences) {
  const auto infer = [&](InferRequest& request) {
    feed.before_start(request);
    request.start();
    request.wait();
  };
  infer(*requests.front());
  std::vector<Tensor> first;  // stays unchanged: later results go to other memory
  for (size_t i = 0; i < compiled.outputs().size(); ++i)
    first.push_back(requests.front()->output(i));
  const auto is_same = [&](InferRequest& request) {
    for (size_t i = 0; i < first.size(); ++i) {
      const Tensor& result = request.output(i);
      if (result.shape() != first[i].shape() ||
          std::memcmp(result.raw(), first[i].raw(), first[i].bytes()) != 0)
        return false;
    }
    return true;
  };
  std::atomic<size_t> begun{0}, different{0};
  run_beside_each_other(requests, [&](InferRequest& request) {
    while (begun++ < inferences) {
      infer(request);
      different += !is_same(request);
    }
  });
  return different;
}

}  // namespace clinfer
