# install(): headers, libraries, the CMake package and the pkg-config file. Components follow distribution packages:
# Runtime (libfoldkv.so.N), Development (headers, namelink, CMake and pkg-config files), Static (libfoldkv.a).
if(NOT FOLDKV_INSTALL)
  return()
endif()

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/foldkv")

install(DIRECTORY include/foldkv DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT Development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# One export for each flavour: the static library's names its dependencies and is read only when they are there.
install(TARGETS foldkv_headers EXPORT foldkv-headers)
install(EXPORT foldkv-headers NAMESPACE foldkv:: DESTINATION "${package_dir}" COMPONENT Development
        FILE foldkv-headers-targets.cmake)
if(FOLDKV_SHARED)
  install(TARGETS foldkv EXPORT foldkv-shared
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT Runtime NAMELINK_COMPONENT Development)
  install(EXPORT foldkv-shared NAMESPACE foldkv:: DESTINATION "${package_dir}" COMPONENT Development
          FILE foldkv-shared-targets.cmake)
endif()
if(FOLDKV_STATIC)
  install(TARGETS foldkv_static EXPORT foldkv-static
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT Static)
  install(EXPORT foldkv-static NAMESPACE foldkv:: DESTINATION "${package_dir}" COMPONENT Static
          FILE foldkv-static-targets.cmake)
  if(FOLDKV_CPU_ONEDNN)
    install(FILES "${CMAKE_CURRENT_LIST_DIR}/FindOneDNN.cmake" DESTINATION "${package_dir}" COMPONENT Static)
  endif()
  if(FOLDKV_ZSTD)
    install(FILES "${CMAKE_CURRENT_LIST_DIR}/FindZstd.cmake" DESTINATION "${package_dir}" COMPONENT Static)
  endif()
endif()

configure_file("${CMAKE_CURRENT_LIST_DIR}/foldkv-config.cmake.in" "${PROJECT_BINARY_DIR}/foldkv-config.cmake" @ONLY)
# Before 1.0 a minor release may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/foldkv-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/foldkv-config.cmake" "${PROJECT_BINARY_DIR}/foldkv-config-version.cmake"
        DESTINATION "${package_dir}" COMPONENT Development)

# pkg-config: paths relative to the file itself, so that the prefix may be moved.
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH FOLDKV_PC_PREFIX "${CMAKE_INSTALL_PREFIX}/${pkgconfig_dir}" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" FOLDKV_PC_PREFIX "${FOLDKV_PC_PREFIX}")
list(TRANSFORM FOLDKV_ABSL REPLACE "^absl::" "absl_" OUTPUT_VARIABLE FOLDKV_PC_REQUIRES_PRIVATE)
list(JOIN FOLDKV_PC_REQUIRES_PRIVATE " " FOLDKV_PC_REQUIRES_PRIVATE)
set(FOLDKV_PC_LIBS_PRIVATE "-lstdc++ -lm -pthread")
if(FOLDKV_CPU_ONEDNN)
  string(PREPEND FOLDKV_PC_LIBS_PRIVATE "-ldnnl ")
endif()
if(FOLDKV_ZSTD)
  string(PREPEND FOLDKV_PC_LIBS_PRIVATE "-lzstd ")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/foldkv.pc.in" "${PROJECT_BINARY_DIR}/foldkv.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/foldkv.pc" DESTINATION "${pkgconfig_dir}" COMPONENT Development)

if(TARGET foldkv-lab)
  file(RELATIVE_PATH bin_to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(foldkv-lab PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS foldkv-lab RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT Tools)
endif()
