// Symbols: what a PDB says about addresses, where PDBs are looked for, what a cache may hold.
#include "etwrelog/symbols.hpp"
#include "symbols/cabinet.hpp"
#include "symbols/codeview.hpp"
#include "symbols/pdb.hpp"
#include "symbols/search.hpp"
#include "tests/support/symbol_files.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace etwrelog {
namespace {

namespace fs = std::filesystem;
using namespace test_support;
using symbols::Identity;
using symbols::parse_symbol_path;

#define NEED_PDB()                                                                                           \
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";                                    \
  if (!demo_pdb()) GTEST_SKIP() << "no clang++ and lld-link here to make a PDB with"

Bytes bytes_of(const std::string &text) {
  return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

ModuleIdentity identity_of(const DemoPdb &pdb) {
  ModuleIdentity m;
  m.path = "C:\\game\\demo.exe";
  m.pdb_name = "C:\\build\\demo.pdb";
  m.pdb_guid = pdb.guid;
  m.pdb_age = pdb.age;
  return m;
}

SymbolOptions in_folder(const std::string &folder, const std::string &cache = {}) {
  SymbolOptions options;
  options.folders = {folder};
  options.cache = cache;
  return options;
}

// The line of demo.cpp that bears the mark "line: NAME".
std::uint32_t marked(const DemoPdb &pdb, const std::string &name) {
  std::ifstream file(pdb.source);
  std::uint32_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.ends_with("// line: " + name)) return number;
  }
  return 0;
}

symbols::TableView table_of(const DemoPdb &pdb, std::vector<std::uint8_t> &storage) {
  const std::string file = read_file(pdb.folder + "/demo.pdb");
  Result<symbols::RawSymbols> raw = symbols::read_pdb(bytes_of(file), "demo.pdb");
  EXPECT_TRUE(raw) << (raw ? "" : raw.error().message());
  storage = symbols::make_table(std::move(*raw));
  Result<symbols::TableView> view = symbols::TableView::open(storage);
  EXPECT_TRUE(view);
  return *view;
}

TEST(Symbols, APdbNamesFunctionsLinesAndCallsPutInPlace) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  std::vector<std::uint8_t> storage;
  const symbols::TableView table = table_of(pdb, storage);
  EXPECT_EQ(table.identity(), (Identity{pdb.guid, pdb.age}));
  std::set<std::string> names;
  std::set<std::string> chains; // "physics:24 > inner:18 > weight:12", by what is at each address
  for (std::size_t i = 0; i < table.functions(); ++i) {
    const symbols::FunctionRecord f = table.function(i);
    if (f.name == symbols::kNothing) continue;
    names.emplace(table.text(f.name));
    SymbolNames found;
    for (std::uint32_t at = 0; at < f.size; ++at) {
      ASSERT_TRUE(table.lookup(f.rva + at, found));
      ASSERT_FALSE(found.estimated);
      EXPECT_EQ(found.offset, at);
      std::string chain;
      for (const SymbolFrame &frame : found.frames) {
        chain +=
            (chain.empty() ? "" : " > ") + std::string(frame.function) + ":" + std::to_string(frame.line);
        EXPECT_TRUE(frame.line == 0 || frame.file.ends_with("demo.cpp")) << frame.file;
      }
      chains.insert(chain);
    }
  }
  for (const char *name : {"game::physics", "game::Scene::update", "local_helper", "entry"})
    EXPECT_TRUE(names.contains(name)) << name;
  const auto at = [&](const char *mark) { return std::to_string(marked(pdb, mark)); };
  for (const char *call : {"physics", "physics loop"})
    EXPECT_TRUE(chains.contains("game::physics:" + at(call) + " > game::inner:" + at("inner") +
                                " > game::Body::weight:" + at("weight")))
        << call;
  EXPECT_TRUE(chains.contains("game::Scene::update:" + at("update")));
  EXPECT_TRUE(chains.contains("local_helper:" + at("helper")));
}

