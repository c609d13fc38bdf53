#include "tests/support/symbol_files.hpp"

#include "tests/support/trace_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace etwrelog::test_support {
namespace {

namespace fs = std::filesystem;

bool run(const std::string &command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

std::string first_of(std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (run(std::string("command -v ") + name)) return name;
  return {};
}

// The CodeView record in the image's debug directory: "RSDS", GUID, age, name.
bool read_identity(const std::string &exe, DemoPdb &out) {
  const std::string bytes = read_file(exe);
  const std::size_t at = bytes.find("RSDS");
  if (at == std::string::npos || bytes.size() - at < 24) return false;
  const auto *from = reinterpret_cast<const std::uint8_t *>(bytes.data()) + at;
  out.guid = load_guid(from + 4);
  out.age = load<std::uint32_t>(from + 20);
  return true;
}

std::optional<DemoPdb> build(bool debug) {
  const std::string compiler = first_of({"clang++-14", "clang++"}),
                    linker = first_of({"lld-link-14", "lld-link"});
  if (compiler.empty() || linker.empty()) return std::nullopt;
  DemoPdb out;
  out.folder = new_folder(debug ? "demo" : "demo-publics");
  out.source = (testing::project_dir() / "tests/symbols/demo.cpp").string();
  const std::string base = out.folder + "/demo";
  if (!run(compiler + " --target=x86_64-pc-windows-msvc -O2 " + (debug ? "-g -gcodeview" : "") +
           " -fno-exceptions -nostdlib -c " + out.source + " -o " + base + ".obj"))
    return std::nullopt;
  if (!run(linker + " /nodefaultlib /entry:entry /subsystem:console /debug /Brepro /pdb:" + base +
           ".pdb '/pdbaltpath:C:\\build\\demo.pdb' /out:" + base + ".exe " + base + ".obj"))
    return std::nullopt;
  if (!read_identity(base + ".exe", out)) return std::nullopt;
  return out;
}

} // namespace

const std::optional<DemoPdb> &demo_pdb(bool debug) {
  static const std::optional<DemoPdb> with = build(true), without = build(false);
  return debug ? with : without;
}

std::map<std::uint32_t, std::vector<Place>> symbolizer_answers(const DemoPdb &pdb) {
  constexpr std::uint32_t kText = 0x1000, kTextEnd = 0x1400;
  const std::string questions = pdb.folder + "/addresses.txt", answers = pdb.folder + "/answers.txt";
  std::ofstream ask(questions);
  for (std::uint32_t rva = kText; rva < kTextEnd; ++rva)
    ask << "0x" << std::hex << rva << '\n';
  ask.close();
  if (std::system(("llvm-symbolizer --obj=" + pdb.folder + "/demo.exe --relative-address < " + questions +
                   " > " + answers + " 2>/dev/null")
                      .c_str()) != 0)
    return {};
  std::map<std::uint32_t, std::vector<Place>> places;
  std::ifstream file(answers);
  std::string function, where;
  for (std::uint32_t rva = kText; rva < kTextEnd; ++rva)
    while (std::getline(file, function) && !function.empty()) { // frames, then an empty line
      std::getline(file, where);
      if (function == "??") continue;
      const std::size_t column = where.rfind(':'), line = where.rfind(':', column - 1);
      places[rva].push_back({function.substr(0, function.find('(')), where.substr(0, line),
                             static_cast<std::uint32_t>(std::stoul(where.substr(line + 1)))});
    }
  std::erase_if(places, [](const auto &place) {
    return std::ranges::any_of(place.second, [](const Place &frame) { return frame.line == 0; });
  });
  return places;
}

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return std::move(out).str();
}

void write_file(const std::string &path, const std::string &bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string new_folder(const std::string &name) {
  static int count = 0;
  const fs::path folder = fs::temp_directory_path() / ("etwrelog-test-" + std::to_string(::getpid()) + "-" +
                                                       name + std::to_string(count++));
  fs::remove_all(folder);
  fs::create_directories(folder);
  // Gone when the tests end.
  static struct Cleaner {
    std::vector<fs::path> folders;
    ~Cleaner() {
      for (const fs::path &one : folders) {
        std::error_code ignored;
        fs::remove_all(one, ignored);
      }
    }
  } cleaner;
  cleaner.folders.push_back(folder);
  return folder.string();
}

} // namespace etwrelog::test_support
