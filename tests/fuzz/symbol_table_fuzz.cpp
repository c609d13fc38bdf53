// Tables out of a cache: every record and offset may be anything.
#include "symbols/table.hpp"

#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace etwrelog;
  using namespace etwrelog::symbols;
  if (size < 4) return 0;
  // A header that fits, and records out of the input.
  TableHeader header;
  header.functions = data[0] % 32;
  header.inlines = data[1] % 32;
  header.lines = data[2] % 32;
  header.pdb_path = data[3];
  const std::size_t records = header.functions * sizeof(FunctionRecord) +
                              header.inlines * sizeof(InlineRecord) + header.lines * sizeof(LineRecord);
  header.strings = 1 + size % 64;
  std::vector<std::uint8_t> file(sizeof header + records + header.strings, 0);
  std::memcpy(file.data(), &header, sizeof header);
  const std::size_t count = std::min(size - 4, file.size() - sizeof header - 1);
  std::memcpy(file.data() + sizeof header, data + 4, count);
  for (const Bytes bytes : {Bytes(file), Bytes(data, size)}) {
    const Result<TableView> view = TableView::open(bytes);
    if (!view) continue;
    SymbolNames names;
    std::size_t sum = view->pdb_path().size();
    for (std::uint32_t i = 0; i < view->functions(); ++i)
      for (const std::uint32_t step : {0u, 1u, 100u})
        if (view->lookup(view->function(i).rva + step, names))
          for (const SymbolFrame &frame : names.frames)
            sum += frame.function.size() + frame.file.size();
    for (const std::uint32_t rva : {0u, 0x1000u, 0xFFFF'FFFFu})
      (void)view->lookup(rva, names);
    static volatile std::size_t sink; // what is read must not be thought of as unused
    sink = sum;
    (void)sink;
  }
  return 0;
}
