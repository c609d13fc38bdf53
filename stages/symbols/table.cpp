#include "symbols/table.hpp"

#include "base/cut_text.hpp"
#include "base/errors.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace etwrelog::symbols {
namespace {

constexpr std::uint64_t kMostStrings = 0xFFFF'FFFF;

template <class Record> void append(std::vector<std::uint8_t> &out, const std::vector<Record> &records) {
  const auto *from = reinterpret_cast<const std::uint8_t *>(records.data());
  out.insert(out.end(), from, from + records.size() * sizeof(Record));
}

template <class Record> Record record_at(Bytes bytes, std::size_t index) {
  return load<Record>(bytes.data() + index * sizeof(Record));
}

// The first index in [low, high) for which `past` holds.
template <class Past> std::size_t first_past(std::size_t low, std::size_t high, Past past) {
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (past(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Code of one address may have several names (identical functions folded into one): the first by name stays.
// Publics within a function say nothing more; those between functions stay as guesses.
std::vector<FunctionRecord> sorted_functions(RawSymbols &raw) {
  const auto name = [&](const FunctionRecord &f) {
    return std::string_view(reinterpret_cast<const char *>(raw.strings.bytes().data() + f.name));
  };
  const auto by_address = [&](const FunctionRecord &a, const FunctionRecord &b) {
    return a.rva != b.rva ? a.rva < b.rva : a.name != b.name && name(a) < name(b);
  };
  const auto same_address = [](const FunctionRecord &a, const FunctionRecord &b) { return a.rva == b.rva; };
  std::vector<FunctionRecord> &procedures = raw.functions, &publics = raw.publics;
  std::stable_sort(procedures.begin(), procedures.end(), by_address);
  procedures.erase(std::unique(procedures.begin(), procedures.end(), same_address), procedures.end());
  std::stable_sort(publics.begin(), publics.end(), by_address);
  publics.erase(std::unique(publics.begin(), publics.end(), same_address), publics.end());
  std::erase_if(publics, [&](const FunctionRecord &p) {
    const auto after = std::ranges::upper_bound(procedures, p.rva, {}, &FunctionRecord::rva);
    if (after == procedures.begin()) return false;
    const FunctionRecord &before = *(after - 1);
    return p.rva == before.rva || p.rva - before.rva < before.size;
  });
  std::erase_if(raw.ends, [&](const FunctionRecord &end) {
    const auto at = [&](const std::vector<FunctionRecord> &in) {
      const auto found = std::ranges::lower_bound(in, end.rva, {}, &FunctionRecord::rva);
      return found != in.end() && found->rva == end.rva;
    };
    return at(procedures) || at(publics);
  });
  std::vector<FunctionRecord> all = std::move(procedures);
  all.insert(all.end(), publics.begin(), publics.end());
  all.insert(all.end(), raw.ends.begin(), raw.ends.end());
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.rva < b.rva; });
  return all;
}

// The calls put in place, in the order of their functions.
std::vector<InlineRecord> sorted_inlines(const RawSymbols &raw, std::vector<FunctionRecord> &functions) {
  std::vector<InlineRecord> out;
  out.reserve(raw.inlines.size());
  for (FunctionRecord &f : functions) {
    const std::size_t first = out.size();
    const std::size_t end =
        std::min<std::size_t>(std::size_t{f.first_inline} + f.inlines, raw.inlines.size());
    for (std::size_t i = f.first_inline; i < end; ++i)
      out.push_back(raw.inlines[i]);
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
              [](const InlineRecord &a, const InlineRecord &b) {
                return std::tie(a.depth, a.rva, a.end, a.name, a.line) <
                       std::tie(b.depth, b.rva, b.end, b.name, b.line);
              });
    f.first_inline = static_cast<std::uint32_t>(first);
    f.inlines = static_cast<std::uint32_t>(out.size() - first);
  }
  return out;
}

Error damaged(std::string what) {
  return base::corrupt("symbol table: " + std::move(what));
}

} // namespace

