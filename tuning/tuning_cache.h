// Reads and writes tuning files, which list the best kernel and point for each operation on each
// device. They are JSON as documented for OpenVINO's GPU plug-in, compute units -> hash -> [kernel,
// index], followed by an object that describes the record:
//   { "132": { "9f86d081884c7d65": ["conv_tile", 17, { "op": "Convolution in=1x56x56x64:f16 ...",
//   "point": {"TILE_P": 6, ...},
//     "family_version": 3, "device": "NVIDIA H200", "driver": "580.159.04", "ns": 5123,
//     "default_ns": 6001 }] } }
// What is read is untrusted.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace clinfer {

struct TuningRecord {
  std::string family;
  // Index of the point in the family's space; -1: the family's heuristic. Used if `point` is
  // absent.
  int index = -1;
  // The members below are absent in records that consist of two elements only.
  std::string op;  // op_key()
  std::optional<TuningPoint> point;
  int family_version = 0;            // 0: not stated
  std::string device, driver, kind;  // kind: device_kind()
  // The durations of one execution of this point, and of the untuned kernel measured beside it; 0:
  // not stated.
  double ns = 0, default_ns = 0;
  bool partial = false;  // true if the search was stopped early
  // Points that did not build, run or verify, and the reasons.
  std::vector<std::pair<std::string, std::string>> failed;
};

class TuningCache {
 public:
  static constexpr size_t kLargest = size_t{16} << 20;  // bytes of a file

  // Throws Error{not_found} if there is no readable regular file, and Error{io} if it is malformed,
  // larger than kLargest or has more values than any tuning file.
  static TuningCache read(const std::string& path);
  // Reads as read() does, but takes a missing file for an empty one.
  static TuningCache read_or_empty(const std::string& path);
  // `where` names the file in messages.
  static TuningCache parse(const std::string& text, const std::string& where);

  const TuningRecord* find(unsigned compute_units, const std::string& hash) const;
  // Returns the hashes and records of all entries that have three elements.
  std::vector<std::pair<std::string, const TuningRecord*>> records() const;
  void set(unsigned compute_units, const std::string& hash, TuningRecord record);
  void erase(unsigned compute_units, const std::string& hash);
  size_t size() const;
  // Counts the records whose kernel this engine does not have, such as those that OpenVINO's GPU
  // plug-in wrote. They are kept.
  size_t foreign_records() const;

  // Writes one record in a line. Unchanged records are written as they were read, including unknown
  // members.
  std::string to_text() const;

 private:
  struct Entry {
    TuningRecord record;
    std::string text;  // JSON text
  };
  std::map<std::string, std::map<std::string, Entry>>
      devices_;                                 // by compute units, as written in the file
  std::map<std::string, std::string> foreign_;  // members whose names are no numbers, as JSON
  size_t within_foreign_ = 0;                   // number of records in those
};

// Reads the file again under a lock (several processes may tune into one file), lets `change`
// modify it and replaces the file in one step: at any moment it is the old or the new one. A
// missing file counts as empty. Throws Error{io} if the file cannot be written, or as
// TuningCache::read() does, and then leaves the file unchanged.
void update_tuning_file(const std::string& path, const std::function<void(TuningCache&)>& change);

// Throws what update_tuning_file() would throw for a full disk, a folder that cannot be written, or
// a malformed file, before the work whose results it is to keep. Leaves no trace.
void check_tuning_file(const std::string& path);

// Returns the kind of a device: "pocl cpu, vectors of 16". Devices of one kind are relatives:
// points of one are good guesses for the other.
std::string device_kind(const DeviceTraits& traits);

}  // namespace clinfer
