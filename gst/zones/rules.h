// Parses lines and zones as users write them: in properties, or as JSON in a file.
#pragma once

#include <string>
#include <vector>

#include "gst/base/extents.h"
#include "gst/zones/counter.h"

namespace clinfer {

class ZoneRules {
 public:
  ZoneRules() = default;
  // Parses `lines` ("NAME:X1,Y1,X2,Y2;..."), `zones` ("NAME:X1,Y1,X2,Y2,X3,Y3,...;...") and `file`,
  // the path of {"lines": [{"name": N, "points": [[X, Y], [X, Y]]}, ...], "zones": [...]}; each may
  // be empty. Whole numbers are pixels, numbers with a point are shares of the picture. Throws
  // Error{bad_argument or not_found}, which names the property and tells what it accepts.
  ZoneRules(const std::string& lines, const std::string& zones, const std::string& file);

  // Returns the lines and zones in a picture of this size.
  std::vector<Zone> zones(int width, int height) const;
  bool empty() const { return zones_.empty(); }

 private:
  struct Drawn {
    std::string name;
    bool is_line = false;
    std::vector<std::pair<Extent, Extent>> points;
  };
  void add(const std::string& property, Drawn drawn);
  void read_text(const char* property, const std::string& text, bool is_line);
  void read_file(const std::string& path);
  std::vector<Drawn> zones_;
};

}  // namespace clinfer