TEST(Symbols, AgreesWithLlvmSymbolizer) {
  NEED_PDB();
  if (std::system("command -v llvm-symbolizer-14 >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no llvm-symbolizer-14 here";
  const DemoPdb &pdb = *demo_pdb();
  std::vector<std::uint8_t> storage;
  const symbols::TableView table = table_of(pdb, storage);
  std::string command =
      "cd " + pdb.folder +
      " && llvm-symbolizer-14 --obj=demo.exe --inlines --relative-address --functions=linkage";
  std::string expected;
  std::vector<std::uint32_t> addresses;
  for (std::size_t i = 0; i < table.functions(); ++i)
    for (std::uint32_t at = 0; at < table.function(i).size; ++at)
      addresses.push_back(table.function(i).rva + at);
  for (const std::uint32_t address : addresses)
    command += " " + std::to_string(address);
  ASSERT_EQ(std::system((command + " > said.txt").c_str()), 0);
  std::ifstream said(pdb.folder + "/said.txt");
  SymbolNames found;
  for (const std::uint32_t address : addresses) {
    ASSERT_TRUE(table.lookup(address, found));
    std::vector<std::pair<std::string, std::uint32_t>> theirs; // innermost first
    for (std::string name, place; std::getline(said, name) && !name.empty();) {
      std::getline(said, place);
      const std::size_t column = place.rfind(':'), line = place.rfind(':', column - 1);
      theirs.emplace_back(name.substr(0, name.find('(')),
                          std::stoul(place.substr(line + 1, column - line - 1)));
    }
    ASSERT_EQ(theirs.size(), found.frames.size()) << address;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const SymbolFrame &ours = found.frames[found.frames.size() - 1 - i];
      // Of calls put in place it applies a change of line before the code that it follows: not compared, and
      // checked against the source above.
      if (!ours.inlined) {
        EXPECT_EQ(ours.line, theirs[i].second) << "at " << address << " in " << ours.function;
      }
      // It gives names of calls put in place without their scope.
      EXPECT_TRUE(std::string(ours.function).ends_with(theirs[i].first))
          << ours.function << " and " << theirs[i].first;
    }
  }
}

TEST(Symbols, PublicsAreGuessesAndDoNotReachBeyondTheirSection) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb(false);
  std::vector<std::uint8_t> storage;
  const symbols::TableView table = table_of(pdb, storage);
  SymbolNames found;
  std::set<std::string> names;
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < table.functions(); ++i) {
    const symbols::FunctionRecord f = table.function(i);
    EXPECT_EQ(f.size, 0u);
    if (f.name == symbols::kNothing) {
      end = f.rva;
      continue;
    }
    ASSERT_TRUE(table.lookup(f.rva + 1, found));
    EXPECT_TRUE(found.estimated);
    names.emplace(found.frames.at(0).function);
  }
  EXPECT_TRUE(names.contains("game::physics"));
  EXPECT_TRUE(names.contains("game::Scene::update"));
  ASSERT_GT(end, 0u);
  EXPECT_FALSE(table.lookup(end, found));
  EXPECT_FALSE(table.lookup(1, found));
}

