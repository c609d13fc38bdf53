// Scripts and styles, put into the program from the files in page/ when it is built.
#pragma once

#include <string_view>

namespace etwrelog::export_profile::page {

[[nodiscard]] std::string_view flame_js(); // for the SVG
[[nodiscard]] std::string_view page_html();
[[nodiscard]] std::string_view page_css();
[[nodiscard]] std::string_view page_js();

} // namespace etwrelog::export_profile::page
