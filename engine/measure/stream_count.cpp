// Measures the throughput for several numbers of streams.
#include "engine/measure/stream_count.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/measure/clock.h"
#include "engine/runtime/requests/infer_request.h"
#include "kernels/base/hash.h"

namespace clinfer {

namespace {

// The numbers of streams that are tried, in turns, each for kTrialSeconds. A larger number is taken
// only if it raises the throughput by kWorthMoreStreams. The best trial of a number counts, because
// other work on the machine makes some of them slow. If one round takes longer than kLongestRound,
// it is the only one.
constexpr unsigned kTriedStreams[] = {1, 2, 4};
constexpr double kTrialSeconds = 0.06;
constexpr int kTrials = 4;
constexpr double kLongestRound = 0.4;
constexpr double kWorthMoreStreams = 1.03;

// Returns the key of the best number of streams: the device and the launches of one inference.
std::string stream_key(const DeviceNetwork& network) {
  std::string launches;
  for (size_t s = 0; s < network.whole.plan.steps.size(); ++s) {
    launches += network.whole.plan.steps[s].node->type;
    for (size_t l = 0; l < network.whole.kernel_names[s].size(); ++l) {
      launches += " " + network.whole.kernel_names[s][l];
      for (const size_t items : network.whole.plan.steps[s].kernels.launches[l].global)
        launches += " " + std::to_string(items);
    }
    launches += "\n";
  }
  const DeviceInfo& info = network.context->device.info;
  return "throughput streams\n" + info.platform + "\n" + info.name + "\n" + info.driver + "\n" +
         std::to_string(info.compute_units) + "\n" + hex(fnv1a(launches));
}

// Returns inferences per second with two requests for each stream, all kept in flight.
double measure_throughput(const std::shared_ptr<const DeviceNetwork>& network) {
  std::vector<std::unique_ptr<DeviceRequest>> requests;
  for (unsigned i = 0; i < 2 * network->stream_count(); ++i)
    requests.push_back(
        std::make_unique<DeviceRequest>(network, network->stream(i % network->stream_count())));
  for (const auto& request : requests) request->start(0);
  for (const auto& request : requests) {  // the first inference of each request is not counted
    request->wait({});
    request->start(0);
  }
  size_t finished = 0;
  const auto begin = Clock::now();
  double seconds = 0;
  do {
    for (const auto& request : requests) {
      request->wait({});
      request->start(0);
      ++finished;
    }
    seconds = seconds_since(begin);
  } while (seconds < kTrialSeconds);
  return static_cast<double>(finished) / seconds;
}

unsigned measure_best(const std::shared_ptr<DeviceNetwork>& network, const Progress& progress) {
  constexpr size_t kNumbers = std::size(kTriedStreams);
  std::array<double, kNumbers> rates{};
  // Chooses the number after which more streams bring nothing, according to the measurements so
  // far.
  const auto best = [&] {
    size_t i = 0;
    while (i + 1 < kNumbers && rates[i + 1] >= rates[i] * kWorthMoreStreams) ++i;
    return i;
  };
  const auto begin = Clock::now();
  for (int trial = 0; trial < kTrials; ++trial) {
    for (size_t i = 0; i < kNumbers && i <= best() + 1; ++i) {
      if (progress && !progress("measuring " + std::to_string(kTriedStreams[i]) + " streams",
                                kTriedStreams[i], kTriedStreams[kNumbers - 1]))
        throw Error(ErrorCode::cancelled, "compiling was cancelled");
      network->make_streams(kTriedStreams[i]);
      rates[i] = std::max(rates[i], measure_throughput(network));
    }
    if (trial == 0 && seconds_since(begin) > kLongestRound) break;
  }
  return kTriedStreams[best()];
}

}  // namespace

void choose_streams(const std::shared_ptr<DeviceNetwork>& network, const Progress& progress) {
  const std::string key = stream_key(*network);
  unsigned best = 0;
  if (network->cache)
    if (const auto stored = network->cache->load(key))
      for (const unsigned streams : kTriedStreams)
        if (stored->size() == 1 && stored->front() == streams) best = streams;
  if (best == 0) {
    best = measure_best(network, progress);
    if (network->cache) network->cache->store(key, {static_cast<unsigned char>(best)});
  }
  if (network->stream_count() != best) network->make_streams(best);
}

}  // namespace clinfer
