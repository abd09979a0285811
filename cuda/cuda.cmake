# Whether libsinew_cuda.so and libsinew_cuda_double.so are built (SINEW_CUDA), and how. nvcc is called by commands of our
# own: nothing else of the build needs the CUDA Toolkit.
set(SN_CUDA AUTO CACHE STRING "Libraries for NVIDIA devices: AUTO (where nvcc is found), ON, OFF")
set_property(CACHE SN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SN_CUDA_ARCHITECTURES "" CACHE STRING "Compute capabilities to build for, as in 75;90; empty: this machine's, or 75;80;90")
set(SN_CUDA_FLAGS "" CACHE STRING "More flags for nvcc")
option(SN_CUDA_KEEP "Keep PTX and what else nvcc makes on its way, in cuda/keep_NAME of the build folder" OFF)

# The compute capabilities of the devices here, into `out`; empty: no device answers.
function(sinew_devices_here out)
  find_program(NVIDIA_SMI nvidia-smi)
  mark_as_advanced(NVIDIA_SMI)
  set(found)
  if(NVIDIA_SMI)
    execute_process(COMMAND ${NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE text ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${text}")
    list(TRANSFORM found REPLACE "\\." "")
    list(REMOVE_DUPLICATES found)
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

set(SINEW_CUDA OFF)
if(SN_CUDA STREQUAL "AUTO" OR SN_CUDA)
  set(_missing)
  if(SINEW_SINGLE OR SINEW_LANES)
    set(_missing "a build with SINEW_SINGLE or SINEW_LANES has no libraries of backends")
  elseif(SN_CUDA STREQUAL "AUTO" AND (SINEW_SANITIZE OR CMAKE_CROSSCOMPILING))
    set(_missing "not with sanitizers or for another machine unless SN_CUDA is ON")
  else()
    find_package(CUDAToolkit 12.1 QUIET)
    if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
      set(_missing "nvcc 12.1 or later was not found")
    elseif(NOT TARGET CUDA::cudart_static OR NOT TARGET CUDA::cublas)
      set(_missing "${CUDAToolkit_LIBRARY_DIR} lacks cudart_static or cublas")
    endif()
  endif()
  if(NOT _missing)
    set(SINEW_CUDA ON)
  elseif(SN_CUDA STREQUAL "AUTO")
    message(STATUS "No libraries for NVIDIA devices: ${_missing}")
  else()
    message(FATAL_ERROR "SN_CUDA=${SN_CUDA}: ${_missing}")
  endif()
endif()
if(NOT SINEW_CUDA)
  return()
endif()

set(_architectures ${SN_CUDA_ARCHITECTURES})
if(NOT _architectures)
  sinew_devices_here(_architectures)
endif()
if(NOT _architectures)
  set(_architectures 75 80 90)
endif()
message(STATUS "Libraries for NVIDIA devices: CUDA ${CUDAToolkit_VERSION}, compute capabilities ${_architectures}")
# Machine code for each, which runs on later ones of the same major number, and PTX of the newest for all that follow.
list(SORT _architectures COMPARE NATURAL)
list(GET _architectures -1 _newest)
set(SINEW_NVCC_CODE -gencode arch=compute_${_newest},code=compute_${_newest})
foreach(a IN LISTS _architectures)
  list(APPEND SINEW_NVCC_CODE -gencode arch=compute_${a},code=sm_${a})
endforeach()

# sinew_cuda_plugin(NAME PHYSICS [-DSN_SINGLE]): the library of a number type. Its kernels are one unit; what they take
# (registers, stack, shared memory) is in kernels_NAME.log.
function(sinew_cuda_plugin name physics)
  separate_arguments(more NATIVE_COMMAND "${SN_CUDA_FLAGS}")
  set(object ${CMAKE_CURRENT_BINARY_DIR}/kernels_${name}.o)
  if(SN_CUDA_KEEP)
    set(keep ${CMAKE_CURRENT_BINARY_DIR}/keep_${name})
    file(MAKE_DIRECTORY ${keep})
    list(APPEND more --keep --keep-dir ${keep})
  endif()
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/nvcc.sh ${CMAKE_CURRENT_BINARY_DIR}/kernels_${name}.log
      ${CUDAToolkit_NVCC_EXECUTABLE} -c -o ${object} -MD -MF ${object}.d ${SINEW_NVCC_CODE} --threads 0 -std=c++17
      -lineinfo -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden --Werror cross-execution-space-call,all-warnings
      -diag-suppress 177 -I${CMAKE_SOURCE_DIR} -I${RANDOM123_INCLUDE} ${ARGN} ${more}
      ${CMAKE_CURRENT_SOURCE_DIR}/kernels.cu
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels.cu DEPFILE ${object}.d VERBATIM
    COMMENT "Device code of libsinew_${name}.so: minutes")
  sinew_plugin(${name} ${physics} device_cuda.c ${object})
  target_link_libraries(sinew_${name} PRIVATE CUDA::cudart_static CUDA::cublas)
  # Its own libraries are found where they were when it was built, also after installation.
  set_target_properties(sinew_${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS sinew_${name} LIBRARY DESTINATION ${SINEW_PLUGIN_DIR})
endfunction()
