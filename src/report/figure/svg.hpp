// Adapts gnuplot's SVG for a report.
#pragma once

#include <string>
#include <string_view>

namespace syslab::report {

// A text within XML: markup escaped; control characters, which XML 1.0 has no way to write, become U+FFFD.
std::string escape_xml(std::string_view text);

// The picture with a title and a description that screen readers find, a stack of fonts, and axes and texts in the
// colour of the text around it (of the viewer's scheme, light or dark, where it stands alone). Its names begin with
// `prefix`, so that several pictures can stand in one page. No XML prologue, no trace of who drew it.
std::string dress_svg(const std::string& drawn, const std::string& prefix, const std::string& title,
                      const std::string& description);

}  // namespace syslab::report
