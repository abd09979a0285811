# The libraries as others find them: shared, with headers, pkg-config and a CMake package. Nothing that is installed
# names a folder of the build, so the tree can be moved.
include(CMakePackageConfigHelpers)
set(_exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinew)

# sinew_package(TARGET NAME PUBLIC_NAME RUNPATH): libNAME.so, which CMake finds as sinew::PUBLIC_NAME.
function(sinew_package target name public_name runpath)
  target_link_options(${target} PRIVATE LINKER:--version-script=${_exports})
  if(NOT SINEW_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION 0
    LINK_DEPENDS ${_exports} INSTALL_RPATH "${runpath}" EXPORT_NAME ${public_name})
  install(TARGETS ${target} EXPORT sinew LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# What abidiff reads (abi.py) comes from the sources of the public functions alone.
foreach(target sinew_api sinew_client_shared)
  target_compile_options(${target} PRIVATE -g -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
endforeach()

# libsinew.so opens the libraries of backends by name.
add_library(sinew_shared SHARED $<TARGET_OBJECTS:sinew_api>)
target_link_libraries(sinew_shared PRIVATE sinew_flags sinew_planner sinew_model_cache)
sinew_package(sinew_shared sinew sinew "$ORIGIN/sinew")
sinew_package(sinew_client_shared sinew_client client "")

# libsinew.a is of the same objects; what these need in turn is the user's to link.
add_library(sinew_static STATIC $<TARGET_OBJECTS:sinew_api> $<TARGET_OBJECTS:sinew_planner>
  $<TARGET_OBJECTS:sinew_model_cache> $<TARGET_OBJECTS:sinew_physics>)
target_link_libraries(sinew_static INTERFACE yaml xxhash Threads::Threads ${CMAKE_DL_LIBS} m)
target_include_directories(sinew_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(sinew_static PROPERTIES OUTPUT_NAME sinew EXPORT_NAME static LINKER_LANGUAGE C)
install(TARGETS sinew_static EXPORT sinew ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(FILES include/sinew.h include/sinew_client.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# pkg-config.
file(RELATIVE_PATH SINEW_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name sinew sinew-client)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# CMake.
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sinewConfig.cmake.in sinewConfig.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(sinewConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sinewConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sinewConfigVersion.cmake
  DESTINATION ${_package_dir})
install(EXPORT sinew NAMESPACE sinew:: FILE sinewTargets.cmake DESTINATION ${_package_dir})

# The reference page, made on demand: cmake --build build/release --target reference. It is installed where it was made.
add_custom_target(reference COMMAND ${CMAKE_CURRENT_LIST_DIR}/reference.sh ${CMAKE_BINARY_DIR}/reference ${PROJECT_VERSION} VERBATIM)
install(DIRECTORY ${CMAKE_BINARY_DIR}/reference/html DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
