// Compiles variants of the models on a device, and tries them on the frames of its live streams.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gst/infer/model/shared_model.h"
#include "gst/infer/targets/trial_controller.h"
#include "kernels/base/system/task.h"

namespace clinfer {

// Not thread-safe: the group of the device locks.
class ModelTrials {
 public:
  // A live stream.
  struct User {
    std::shared_ptr<SharedModel> model;  // which it uses now
    bool frees_streams = true;           // its settings leave the number of streams open
    double inferred = 0;                 // frames per second that came within the target
    double wanted = 0;                   // frames per second that are to be inferred
  };
  // Something that the application is to know.
  struct News {
    uint64_t number = 0;  // 1 for the first one
    std::string text;
    Variant variant;        // that computes from now on
    bool on_trial = false;  // only for some seconds
    bool refused = false;   // a wish has no effect
  };
  // The state of a model.
  struct Report {
    Variant variant;                   // that was chosen
    std::string tried;                 // "bf16: 1.82, 2 streams: 1.10": frames for one of before
    std::vector<News> news;            // the last ones
    std::shared_ptr<SharedModel> use;  // the model that its streams are to use now
  };
  // Of a trial that has ended. needless: the present variant infers all frames.
  enum class Result { none, kept, taken, needless };

  // Takes the measurements of a period. `is_short`: the device cannot infer all frames.
  Result step(const std::vector<User>& users, bool is_short);
  // Returns whether variants are compared, for which streams have no limit.
  bool is_measuring() const;
  // Returns what streams with this model are to do; nothing before the first period.
  std::optional<Report> report(const SharedModel& model) const;
  // Returns the model for a stream that leaves: none that is only tried.
  std::shared_ptr<SharedModel> settled(const std::shared_ptr<SharedModel>& model) const;

 private:
  using Compiling = Task<std::shared_ptr<SharedModel>>;
  // All variants of one model.
  struct Origin {
    explicit Origin(const std::shared_ptr<SharedModel>& model)
        : present(model), controller({model->compiled->streams(), model->compiled->precision()}) {}
    std::weak_ptr<SharedModel> present;
    std::shared_ptr<SharedModel> kept;  // the present one after a trial, until a stream uses it
    TrialController controller;
    std::map<std::string, double> gains;  // by what was tried; 0: it cannot be had
    std::deque<News> news;
  };
  using Origins = std::map<std::weak_ptr<const Network>, Origin, std::owner_less<>>;
  struct Trial {
    std::weak_ptr<const Network> network;
    std::shared_ptr<SharedModel> present, candidate;  // no candidate before it is compiled
    std::unique_ptr<Compiling> compiling;
  };

  void follow(const std::vector<User>& users);
  void begin(Origins::value_type& origin);
  bool take_candidate(Origin& origin);
  Result finish(Origin& origin);
  void tell(Origin& origin, const std::string& text, bool on_trial = false, bool refused = false);

  Origins origins_;
  std::optional<Trial> trial_;
  // A trial that nobody uses any more, until its compiler has stopped.
  std::optional<Trial> dropped_;
  uint64_t told_ = 0;
};

}  // namespace clinfer
