# Debian packages by CPack: etwrelog (the tool), libetwrelog1 (the shared libraries, called after their ABI) and
# libetwrelog-dev (headers, static library, CMake and pkg-config files, what .NET looks for).
# `tools/package` makes, checks and tries them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME etwrelog)
set(CPACK_PACKAGE_VENDOR "etwrelog maintainers")
set(CPACK_PACKAGE_CONTACT "etwrelog maintainers <etwrelog@example.org>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "reads, filters, relogs and archives ETW traces")
set(CPACK_PACKAGE_FILE_NAME etwrelog-${PROJECT_VERSION})
set(CPACK_PACKAGE_HOMEPAGE_URL "https://github.com/etwrelog/etwrelog")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_COMPONENTS_ALL tool library development)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME etwrelog)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_TOOL_DESCRIPTION "The tool
 Works on Event Tracing for Windows (.etl) files on any platform: cuts one
 process out of a trace, recompresses it, packs it into a smaller seekable
 archive that gives back every byte, and counts what is in it.")
# Loaded when a symbol server is asked, so that dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS libcurl4)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS libcurl4)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libetwrelog${ETWRELOG_ABI})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Shared libraries
 The C interface of etwrelog, for programs and languages that call C, and the
 functions by which programs for Windows read trace files.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libetwrelog-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libetwrelog${ETWRELOG_ABI} (= ${PROJECT_VERSION}), libtbb-dev, libfmt-dev, libarchive-dev, libzstd-dev, libre2-dev, libpugixml-dev, libxxhash-dev, libsqlite3-dev, zlib1g-dev, liblzma-dev, libbz2-dev, pkg-config")
# What the static library was built with, each only if it was there.
if("${ETWRELOG_SYMBOL_LIBS}" MATCHES "/llvm-([0-9]+)/")
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", llvm-${CMAKE_MATCH_1}-dev")
endif()
foreach(pair libtinfo:libncurses-dev libmspack:libmspack-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 library)
  list(GET pair 1 package)
  if("${ETWRELOG_SYMBOL_LIBS}" MATCHES ${library})
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", ${package}")
  endif()
endforeach()
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers and libraries
 Headers, libraries, CMake package and pkg-config file of etwrelog: open
 traces, walk their events in order of time or in parallel, filter, relog
 and archive them.")

# What Debian's policy asks of every package: its licence and its history.
find_program(GZIP_PROGRAM gzip)
if(GZIP_PROGRAM)
  string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/debian-copyright.in ${PROJECT_BINARY_DIR}/debian/copyright @ONLY)
  foreach(pair tool:etwrelog library:libetwrelog${ETWRELOG_ABI} development:libetwrelog-dev)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 component)
    list(GET pair 1 package)
    set(folder ${PROJECT_BINARY_DIR}/debian/${package})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/debian-changelog.in ${folder}/changelog @ONLY)
    execute_process(COMMAND ${GZIP_PROGRAM} -9nkf ${folder}/changelog)
    install(FILES ${PROJECT_BINARY_DIR}/debian/copyright ${folder}/changelog.gz
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endforeach()
endif()
include(CPack)
