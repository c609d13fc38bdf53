// CodeView: the records of symbols, lines and types inside a PDB. All of it is hostile input: every length is
// checked.
#pragma once

#include "symbols/table.hpp"

#include <optional>

namespace etwrelog::symbols {

struct Section {
  std::uint32_t rva = 0, size = 0;
  bool code = false;
};
struct OmapEntry {
  std::uint32_t from = 0, to = 0;
};

// Where segment:offset lies in the image; with a map for images whose code was moved after linking.
class AddressMap {
public:
  // `sections`: those that symbols are given in; `in_image`: as they stand in the image, which is the same
  // where no code was moved.
  AddressMap(std::vector<Section> sections, std::vector<OmapEntry> moved, std::vector<Section> in_image);
  [[nodiscard]] std::optional<std::uint32_t> rva(std::uint16_t segment, std::uint32_t offset) const;
  [[nodiscard]] bool is_code(std::uint16_t segment) const;
  [[nodiscard]] const std::vector<Section> &sections() const { return sections_; }
  [[nodiscard]] const std::vector<Section> &in_image() const { return in_image_; }

private:
  std::vector<Section> sections_, in_image_;
  std::vector<OmapEntry> moved_;
};

// The names of functions that types and ids stand for.
class TypeNames {
public:
  TypeNames(std::vector<std::uint8_t> types, std::vector<std::uint8_t> ids);
  [[nodiscard]] std::string function(std::uint32_t id) const; // "game::inner"; empty if not known

private:
  struct Stream {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint32_t> offsets; // of records
    std::uint32_t first = 0;
  };
  static void index(Stream &stream);
  static Bytes record(const Stream &stream, std::uint32_t number);
  [[nodiscard]] std::string type(std::uint32_t number) const;
  [[nodiscard]] std::string scope(std::uint32_t id) const;
  Stream types_, ids_;
};

class CodeViewReader {
public:
  CodeViewReader(RawSymbols &out, const AddressMap &map, const TypeNames &types, Bytes names, bool x86)
      : out_(out), map_(map), types_(types), names_(names), x86_(x86) {}

  void module(Bytes symbols, Bytes lines); // what one object file brought
  void publics(Bytes records);
  void ends(); // after all: where code of known names stops

private:
  struct Inlinee {
    std::uint32_t file = 0, line = 0;
  };
  struct Site;
  void lines_of(Bytes lines);
  void line_block(Bytes block);
  void inlinees(Bytes block);
  void procedure(Bytes record);
  void separated(Bytes record);
  void inline_site(Bytes annotations, std::uint32_t inlinee);
  std::uint32_t file_name(std::uint32_t checksum_offset);
  std::uint32_t function_name(std::uint32_t id);

  RawSymbols &out_;
  const AddressMap &map_;
  const TypeNames &types_;
  Bytes names_;
  bool x86_;
  // Of the module at hand.
  Bytes checksums_;
  std::unordered_map<std::uint32_t, Inlinee> inlinees_;
  std::unordered_map<std::uint32_t, std::uint32_t> files_;      // by checksum
  std::unordered_map<std::uint32_t, std::uint32_t> file_names_; // by offset in the names
  std::unordered_map<std::uint32_t, std::uint32_t> function_names_;
  std::size_t open_function_ = SIZE_MAX;
  std::uint32_t depth_ = 0;
};

} // namespace etwrelog::symbols
