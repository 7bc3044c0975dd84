#include "report/figure/labels.hpp"

#include <algorithm>

#include "report/figure/text.hpp"

namespace syslab::report {

void spread(std::vector<EndLabel>& labels, double top, double bottom, double line) {
  std::stable_sort(labels.begin(), labels.end(), [](const EndLabel& a, const EndLabel& b) { return a.at < b.at; });
  const double n = static_cast<double>(labels.size());
  const double distance = n > 1 ? std::min(line, (bottom - top) / (n - 1)) : 0;
  double lowest = top;
  for (EndLabel& label : labels) {
    label.at = std::max(label.at, lowest);
    lowest = label.at + distance;
  }
  double highest = bottom;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    label->at = std::min(label->at, highest);
    highest = label->at - distance;
  }
}

std::vector<LegendEntry> legend_of(const std::vector<std::string>& names, double width, double swatch, double gap,
                                   double character, double line) {
  const auto most = static_cast<std::size_t>((width - gap - swatch) / character);
  std::vector<LegendEntry> entries;
  double x = gap, y = 0;
  for (const std::string& name : names) {
    const std::string text = fitted(name, most);
    const double taken = swatch + static_cast<double>(characters(text)) * character;
    if (x > gap && x + taken > width) {
      x = gap;
      y += line;
    }
    entries.push_back({x, y, text});
    x += taken + gap;
  }
  return entries;
}

}  // namespace syslab::report
