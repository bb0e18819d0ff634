# The CUDA compiler, its flags, and the report of what ptxas used.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(nvcc nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(NOT nvcc)
    message(FATAL_ERROR "tcgemm needs nvcc of CUDA 13: put it on PATH or set CUDA_HOME or CUDACXX; "
                        "TCGEMM_BUILD_CUDA=0 builds the CPU part alone.")
  endif()
  set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "tcgemm needs nvcc of CUDA 13, and ${CMAKE_CUDA_COMPILER} is ${CMAKE_CUDA_COMPILER_VERSION}: "
                      "set CUDACXX to another; TCGEMM_BUILD_CUDA=0 builds the CPU part alone.")
endif()
find_package(CUDAToolkit REQUIRED)

string(APPEND CMAKE_CUDA_FLAGS " -std=c++20 -lineinfo -Xptxas=-v,--warn-on-spills")

# ptxas's figures go to build/resources/ instead of the screen; ccache replays them with the object.
set(ptxas_report ${CMAKE_CURRENT_SOURCE_DIR}/cmake/ptxas_report.py)
set(resources ${CMAKE_CURRENT_BINARY_DIR}/resources)
set(CMAKE_CUDA_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${ptxas_report} compile ${resources})
if(CCACHE)
  list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# resources.json from the CUDA sources of the targets.
function(tcgemm_resource_report)
  set(names "")
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.cu$")
    list(APPEND names ${sources})
  endforeach()
  set(json ${CMAKE_CURRENT_BINARY_DIR}/resources.json)
  add_custom_command(OUTPUT ${json}
    COMMAND ${Python3_EXECUTABLE} ${ptxas_report} collect ${resources} ${json} ${names}
    DEPENDS tcgemm_cuda ${ptxas_report} VERBATIM)
  add_custom_target(tcgemm_resources ALL DEPENDS ${json})
  install(FILES ${json} DESTINATION lib COMPONENT python)
endfunction()
