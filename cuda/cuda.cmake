# Whether libsinew_cuda.so and libsinew_cuda_double.so are built (SINEW_HAS_CUDA), and how. nvcc is called by commands of our
# own: nothing else of the build needs the CUDA Toolkit.
set(SINEW_CUDA AUTO CACHE STRING "Libraries for NVIDIA devices: AUTO (where nvcc is found and a device answers), ON, OFF")
set_property(CACHE SINEW_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SINEW_CUDA_ARCHITECTURES "" CACHE STRING "Compute capabilities to build for, as in 75;90; empty: this machine's, or 75;80;90")
set(SINEW_CUDA_REGISTERS 128 CACHE STRING "Registers that a thread of a kernel has at most (255: as many as there can be)")
set(SINEW_CUDA_FLAGS "" CACHE STRING "More flags for nvcc")
option(SINEW_CUDA_KEEP "Keep PTX and what else nvcc makes on its way, in cuda/keep_NAME of the build folder" OFF)

# The compute capabilities of the devices here that can be used, into `out`; empty: none answers.
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
    foreach(one IN LISTS found)
      if(one LESS 75)
        list(REMOVE_ITEM found ${one})
      endif()
    endforeach()
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

set(SINEW_HAS_CUDA OFF)
if(SINEW_CUDA STREQUAL "AUTO" OR SINEW_CUDA)
  sinew_devices_here(SINEW_DEVICES)
endif()
if(SINEW_CUDA STREQUAL "AUTO" OR SINEW_CUDA)
  set(_missing)
  if(SINEW_SINGLE OR SINEW_LANES)
    set(_missing "a build with SINEW_SINGLE or SINEW_LANES has no libraries of backends")
  elseif(SINEW_CUDA STREQUAL "AUTO" AND (SINEW_SANITIZE OR CMAKE_CROSSCOMPILING))
    set(_missing "not with sanitizers or for another machine unless SINEW_CUDA is ON")
  elseif(SINEW_CUDA STREQUAL "AUTO" AND NOT SINEW_DEVICES)
    set(_missing "no device answers here; SINEW_CUDA=ON builds them all the same")
  else()
    find_package(CUDAToolkit 12.1 QUIET)
    if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_NVCC_EXECUTABLE)
      set(_missing "nvcc 12.1 or later was not found")
    elseif(NOT TARGET CUDA::cudart_static OR NOT TARGET CUDA::cublas)
      set(_missing "${CUDAToolkit_LIBRARY_DIR} lacks cudart_static or cublas")
    endif()
  endif()
  if(NOT _missing)
    set(SINEW_HAS_CUDA ON)
  elseif(SINEW_CUDA STREQUAL "AUTO")
    message(STATUS "No libraries for NVIDIA devices: ${_missing}")
  else()
    message(FATAL_ERROR "SINEW_CUDA=${SINEW_CUDA}: ${_missing}")
  endif()
endif()
if(NOT SINEW_HAS_CUDA)
  return()
endif()

set(_architectures ${SINEW_CUDA_ARCHITECTURES})
if(NOT _architectures)
  set(_architectures ${SINEW_DEVICES})
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

# sinew_kernels_object(NAME OBJECT UNIT REGISTERS FLAGS...): device code of the library NAME, kernels/UNIT.cu with these
# flags. It is relocatable code, linked by itself: functions are then compiled once and called, where a whole program has
# them in each kernel that reaches them, at ten times the time. They do not know how many threads a block has: the limit
# of registers is for all. What kernels take (registers, stack, shared memory) is in OBJECT_NAME.log. The objects are added
# to SINEW_KERNELS_OBJECTS.
function(sinew_kernels_object name object unit registers)
  separate_arguments(more NATIVE_COMMAND "${SINEW_CUDA_FLAGS}")
  set(base ${CMAKE_CURRENT_BINARY_DIR}/${object}_${name})
  if(SINEW_CUDA_KEEP)
    set(keep ${CMAKE_CURRENT_BINARY_DIR}/keep_${name}/${object})
    file(MAKE_DIRECTORY ${keep})
    list(APPEND more --keep --keep-dir ${keep})
  endif()
  add_custom_command(OUTPUT ${base}.o
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -dc -maxrregcount=${registers} -o ${base}.o -MD -MF ${base}.o.d ${SINEW_NVCC_CODE}
      --threads 0 -std=c++17 -lineinfo -Xcompiler -fPIC,-fvisibility=hidden,-fno-threadsafe-statics
      --Werror cross-execution-space-call,all-warnings -diag-suppress 177 -I${CMAKE_SOURCE_DIR} -I${CMAKE_CURRENT_BINARY_DIR}
      -I${RANDOM123_INCLUDE} ${ARGN} ${more} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${unit}.cu
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${unit}.cu DEPFILE ${base}.o.d VERBATIM
    COMMENT "Device code of libsinew_${name}.so: ${object}")
  add_custom_command(OUTPUT ${base}_linked.o
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/nvcc.sh ${base}.log
      ${CUDAToolkit_NVCC_EXECUTABLE} -dlink -o ${base}_linked.o ${SINEW_NVCC_CODE} -Xnvlink -v -Xcompiler -fPIC ${base}.o
    DEPENDS ${base}.o VERBATIM)
  set(SINEW_KERNELS_OBJECTS ${SINEW_KERNELS_OBJECTS} ${base}.o ${base}_linked.o PARENT_SCOPE)
endfunction()

# sinew_cuda_plugin(NAME PHYSICS FLAGS...): the library of a number type.
function(sinew_cuda_plugin name physics)
  set(SINEW_KERNELS_OBJECTS)
  sinew_kernels_object(${name} kernels kernels ${SINEW_CUDA_REGISTERS} -DSN_DEVICE_LANES=32 ${ARGN})
  sinew_kernels_object(${name} kernels_part kernels ${SINEW_CUDA_REGISTERS} -DSN_DEVICE_LANES=8 ${ARGN})
  sinew_kernels_object(${name} kernels_thread kernels_thread 255 ${ARGN})
  sinew_plugin(${name} ${physics} device/cublas.c device/device_cuda.c ${SINEW_KERNELS_OBJECTS})
  # stdc++: Random123's header brings the iostreams into any unit of C++.
  target_link_libraries(sinew_${name} PRIVATE CUDA::cudart_static stdc++ ${CMAKE_DL_LIBS})
  # cuBLAS, which it opens when it needs it, is found where it was when the library was built, also after installation.
  set_target_properties(sinew_${name} PROPERTIES BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR} INSTALL_RPATH ${CUDAToolkit_LIBRARY_DIR})
  install(TARGETS sinew_${name} LIBRARY DESTINATION ${SINEW_PLUGIN_DIR} OPTIONAL)
endfunction()