// As of system files whose code was put in another order after linking: publics are given in the section of
// before, and what ends a name is where the image's sections end.
TEST(Symbols, OfCodeThatWasMovedReachAsFarAsItsSectionInTheImage) {
  std::vector<std::uint8_t> records;
  const auto put = [&records](auto value) {
    for (std::size_t i = 0; i < sizeof(value); ++i)
      records.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  put(std::uint16_t{18}); // bytes of the record
  put(std::uint16_t{0x110E});
  put(std::uint32_t{0}); // flags
  put(std::uint32_t{0x10});
  put(std::uint16_t{1});
  for (const char c : {'m', 'o', 'v', 'e', 'd', '\0'})
    records.push_back(static_cast<std::uint8_t>(c));
  const symbols::AddressMap map({{0x1000, 0x100, true}}, {{0x1000, 0x5000}}, {{0x4000, 0x2000, true}});
  const symbols::TypeNames types({}, {});
  symbols::RawSymbols raw;
  symbols::CodeViewReader reader(raw, map, types, {}, false);
  reader.publics(records);
  reader.ends();
  const std::vector<std::uint8_t> bytes = symbols::make_table(std::move(raw));
  const Result<symbols::TableView> table = symbols::TableView::open(bytes);
  ASSERT_TRUE(table);
  SymbolNames names;
  EXPECT_TRUE(table->lookup(0x5010, names));
  EXPECT_TRUE(table->lookup(0x5FFF, names));
  EXPECT_FALSE(table->lookup(0x6000, names));
}

TEST(Symbols, WhatIsForAServerAloneIsTakenOutOfItsUrl) {
  using symbols::without_secrets;
  EXPECT_EQ(without_secrets("https://anna:p%40w@host:8080/sym/x?sig=1#f"), "https://host:8080/sym/x");
  EXPECT_EQ(without_secrets("HTTP://a@b@host"), "HTTP://host");
  EXPECT_EQ(without_secrets("https://host/a@b/c"), "https://host/a@b/c");
  EXPECT_EQ(without_secrets("/folder/a@b?c"), "/folder/a@b?c");
  std::vector<std::string> warnings;
  (void)symbols::parse_symbol_path("other*https://anna:secret@host/sym?token=secret", "", warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("\"other*https://host/sym\""), std::string::npos) << warnings[0];
}

TEST(Symbols, UndecoratesNames) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  using symbols::undecorated;
  EXPECT_EQ(undecorated("?physics@game@@YAHH@Z", false), "game::physics");
  EXPECT_EQ(undecorated("??1Scene@game@@QEAA@XZ", false), "game::Scene::~Scene");
  EXPECT_EQ(undecorated("??R<lambda_1>@@QEBA@H@Z", false).substr(0, 12), "<lambda_1>::");
  EXPECT_EQ(undecorated("?broken@@@", false), "?broken@@@");
  EXPECT_EQ(undecorated("_NtClose@4", true), "NtClose");
  EXPECT_EQ(undecorated("@fast@8", true), "fast");
  EXPECT_EQ(undecorated("_main", true), "main");
  EXPECT_EQ(undecorated("_main", false), "_main");
}

// A reference of one character stands for all of a type, and types hold references: 2 GB of text out of 141
// characters, and an end of the process where there is no more memory.
TEST(Symbols, ANameThatWouldTakeAllMemoryStaysDecorated) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  std::string functions = "?f@@YAXPEAH", instances = "VX@@";
  for (char reference = '0'; reference < '9'; ++reference) {
    functions += "P6AX" + std::string(40, reference) + "@Z";
    std::string parameters;
    for (int i = 0; i < 12; ++i)
      parameters += "V1@";
    instances = "V?$A@" + instances + parameters + "@@";
  }
  for (const std::string &name :
       {functions + "@Z", "?f@@YAX" + instances + "@Z", "??$f@" + instances + "@@YAXXZ"})
    EXPECT_EQ(symbols::undecorated(name, false), name);
}

TEST(Symbols, NamesOfTemplatesThatReferBackAreUndecorated) {
  if (!SymbolResolver::reads_pdb()) GTEST_SKIP() << "built without LLVM";
  using symbols::undecorated;
  const std::string text = "V?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@",
                    lists = "V?$vector@" + text + "V?$allocator@" + text + "@2@@std@@",
                    pair = "U?$pair@$$CB" + text + lists + "@std@@",
                    map =
                        "?$map@" + text + lists + "U?$less@" + text + "@2@V?$allocator@" + pair + "@2@@std@@";
  const std::string string =
      "std::basic_string<char, struct std::char_traits<char>, class std::allocator<char>>";
  EXPECT_EQ(undecorated("??0" + text.substr(1) + "QEAA@XZ", false),
            string + "::basic_string" + string.substr(17));
  const std::string found = undecorated("?find@" + map + "QEAA?AV12@AEB" + text + "0@Z", false);
  EXPECT_TRUE(found.starts_with("std::map<class " + string + ", class std::vector<")) << found;
  EXPECT_TRUE(found.ends_with(">>>>::find")) << found;
  EXPECT_EQ(undecorated("??BM@@QEBA?AV?$vector@HV?$allocator@H@std@@@std@@XZ", false),
            "M::operator class std::vector<int, class std::allocator<int>>");
  EXPECT_EQ(undecorated("?g@S@?1??f@@YAXXZ@QEAAXXZ", false), "`void __cdecl f(void)'::`2'::S::g");
}

