// Where names are placed in a picture: next to the ends of lines, and in a legend below the panels. In pixels.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syslab::report {

// Labels to the right of a panel: a line's name next to its end.
struct EndLabel {
  double at = 0;  // from the top of the picture
  std::string text;
  std::optional<std::size_t> series;  // nothing: a line in ink
  bool broken = false;                // the line in ink, as ceilings are
};

// Moves labels apart that would cover each other, within [top, bottom], keeping their order; `line` is the distance
// that they want.
void spread(std::vector<EndLabel>& labels, double top, double bottom, double line);

// A name of the legend, from the left edge and from the legend's top.
struct LegendEntry {
  double x = 0, y = 0;
  std::string text;
};

// Names side by side in as many rows of `width` as they take, each with room for its swatch before it and a gap after
// it. A name is whole unless it is longer than a row.
std::vector<LegendEntry> legend_of(const std::vector<std::string>& names, double width, double swatch, double gap,
                                   double character, double line);

}  // namespace syslab::report
