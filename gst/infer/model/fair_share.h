// Divides a device between live streams that together have more frames than it can infer. Plain C++
// without clocks or threads of its own, so that tests can simulate cameras exactly.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace clinfer {

// Divides the device fairly. Live frames cannot be stored until it is free, so a stream only has a
// claim, not a queue. As in fair queueing, each stream has a tag that grows by 1 / share per image
// inferred. A frame is refused when it would have to wait too long, or when it would keep a stream
// with a lower tag, whose next frame is due, from being admitted in time. A stream that was refused
// keeps its low tag and therefore comes first, whatever its phase. Streams that ask for less than
// their share save up a few images only.
//
// Not thread-safe: the owner locks.
class FairShare {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  // The device's outstanding work, and the work that one more image adds.
  struct Load {
    Duration backlog{};    // until a frame that comes now would begin
    Duration per_image{};  // zero: not known yet
  };

  // Decides about a frame of `stream` that has arrived. Returns true if it may be inferred; it then
  // counts as inferred. `longest`: how long it may wait for the device. `share`: the weight of the
  // stream, at least 1.
  bool admit(const void* stream, unsigned share, Duration longest, const Load& load,
             Clock::time_point now) {
    std::erase_if(clients_, [&](const auto& entry) { return now - entry.second.last > kMemory; });
    Client& client = arrive(stream, now);
    client.refused = load.backlog > longest || would_block_another(client, longest, load, now);
    if (client.refused) return false;
    client.images = std::exchange(client.images_now, 0);
    charge(client, share);
    return true;
  }

  // Counts a further image of a frame that was admitted.
  void charge(const void* stream, unsigned share) {
    if (const auto found = clients_.find(stream); found != clients_.end())
      charge(found->second, share);
  }

 private:
  struct Client {
    double tag = 0;  // that the next image gets
    // Numbers of images of the last two admitted frames.
    int images = 1, images_now = 1;
    bool refused = false;  // true if the last frame was refused
    Clock::time_point last;
    std::optional<Duration> interval;  // between frames, smoothed
  };

  // The number of intervals without a frame after which a stream has no claim: it has ended, is
  // paused, or its thread gets no time on a busy machine. Its tag is remembered, so that it gets
  // back later what the others got meanwhile.
  static constexpr int kEndedAfter = 4;
  static constexpr Duration kLeastEnd = std::chrono::milliseconds(200);
  static constexpr Duration kMemory = std::chrono::seconds(10);
  // The largest difference of tags.
  static constexpr double kSaved = 10;
  // A stream this far ahead of one that was refused gives way to it even if that one's frame is due
  // a little later than the device is free again.
  static constexpr double kLead = 2;

  static Duration end_of(const Client& client) {
    return std::max(kLeastEnd, client.interval.value_or(Duration{}) * kEndedAfter);
  }
  void charge(Client& client, unsigned share) {
    client.tag += 1.0 / std::max(share, 1u);
    ++client.images_now;
    highest_tag_ = std::max(highest_tag_, client.tag);
  }

  Client& arrive(const void* stream, Clock::time_point now) {
    const auto [found, is_new] = clients_.try_emplace(stream);
    Client& client = found->second;
    client.tag = is_new ? highest_tag_ : std::max(client.tag, highest_tag_ - kSaved);
    if (!is_new) {
      const Duration gap = now - client.last;
      client.interval = client.interval ? (*client.interval * 3 + gap) / 4 : gap;
    }
    client.last = now;
    return client;
  }

  // Returns whether some stream with a lower tag would be refused at its next frame because of this
  // one. Such streams take their turns in the order in which their frames are due.
  bool would_block_another(const Client& mine, Duration longest, const Load& load,
                           Clock::time_point now) const {
    struct Claim {
      Duration due;
      int images;
    };
    std::vector<Claim> claims;
    for (const auto& [stream, other] : clients_) {
      const double lead = mine.tag - other.tag;
      if (&other == &mine || lead < 1e-9 || now - other.last > end_of(other)) continue;
      const Duration interval = other.interval.value_or(Duration{});
      // Frames are not exactly in time, so one that is due within a quarter of an interval counts
      // as due.
      Duration wait = std::max(Duration{}, other.last + interval * 3 / 4 - now);
      if (other.refused && lead > kLead)
        wait -= std::chrono::duration_cast<Duration>(load.per_image * (lead - kLead));
      claims.push_back({wait, other.images});
    }
    std::sort(claims.begin(), claims.end(),
              [](const Claim& a, const Claim& b) { return a.due < b.due; });
    Duration backlog = load.backlog + load.per_image * mine.images;
    for (const Claim& claim : claims) {
      if (backlog - claim.due > longest) return true;
      backlog += load.per_image * claim.images;
    }
    return false;
  }

  std::unordered_map<const void*, Client> clients_;
  double highest_tag_ = 0;
};

}  // namespace clinfer