TEST(Symbols, TheResolverKeepsATableAndNeedsThePdbNoMore) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string cache = new_folder("cache"), folder = new_folder("once");
  fs::copy_file(pdb.folder + "/demo.pdb", folder + "/demo.pdb");
  const auto first = SymbolResolver(in_folder(folder, cache)).load(identity_of(pdb));
  ASSERT_EQ(first->state(), SymbolState::found) << first->reason();
  EXPECT_EQ(first->file(), folder + "/demo.pdb");
  fs::remove(folder + "/demo.pdb");
  const auto second = SymbolResolver(in_folder(folder, cache)).load(identity_of(pdb));
  ASSERT_EQ(second->state(), SymbolState::found) << second->reason();
  EXPECT_EQ(second->file(), cache + "/sym/demo.pdb/" + symbols::identity_text({pdb.guid, pdb.age}) + ".sym")
      << "and not a file that is gone";
  SymbolNames names;
  EXPECT_TRUE(second->lookup(0x1000, names));
  const auto without = SymbolResolver(in_folder(folder)).load(identity_of(pdb));
  EXPECT_EQ(without->state(), SymbolState::not_found);
  EXPECT_NE(without->reason().find(folder), std::string::npos) << without->reason();
}

TEST(Symbols, APdbIsRememberedByANameThatHoldsInOtherFolders) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string cache = new_folder("cache"), folder = new_folder("relative");
  fs::copy_file(pdb.folder + "/demo.pdb", folder + "/demo.pdb");
  const std::string relative = fs::relative(folder).string();
  ASSERT_FALSE(relative.starts_with('/'));
  ASSERT_EQ(SymbolResolver(in_folder(relative, cache)).load(identity_of(pdb))->state(), SymbolState::found);
  SymbolOptions elsewhere;
  elsewhere.cache = cache;
  EXPECT_EQ(SymbolResolver(elsewhere).load(identity_of(pdb))->file(),
            fs::absolute(folder + "/demo.pdb").lexically_normal().string());
}

TEST(Symbols, SaysWhyThereAreNone) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string folder = new_folder("why");
  ModuleIdentity module = identity_of(pdb);
  module.pdb_name.clear();
  SymbolResolver resolver(in_folder(folder));
  EXPECT_EQ(resolver.load(module)->state(), SymbolState::no_identity);
  module = identity_of(pdb);
  module.pdb_name = "C:\\x\\..";
  EXPECT_EQ(resolver.load(module)->state(), SymbolState::not_found);

  fs::copy_file(pdb.folder + "/demo.pdb", folder + "/demo.pdb");
  module = identity_of(pdb);
  module.pdb_age = 7;
  EXPECT_EQ(resolver.load(module)->state(), SymbolState::other_identity);
  write_file(folder + "/demo.pdb", "Microsoft MSFZ Container\r\n\x1a" + std::string(100, 'x'));
  EXPECT_EQ(SymbolResolver(in_folder(folder)).load(identity_of(pdb))->state(), SymbolState::compressed_msfz);
  write_file(folder + "/demo.pdb", "<html>");
  EXPECT_EQ(SymbolResolver(in_folder(folder)).load(identity_of(pdb))->state(), SymbolState::damaged);
  // A useless file does not hide a good one in a later place.
  SymbolOptions two = in_folder(folder);
  two.folders.push_back(pdb.folder);
  EXPECT_EQ(SymbolResolver(two).load(identity_of(pdb))->state(), SymbolState::found);
}

TEST(Symbols, ADamagedTableIsMadeAnew) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string cache = new_folder("cache");
  ASSERT_EQ(SymbolResolver(in_folder(pdb.folder, cache)).load(identity_of(pdb))->state(), SymbolState::found);
  const std::string path = cache + "/sym/demo.pdb/" + symbols::identity_text({pdb.guid, pdb.age}) + ".sym",
                    good = read_file(path);
  ASSERT_FALSE(good.empty());
  for (const std::string &bad :
       {std::string(), good.substr(0, good.size() / 2), std::string(good.size(), '\xff')}) {
    write_file(path, bad);
    const auto found = SymbolResolver(in_folder(pdb.folder, cache)).load(identity_of(pdb));
    SymbolNames names;
    EXPECT_TRUE(found->lookup(0x1000, names));
    EXPECT_EQ(read_file(path), good);
  }
}

