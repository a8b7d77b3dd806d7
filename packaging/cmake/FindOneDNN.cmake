# Finds oneDNN and makes DNNL::dnnl of its header and library.
#
# Some distributions' own CMake package asks for OpenCL's headers as soon as the library can use a GPU, though no header
# that the cpu backend includes needs them; so header and library are looked up directly.
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp DOC "Folder of oneapi/dnnl/dnnl.hpp")
find_library(OneDNN_LIBRARY NAMES dnnl DOC "The oneDNN library")
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

if(OneDNN_INCLUDE_DIR AND EXISTS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" onednn_lines
       REGEX "^#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+$")
  foreach(line IN LISTS onednn_lines)
    string(REGEX MATCH "DNNL_VERSION_([A-Z]+) +([0-9]+)$" _ "${line}")
    set(onednn_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endforeach()
  set(OneDNN_VERSION "${onednn_MAJOR}.${onednn_MINOR}.${onednn_PATCH}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR VERSION_VAR OneDNN_VERSION)

if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
