// A figure as commands for gnuplot. Everything that could differ from one gnuplot to the next (ranges, tics, margins,
// places of labels) is settled here.
#pragma once

#include <filesystem>
#include <string>

#include "report/figure/data.hpp"

namespace syslab::report {

enum class Terminal { svg, pdf };

// Lines, texts and tics take this colour; a picture in SVG has it replaced by that of its surroundings.
inline constexpr const char* kInk = "#010203";
inline constexpr const char* kFaintInk = "#010204";  // of the grid

// Commands that draw the figure into `output`. `number` tells the script's data apart from other figures'.
std::string figure_script(const FigureData& data, Terminal terminal, const std::filesystem::path& output, int number);

}  // namespace syslab::report