TEST(Symbols, LooksInStoresInCompressedFilesAndWherePointersLead) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string key = "demo.pdb/" + symbols::identity_text({pdb.guid, pdb.age}) + "/",
                    content = read_file(pdb.folder + "/demo.pdb");
  const auto state = [&](const std::string &path) {
    SymbolOptions options;
    options.path = path;
    const auto found = SymbolResolver(options).load(identity_of(pdb));
    return found->state();
  };
  const std::string plain = new_folder("plain"), tiers = new_folder("tiers"), packed = new_folder("packed"),
                    pointer = new_folder("pointer"), local = new_folder("local");
  write_file(plain + "/" + key + "demo.pdb", content);
  EXPECT_EQ(state("srv*" + plain), SymbolState::found);
  EXPECT_EQ(state(plain), SymbolState::found);
  write_file(tiers + "/index2.txt", "");
  write_file(tiers + "/de/" + key + "demo.pdb", content);
  EXPECT_EQ(state("SRV*" + tiers), SymbolState::found);
  EXPECT_EQ(state("symsrv*symsrv.dll*" + local + "*" + tiers), SymbolState::found);
  EXPECT_EQ(read_file(local + "/" + key + "demo.pdb"), content) << "the nearer store gets a copy";
  write_file(pointer + "/" + key + "file.ptr", "PATH:" + plain + "\\" + key + "demo.pdb\r\n");
  EXPECT_EQ(state("cache*" + new_folder("c") + ";srv*" + pointer), SymbolState::found);
  write_file(pointer + "/" + key + "file.ptr", "PATH:" + pointer + "/" + key + "file.ptr"); // itself
  EXPECT_EQ(state("srv*" + pointer), SymbolState::not_found);
  write_file(pointer + "/" + key + "file.ptr", "MSG: moved away");
  EXPECT_EQ(state("srv*" + pointer), SymbolState::not_found);
  if (!SymbolResolver::reads_cabinets() || std::system("command -v gcab >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "compressed files not tried: no gcab or no libmspack here";
  fs::create_directories(packed + "/" + key);
  ASSERT_EQ(
      std::system(
          ("cd " + pdb.folder + " && gcab -c -z '" + packed + "/" + key + "demo.pd_' demo.pdb").c_str()),
      0);
  EXPECT_EQ(state("srv*" + packed), SymbolState::found);
}

TEST(Symbols, LooksBesideTheTrace) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string folder = new_folder("beside"), content = read_file(pdb.folder + "/demo.pdb");
  write_file(folder + "/x.etl.NGENPDB/demo.pdb", content);
  SymbolOptions options;
  options.traces = {folder + "/x.etl"};
  EXPECT_EQ(SymbolResolver(options).load(identity_of(pdb))->state(), SymbolState::found);
  if (std::system("command -v python3 >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no python3 here to make a zip with";
  const std::string zip = new_folder("zip");
  ASSERT_EQ(std::system(("python3 -c \"import zipfile; z = zipfile.ZipFile('" + zip +
                         "/x.etl.zip', 'w'); z.write('" + pdb.folder + "/demo.pdb', 'symbols/DEMO.PDB')\"")
                            .c_str()),
            0);
  options.traces = {zip + "/x.etl.zip"};
  const auto found = SymbolResolver(options).load(identity_of(pdb));
  EXPECT_EQ(found->state(), SymbolState::found) << found->reason();
}

TEST(SymbolPath, ReadsTheWholeSyntax) {
  std::vector<std::string> warnings;
  const auto places = [&](std::string_view path) {
    std::vector<std::vector<std::string>> out;
    for (const auto &element : parse_symbol_path(path, "/down", warnings))
      out.push_back(element.places);
    return out;
  };
  using Places = std::vector<std::vector<std::string>>;
  EXPECT_EQ(places("/a;;/b ; c:\\d"), (Places{{"/a"}, {"/b"}, {"c:\\d"}}));
  EXPECT_EQ(places("srv*/c*https://x/y"), (Places{{"/c", "https://x/y"}}));
  EXPECT_EQ(places("SRV*https://x"), (Places{{"https://x"}}));
  EXPECT_EQ(places("srv*"), (Places{{"/down", std::string(kMicrosoftSymbolServer)}}));
  EXPECT_EQ(places("srv**https://x"), (Places{{"/down", "https://x"}}));
  EXPECT_EQ(places("symsrv*symsrv.dll*/a*/b*http://x"), (Places{{"/a", "/b", "http://x"}}));
  EXPECT_EQ(places("/z;cache*/c;srv*http://x;/p"), (Places{{"/z"}, {"/c"}, {"/c", "http://x"}, {"/p"}}));
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(places("http*bad;srv*http://x*/late"), (Places{{"http://x"}}));
  EXPECT_EQ(warnings.size(), 2u);
}

TEST(SymbolPath, NamesOfPdbsAreFileNamesOnly) {
  EXPECT_EQ(symbols::pdb_file_name("D:\\a\\b\\x.pdb"), "x.pdb");
  EXPECT_EQ(symbols::pdb_file_name("a/../x.pdb"), "x.pdb");
  for (const char *bad : {"", "..", "c:\\x\\", "a\\..", "x\n.pdb", "c:x.pdb"})
    EXPECT_FALSE(symbols::pdb_file_name(bad)) << bad;
  EXPECT_EQ(symbols::identity_text({make_guid(0xff98fe65, 0x248a, 0x4f35, 0x130a, 0xd2bcedc0be37), 1}),
            "FF98FE65248A4F35130AD2BCEDC0BE371");
}

// A symbol server of this test's own, on this machine.
class Server {
public:
  explicit Server(const std::string &folder) {
    script_ = folder + "-server.py";
    write_file(script_, R"(
import http.server, sys, os, time
os.chdir(sys.argv[1])
class H(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
    def log_request(self, *a): open(sys.argv[2], 'a').write(self.requestline + '\n')
    def do_GET(self):
        if self.path.startswith('/login/'):
            self.send_response(200); self.send_header('Content-Type', 'text/html'); self.end_headers(); self.wfile.write(b'<html>log in')
        elif self.path.startswith('/sly/'):
            self.send_response(200); self.send_header('Content-Type', 'application/octet-stream'); self.end_headers(); self.wfile.write(b'<html>log in')
        elif self.path.startswith('/moved/'):
            self.send_response(302); self.send_header('Location', self.path[6:]); self.end_headers()
        elif self.path.startswith('/cut/'):
            self.send_response(200); self.send_header('Content-Length', '100000'); self.end_headers(); self.wfile.write(b'Micro')
        elif self.path.startswith('/vast/'):
            self.send_response(200); self.send_header('Content-Length', str(1 << 45)); self.end_headers(); self.wfile.write(b'Micro')
        elif self.path.startswith('/endless/'): # fast enough to be waited for
            self.send_response(200); self.send_header('Content-Type', 'application/octet-stream'); self.end_headers()
            while True: self.wfile.write(b'x' * 4096); self.wfile.flush(); time.sleep(0.2)
        elif self.path.startswith('/broken/'): self.send_error(500)
        else: super().do_GET()
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
open(sys.argv[3], 'w').write(str(s.server_address[1]))
s.serve_forever()
)");
    log_ = folder + "-log";
    port_file_ = folder + "-port";
    fs::remove(port_file_);
    fs::remove(log_);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execlp("python3", "python3", script_.c_str(), folder.c_str(), log_.c_str(), port_file_.c_str(),
               nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 200 && port_.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      port_ = read_file(port_file_);
    }
  }
  ~Server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const std::string &file : {script_, log_, port_file_})
      fs::remove(file);
  }
  [[nodiscard]] bool runs() const { return !port_.empty(); }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + port_; }
  [[nodiscard]] std::size_t requests() const {
    const std::string text = read_file(log_);
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }

private:
  std::string script_, log_, port_file_, port_;
  pid_t pid_ = -1;
};

