# How the targets of this project are made: warnings, visibility, floating-point rules, rooms.

# foldkv::headers: the public surface.
add_library(foldkv_headers INTERFACE)
add_library(foldkv::headers ALIAS foldkv_headers)
target_include_directories(foldkv_headers INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(foldkv_headers PROPERTIES EXPORT_NAME headers)

# foldkv_warnings: for every target that we write. Third-party headers come in as system headers and stay silent.
# Fields left out of an initializer are zero, and zero means default: that is the interface, not an oversight.
add_library(foldkv_warnings INTERFACE)
target_compile_options(foldkv_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wcast-align -Wcast-qual -Wformat=2 -Wundef
  -Wunused -Wvla -Wwrite-strings -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:CXX>:-Wextra-semi>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wsuggest-override>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Winconsistent-missing-destructor-override>
  $<$<BOOL:${FOLDKV_WERROR}>:-Werror>)

# foldkv_internal: what every object of the library is compiled with. Contraction of a * b + c changes results with
# the optimiser's mood, so it is on only in the kernels, whose order of operations is written out.
add_library(foldkv_internal INTERFACE)
target_include_directories(foldkv_internal INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(foldkv_internal INTERFACE -ffp-contract=off)
# FOLDKV_WITH_... are 0 or 1, for #if: a misspelt one is an error (-Wundef).
target_compile_definitions(foldkv_internal INTERFACE
  FOLDKV_WITH_CPU=$<BOOL:${FOLDKV_CPU}> FOLDKV_WITH_ONEDNN=$<BOOL:${FOLDKV_CPU_ONEDNN}>
  $<$<BOOL:${FOLDKV_CPU}>:FOLDKV_CPU>)
target_link_libraries(foldkv_internal INTERFACE foldkv_headers foldkv_warnings ${FOLDKV_ABSL} Threads::Threads)

# foldkv_precompile(<target> <owner> <header>...): with FOLDKV_PRECOMPILE the headers are compiled once, for the target
# <owner>, and used by all targets that name it and are compiled with the same options; TESTS does so below tests/
# alone. Sources must not rely on it: the option is off by default, and TESTS in the preset release, so that
# packaging/test notices an include that is missing in the library or the lab.
set(FOLDKV_TESTS_SOURCE_DIR "${PROJECT_SOURCE_DIR}/tests")
function(foldkv_precompile target owner)
  if(NOT FOLDKV_PRECOMPILE)
    return()
  endif()
  if(FOLDKV_PRECOMPILE STREQUAL "TESTS")
    cmake_path(IS_PREFIX FOLDKV_TESTS_SOURCE_DIR "${CMAKE_CURRENT_SOURCE_DIR}" below_tests)
    if(NOT below_tests)
      return()
    endif()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# foldkv_add_room(<folder> [LINK <library>...] [EXCLUDE <regex>...]): the .cpp files of one folder and those below
# it, compiled once as position-independent objects for both libraries. LINK names what only this room may see. A room is known as
# foldkv_room_<folder>, with / as _; its objects are in the global property FOLDKV_ROOM_OBJECTS.
function(foldkv_add_room folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;EXCLUDE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
  foreach(pattern IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name "foldkv_room_${folder}")
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE foldkv_internal ${arg_LINK})
  target_compile_definitions(${name} PRIVATE FOLDKV_BUILDING)
  set_target_properties(${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  # A precompiled header serves only what is compiled with the same options.
  set(owner foldkv_room_runtime_base)
  if(folder STREQUAL "abi")
    set(owner ${name})
  endif()
  foldkv_precompile(${name} ${owner}
    <algorithm> <cstdint> <memory> <span> <string> <vector> <absl/status/statusor.h> <absl/strings/str_cat.h>)
  set_property(GLOBAL APPEND PROPERTY FOLDKV_ROOM_OBJECTS "$<TARGET_OBJECTS:${name}>")
endfunction()

# foldkv_set_kernel_flags(<target>): kernels are compiled once per instruction set and chosen at run time. The end of a
# file's name says which:
#   _portable.cpp   what every machine of the target runs
#   _avx2.cpp       x86-64 with AVX2, FMA and F16C
#   _avx512.cpp     x86-64 with AVX-512 F, BW, DQ and VL
#   _avx512vnni.cpp x86-64 with AVX-512 VNNI, VBMI and BF16 besides (2022 and later)
#   _avx512amx.cpp  x86-64 with AMX tiles and products of bytes besides
# On other processors the x86 kernels are left out and FOLDKV_WITH_X86_KERNELS is 0. Call it in the folder of the
# target, since flags of a source file hold only there.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(FOLDKV_X86_KERNELS ON)
else()
  set(FOLDKV_X86_KERNELS OFF)
endif()

function(foldkv_set_kernel_flags target)
  set(portable -ffp-contract=fast $<$<NOT:$<CONFIG:Debug>>:-O3>)
  set(avx2 ${portable} -mavx2 -mfma -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  set(avx512vnni ${avx512} -mavx512vnni -mavx512vbmi -mavx512bf16)
  set(avx512amx ${avx512vnni} -mamx-tile -mamx-int8)
  target_compile_definitions(${target} PRIVATE FOLDKV_WITH_X86_KERNELS=$<BOOL:${FOLDKV_X86_KERNELS}>)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "_(portable|avx2|avx512|avx512vnni|avx512amx)\\.cpp$")
      continue()
    endif()
    set(kind ${CMAKE_MATCH_1})
    if(FOLDKV_X86_KERNELS OR kind STREQUAL "portable")
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${${kind}}" SKIP_PRECOMPILE_HEADERS ON)
    else()
      set_source_files_properties("${source}" PROPERTIES HEADER_FILE_ONLY ON)
    endif()
  endforeach()
endfunction()