std::uint32_t StringBlock::add(std::string_view text) {
  text = base::at_most(text.substr(0, text.find('\0')), base::kLongestName);
  if (text.empty() || bytes_.size() + text.size() + 1 > kMostStrings) return 0;
  const auto at = static_cast<std::uint32_t>(bytes_.size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  bytes_.push_back(0);
  return at;
}

std::uint32_t StringBlock::intern(std::string_view text) {
  const auto [found, fresh] = known_.try_emplace(std::string(text), 0);
  if (fresh) found->second = add(text);
  return found->second;
}

std::vector<std::uint8_t> make_table(RawSymbols &&raw) {
  std::vector<FunctionRecord> functions = sorted_functions(raw);
  const std::vector<InlineRecord> inlines = sorted_inlines(raw, functions);
  // At one address a line wins over the end of the stretch before it.
  std::stable_sort(raw.lines.begin(), raw.lines.end(), [](const LineRecord &a, const LineRecord &b) {
    return a.rva != b.rva ? a.rva < b.rva : (a.line == 0) && (b.line != 0);
  });
  TableHeader header;
  store_guid(header.guid, raw.identity.guid);
  header.age = raw.identity.age;
  header.functions = static_cast<std::uint32_t>(functions.size());
  header.inlines = static_cast<std::uint32_t>(inlines.size());
  header.lines = static_cast<std::uint32_t>(raw.lines.size());
  header.pdb_bytes = raw.pdb_bytes;
  header.pdb_path = raw.strings.add(raw.pdb_path);
  header.strings = raw.strings.bytes().size();
  std::vector<std::uint8_t> out(sizeof header);
  std::memcpy(out.data(), &header, sizeof header);
  out.reserve(sizeof header + functions.size() * sizeof(FunctionRecord) +
              inlines.size() * sizeof(InlineRecord) + raw.lines.size() * sizeof(LineRecord) + header.strings);
  append(out, functions);
  append(out, inlines);
  append(out, raw.lines);
  append(out, raw.strings.bytes());
  return out;
}

Result<TableView> TableView::open(Bytes bytes) {
  TableView view;
  if (bytes.size() < sizeof(TableHeader)) return damaged("too short");
  view.header_ = load<TableHeader>(bytes.data());
  const TableHeader &h = view.header_;
  if (std::memcmp(h.magic, TableHeader{}.magic, sizeof h.magic) != 0) return damaged("other magic");
  const std::uint64_t functions = std::uint64_t{h.functions} * sizeof(FunctionRecord),
                      inlines = std::uint64_t{h.inlines} * sizeof(InlineRecord),
                      lines = std::uint64_t{h.lines} * sizeof(LineRecord);
  if (h.strings == 0 || h.strings > kMostStrings ||
      bytes.size() != sizeof(TableHeader) + functions + inlines + lines + h.strings)
    return damaged("sizes do not add up");
  if (bytes.back() != 0) return damaged("strings do not end");
  auto take = [&, at = sizeof(TableHeader)](std::uint64_t size) mutable {
    const Bytes part = bytes.subspan(at, size);
    at += size;
    return part;
  };
  view.functions_ = take(functions);
  view.inlines_ = take(inlines);
  view.lines_ = take(lines);
  view.strings_ = take(h.strings);
  return view;
}

Identity TableView::identity() const {
  return {load_guid(header_.guid), header_.age};
}

FunctionRecord TableView::function(std::size_t index) const {
  return record_at<FunctionRecord>(functions_, index);
}
InlineRecord TableView::inlined(std::size_t index) const {
  return record_at<InlineRecord>(inlines_, index);
}
LineRecord TableView::line(std::size_t index) const {
  return record_at<LineRecord>(lines_, index);
}

std::string_view TableView::text(std::uint32_t offset) const {
  if (offset >= strings_.size()) return {};
  const std::string_view found(reinterpret_cast<const char *>(strings_.data()) +
                               offset); // the last byte is 0
  return base::at_most(found, base::kLongestName);
}

void TableView::add_inlines(const FunctionRecord &f, std::uint32_t rva, SymbolNames &names) const {
  std::size_t from = f.first_inline;
  const std::size_t end = std::min<std::size_t>(from + f.inlines, header_.inlines);
  constexpr std::uint32_t kDeepest = 1000;
  for (std::uint32_t depth = 0; depth < kDeepest; ++depth) {
    // The last that begins at or before the address, among those of this depth.
    const std::size_t after = first_past(from, end, [&](std::size_t i) {
      const InlineRecord r = inlined(i);
      return r.depth != depth ? r.depth > depth : r.rva > rva;
    });
    if (after == from) return;
    const InlineRecord found = inlined(after - 1);
    if (found.depth != depth || rva < found.rva || rva >= found.end) return;
    names.frames.push_back({text(found.name), text(found.file), found.line, true});
    from = after;
  }
}

bool TableView::lookup(std::uint32_t rva, SymbolNames &names) const {
  names.frames.clear();
  const std::size_t after =
      first_past(0, header_.functions, [&](std::size_t i) { return function(i).rva > rva; });
  if (after == 0) return false;
  const FunctionRecord f = function(after - 1);
  if (f.name == kNothing || f.rva > rva) return false;
  const std::string_view name = text(f.name);
  if (name.empty()) return false;
  names.offset = rva - f.rva;
  names.estimated = names.offset >= f.size;
  SymbolFrame frame{name, {}, 0, false};
  const std::size_t past = first_past(0, header_.lines, [&](std::size_t i) { return line(i).rva > rva; });
  if (past != 0 && !names.estimated) {
    const LineRecord at = line(past - 1);
    if (at.line != 0 && at.rva >= f.rva) {
      frame.file = text(at.file);
      frame.line = at.line;
    }
  }
  names.frames.push_back(frame);
  if (!names.estimated) add_inlines(f, rva, names);
  return true;
}

} // namespace etwrelog::symbols