class SymbolServer : public ::testing::Test {
protected:
  void SetUp() override {
    NEED_PDB();
    if (!SymbolResolver::has_network()) GTEST_SKIP() << "built without libcurl, or none here";
    if (std::system("command -v python3 >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "no python3 here to serve with";
    pdb_ = *demo_pdb();
    key_ = "demo.pdb/" + symbols::identity_text({pdb_.guid, pdb_.age}) + "/";
    content_ = read_file(pdb_.folder + "/demo.pdb");
    folder_ = new_folder("server");
    server_ = std::make_unique<Server>(folder_);
    ASSERT_TRUE(server_->runs());
  }
  std::shared_ptr<const ModuleSymbols> load(const std::string &server, const std::string &cache = {},
                                            bool network = true, SymbolOptions options = {}) {
    options.server = server;
    options.network = network;
    options.cache = cache;
    return SymbolResolver(options).load(identity_of(pdb_));
  }
  DemoPdb pdb_;
  std::string key_, content_, folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(SymbolServer, GivesAPdbThatStaysInTheCache) {
  write_file(folder_ + "/" + key_ + "demo.pdb", content_);
  const std::string cache = new_folder("cache");
  EXPECT_EQ(load(server_->url(), cache, false)->state(), SymbolState::not_found);
  EXPECT_EQ(server_->requests(), 0u) << "no network unless asked";
  const auto found = load(server_->url() + "/", cache);
  ASSERT_EQ(found->state(), SymbolState::found) << found->reason();
  EXPECT_EQ(read_file(cache + "/pdb/" + key_ + "demo.pdb"), content_);
  const std::size_t asked = server_->requests();
  EXPECT_EQ(load(server_->url(), cache)->state(), SymbolState::found);
  EXPECT_EQ(server_->requests(), asked) << "not asked again";
  EXPECT_EQ(load(server_->url() + "/moved")->state(), SymbolState::found) << "follows redirections";
}

// Where symbols came from stands in exported profiles, in JSON and in the cache.
TEST_F(SymbolServer, PasswordsAndQueriesAreNeitherShownNorKept) {
  const std::string cache = new_folder("cache"), login = "http://anna:secret@" + server_->url().substr(7);
  const auto missing = load(login, cache);
  ASSERT_EQ(missing->looked().size(), 2u);
  EXPECT_EQ(missing->looked()[1], server_->url());
  write_file(folder_ + "/" + key_ + "demo.pdb", content_);
  const auto denied = load(login + "/broken?token=secret", cache);
  EXPECT_NE(denied->reason().find(server_->url() + "/broken"), std::string::npos) << denied->reason();
  EXPECT_EQ(denied->reason().find("secret"), std::string::npos) << denied->reason();
  fs::remove_all(cache);
  const auto found = load(login, cache);
  ASSERT_EQ(found->state(), SymbolState::found) << found->reason();
  EXPECT_EQ(found->file(), server_->url() + "/" + key_ + "demo.pdb");
  for (const auto &entry : fs::recursive_directory_iterator(cache))
    if (entry.is_regular_file()) {
      EXPECT_EQ(read_file(entry.path().string()).find("secret"), std::string::npos) << entry.path();
    }
}

TEST_F(SymbolServer, RemembersWhatAServerDoesNotHave) {
  const std::string cache = new_folder("cache");
  EXPECT_EQ(load(server_->url(), cache)->state(), SymbolState::not_found);
  const std::size_t asked = server_->requests();
  EXPECT_EQ(asked, 3u) << "the file, compressed, the pointer";
  EXPECT_EQ(load(server_->url(), cache)->state(), SymbolState::not_found);
  EXPECT_EQ(server_->requests(), asked);
}

TEST_F(SymbolServer, NothingButTheRightPdbIsKept) {
  const std::string cache = new_folder("cache");
  std::string other = content_;
  const std::string guid = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10";
  const std::string own(reinterpret_cast<const char *>(&pdb_.guid), 16);
  for (std::size_t at; (at = other.find(own)) != std::string::npos;)
    other.replace(at, 16, guid);
  write_file(folder_ + "/" + key_ + "demo.pdb", other);
  EXPECT_EQ(load(server_->url(), cache)->state(), SymbolState::other_identity);
  for (const char *bad : {"/login", "/sly", "/cut", "/broken"}) {
    const auto found = load(server_->url() + bad, cache);
    EXPECT_EQ(found->state(), SymbolState::not_found) << bad;
    EXPECT_NE(found->reason().find(bad), std::string::npos) << found->reason();
  }
  EXPECT_FALSE(fs::exists(cache + "/pdb")) << "nothing is kept";
}

TEST_F(SymbolServer, GivesCompressedFiles) {
  if (!SymbolResolver::reads_cabinets() || std::system("command -v gcab >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no gcab or no libmspack here";
  fs::create_directories(folder_ + "/" + key_);
  ASSERT_EQ(
      std::system(
          ("cd " + pdb_.folder + " && gcab -c -z '" + folder_ + "/" + key_ + "demo.pd_' demo.pdb").c_str()),
      0);
  const std::string cache = new_folder("cache");
  EXPECT_EQ(load(server_->url(), cache)->state(), SymbolState::found);
  EXPECT_EQ(read_file(cache + "/pdb/" + key_ + "demo.pdb"), content_);
}

TEST_F(SymbolServer, AServerThatDoesNotAnswerIsAskedOnce) {
  const std::string url = server_->url();
  server_.reset();
  SymbolOptions options;
  options.server = url;
  options.network = true;
  SymbolResolver resolver(options);
  EXPECT_EQ(resolver.load(identity_of(pdb_))->state(), SymbolState::not_found);
  EXPECT_EQ(resolver.warnings().size(), 1u);
  ModuleIdentity second = identity_of(pdb_);
  second.pdb_age = 9;
  EXPECT_NE(resolver.load(second)->reason().find("did not answer"), std::string::npos);
}

TEST_F(SymbolServer, WhatIsLargerThanTheLimitIsNotTaken) {
  for (const char *large : {"/vast", "/endless"}) {
    SymbolOptions options;
    if (large == std::string("/endless")) options.max_pdb_bytes = 10'000;
    const auto found = load(server_->url() + large, {}, true, options);
    EXPECT_EQ(found->state(), SymbolState::not_found);
    EXPECT_NE(found->reason().find("larger than the limit"), std::string::npos) << found->reason();
  }
}

// Without an end to the download this test has none, either.
TEST_F(SymbolServer, ADownloadEndsWhenItIsToStop) {
  std::stop_source stop;
  SymbolOptions options;
  options.stop = stop.get_token();
  const std::jthread soon([&] {
    while (server_->requests() == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    stop.request_stop();
  });
  const auto ended = load(server_->url() + "/endless", {}, true, options);
  EXPECT_EQ(ended->state(), SymbolState::not_found);
  EXPECT_NE(ended->reason().find("(stopped on request)"), std::string::npos) << ended->reason();
  EXPECT_EQ(server_->requests(), 1u) << "nothing else is asked for then";
}

// Cuts and flipped bytes: whatever comes of it, no crash.
TEST(Symbols, SurvivesDamagedFiles) {
  NEED_PDB();
  const DemoPdb &pdb = *demo_pdb();
  const std::string good = read_file(pdb.folder + "/demo.pdb");
  std::uint32_t random = 12345;
  SymbolNames names;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    for (int i = 0; i < 1 + round % 8; ++i) {
      random = random * 1664525 + 1013904223;
      // Most of the damage where the structure is, in the first and the last blocks.
      bad[random % bad.size()] = static_cast<char>(random >> 24);
      bad[(random >> 8) % 128] ^= round % 3 == 0 ? static_cast<char>(1 << (random >> 29)) : 0;
    }
    if (round % 5 == 0) bad.resize(random % bad.size());
    Result<symbols::RawSymbols> raw = symbols::read_pdb(bytes_of(bad), "bad.pdb");
    if (!raw) continue;
    const std::vector<std::uint8_t> table = symbols::make_table(std::move(*raw));
    const Result<symbols::TableView> view = symbols::TableView::open(table);
    ASSERT_TRUE(view);
    for (std::uint32_t rva = 0x1000; rva < 0x1200; rva += 7)
      (void)view->lookup(rva, names);
  }
}

} // namespace
} // namespace etwrelog
