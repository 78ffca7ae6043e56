# find_package(tprof): the target tprof::tprof has tprof.h, with which there is nothing to link.
if(NOT TARGET tprof::tprof)
  add_library(tprof::tprof INTERFACE IMPORTED)
  get_filename_component(tprof_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  set_target_properties(tprof::tprof PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${tprof_prefix}/include)
endif()
