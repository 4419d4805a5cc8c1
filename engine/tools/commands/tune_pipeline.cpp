// Measures combinations of streams, requests and batch by successive halving.
#include "engine/tools/commands/tune_pipeline.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "engine/measure/pipeline.h"
#include "engine/tools/measure/throughput.h"
#include "tuning/median.h"

namespace clinfer {

namespace {

// Time of the first measurement; doubled each time fewer contenders are left.
constexpr double kFirstSeconds = 0.25;
// Measurements of each contender before the worse two thirds are dropped.
constexpr int kRounds = 2;
// The factor by which another choice must exceed the throughput of one stream.
constexpr double kWorthSwitching = 1.02;

struct Contender {
  PipelineChoice choice;
  std::shared_ptr<CompiledModel> compiled;
  std::vector<double> ratios;  // its throughput divided by the first contender's in the same round
  std::vector<double> rates;   // images/s
};

double rate_of(const Contender& contender, double seconds) {
  const Feed feed(*contender.compiled);
  std::vector<std::unique_ptr<InferRequest>> requests;
  for (unsigned i = 0; i < contender.choice.requests; ++i) {
    requests.push_back(contender.compiled->create_request());
    feed.prepare(*requests.back());
  }
  return measure(requests, feed, seconds, contender.choice.batch).images_per_second;
}

// Returns all combinations that fit the device's memory, the one of one stream with two requests
// first.
std::vector<Contender> contenders(const std::shared_ptr<const Model>& model, Config config,
                                  unsigned batch, const std::function<bool()>& go_on,
                                  std::FILE* out) {
  config.tuning_mode = TuningMode::use_existing;  // keeps the kernels as they are
  const Progress progress = [&](const std::string&, size_t, size_t) { return go_on(); };
  std::vector<Contender> all;
  for (const unsigned images :
       batch ? std::vector<unsigned>{batch} : std::vector<unsigned>{1, 4, 8}) {
    for (const unsigned streams : {1u, 2u, 3u, 4u}) {
      config.batch = images;
      config.streams = streams;
      std::shared_ptr<CompiledModel> compiled;
      try {
        compiled = CompiledModel::compile(model, config, progress);
      } catch (const Error& error) {
        const bool fits = error.code() != ErrorCode::out_of_memory &&
                          error.code() != ErrorCode::unsupported &&
                          // A batch that the model does not allow.
                          error.code() != ErrorCode::bad_model;
        if (fits || all.empty()) throw;
        std::fprintf(out, "batch %u, %u streams: left out: %s\n", images, streams, error.what());
        break;
      }
      for (const unsigned requests : {2 * streams, streams})
        all.push_back({{streams, requests, images, 0}, compiled, {}, {}});
    }
  }
  return all;
}

}  // namespace

PipelineChoice tune_pipeline(const std::shared_ptr<const Model>& model, const Config& config,
                             unsigned batch, const std::function<bool()>& go_on, std::FILE* out) {
  std::vector<Contender> all = contenders(model, config, batch, go_on, out);
  std::vector<size_t> alive;
  for (size_t i = 0; i < all.size(); ++i) alive.push_back(i);
  const auto stopped = [] {
    return Error(ErrorCode::cancelled,
                 "the search for streams, requests and batch was stopped; nothing of it is kept");
  };
  for (double seconds = kFirstSeconds;; seconds *= 2) {
    for (int round = 0; round < kRounds; ++round) {
      if (!go_on()) throw stopped();
      const double anchor = rate_of(all[0], seconds);
      all[0].rates.push_back(anchor);
      all[0].ratios.push_back(1);
      for (const size_t i : alive) {
        if (i == 0) continue;
        if (!go_on()) throw stopped();
        all[i].rates.push_back(rate_of(all[i], seconds));
        all[i].ratios.push_back(all[i].rates.back() / anchor);
      }
    }
    std::stable_sort(alive.begin(), alive.end(), [&](size_t a, size_t b) {
      return median(all[a].ratios) > median(all[b].ratios);
    });
    if (alive.size() <= 2) break;
    alive.resize((alive.size() + 2) / 3);
  }

  std::fprintf(out, "%7s  %8s  %5s  %10s  %6s\n", "streams", "requests", "batch", "images/s",
               "gain");
  std::map<unsigned, size_t> best_of_batch;
  size_t best = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].choice.images_per_second = median(all[i].rates);
    const auto gain = [&](size_t k) { return median(all[k].ratios); };
    std::fprintf(out, "%7u  %8u  %5u  %10.1f  %6.3f\n", all[i].choice.streams,
                 all[i].choice.requests, all[i].choice.batch, all[i].choice.images_per_second,
                 gain(i));
    // Another choice must be clearly better than the first one for its batch.
    const auto [entry, fresh] = best_of_batch.try_emplace(all[i].choice.batch, i);
    if (!fresh && gain(i) > kWorthSwitching * gain(entry->second)) entry->second = i;
    if (gain(i) > kWorthSwitching * gain(best)) best = i;
  }
  for (const auto& [images, i] : best_of_batch)
    store_pipeline(*model, config, all[0].compiled->device(), all[i].choice,
                   i == best_of_batch.at(all[best].choice.batch));
  const PipelineChoice& choice = all[best_of_batch.at(all[best].choice.batch)].choice;
  std::fprintf(out, "best: %u streams, %u requests, batch %u: %.1f images/s; kept in %s\n",
               choice.streams, choice.requests, choice.batch, choice.images_per_second,
               config.tuning_file.c_str());
  return choice;
}

}  // namespace clinfer
