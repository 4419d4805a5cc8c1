// Tuning files: which kernel and point was best for which operation on which device. JSON as the
// GPU plug-in's documentation has it, compute units -> hash -> [kernel, index], with an object
// after it says what the record is about:
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
  int index = -1;  // of the point in the family's space; -1: the family's own choice. Counts where
                   // `point` is absent.
  // The following members are absent in records of two elements.
  std::string op;  // op_key()
  std::optional<TuningPoint> point;
  int family_version = 0;            // 0: not said
  std::string device, driver, kind;  // kind: device_kind()
  // One execution of this point, and of the untuned choice timed beside it; 0: not stated.
  double ns = 0, default_ns = 0;
  bool partial = false;  // the search was stopped before it was through
  // Points that did not build, run or verify, and why.
  std::vector<std::pair<std::string, std::string>> failed;
};

class TuningCache {
 public:
  static constexpr size_t kLargest = size_t{16} << 20;  // bytes of a file

  // Throws Error{not_found} where there is no readable regular file, Error{io} that names what is
  // malformed, larger than kLargest or has more values than any tuning file.
  static TuningCache read(const std::string& path);
  // Reads as read() does, but a missing file is empty.
  static TuningCache read_or_empty(const std::string& path);
  // `where` names the file in messages.
  static TuningCache parse(const std::string& text, const std::string& where);

  const TuningRecord* find(unsigned compute_units, const std::string& hash) const;
  // Hash and record of all that have the three elements.
  std::vector<std::pair<std::string, const TuningRecord*>> records() const;
  void set(unsigned compute_units, const std::string& hash, TuningRecord record);
  void erase(unsigned compute_units, const std::string& hash);
  size_t size() const;
  // Counts the records that name a kernel that this engine does not have, as those do that the GPU
  // plug-in wrote. They are kept.
  size_t foreign_records() const;

  // One record a line. Records that were read and not changed are written as they were, with
  // members unknown here.
  std::string to_text() const;

 private:
  struct Entry {
    TuningRecord record;
    std::string text;  // JSON
  };
  std::map<std::string, std::map<std::string, Entry>>
      devices_;                                 // by compute units, as the file spells them
  std::map<std::string, std::string> foreign_;  // members that are no number, as JSON
  size_t within_foreign_ = 0;                   // records in those
};

// Reads the file again under a lock (processes may tune into one file), lets `change` alter it and
// puts the result in its place in one step: at any moment the file is the old or the new one. A
// file that is not there starts empty. Throws Error{io} where it cannot be written, or as
// TuningCache::read, and leaves the file as it was.
void update_tuning_file(const std::string& path, const std::function<void(TuningCache&)>& change);

// Throws what update_tuning_file would throw for a full disk, a folder that cannot be written, or a
// malformed file, before the work is done whose results it is to keep. Leaves no trace.
void check_tuning_file(const std::string& path);

// Devices of one kind are relatives: points of one are a good guess for the other. "pocl cpu,
// vectors of 16".
std::string device_kind(const DeviceTraits& traits);

}  // namespace clinfer
