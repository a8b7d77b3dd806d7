# Finds Zstandard and makes zstd::libzstd of its header and library.
#
# Debian's package brings no CMake file.

find_path(Zstd_INCLUDE_DIR zstd.h DOC "Folder of zstd.h")
find_library(Zstd_LIBRARY NAMES zstd DOC "The Zstandard library")
mark_as_advanced(Zstd_INCLUDE_DIR Zstd_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Zstd REQUIRED_VARS Zstd_LIBRARY Zstd_INCLUDE_DIR)

if(Zstd_FOUND AND NOT TARGET zstd::libzstd)
  add_library(zstd::libzstd UNKNOWN IMPORTED)
  set_target_properties(zstd::libzstd PROPERTIES
    IMPORTED_LOCATION "${Zstd_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Zstd_INCLUDE_DIR}")
endif()
