# Where torch's headers and libraries lie. find_package(Torch) is avoided: it wants a whole CUDA toolkit's worth
# of components and overwrites the architectures, and the stable ABI needs an include folder and two libraries.
if(NOT TCGEMM_TORCH_DIR)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
    OUTPUT_VARIABLE torch_dir)
else()
  set(torch_dir ${TCGEMM_TORCH_DIR})
endif()
if(NOT EXISTS "${torch_dir}/include/torch/csrc/stable/library.h")
  message(FATAL_ERROR "tcgemm needs torch >= 2.10, and ${Python3_EXECUTABLE} has none (found: '${torch_dir}'): "
                      "install it there, or set TCGEMM_TORCH_DIR to torch's folder.")
endif()
set(torch_version unknown)
if(EXISTS ${torch_dir}/version.py)
  file(STRINGS ${torch_dir}/version.py line REGEX "^__version__")
  string(REGEX REPLACE ".*'(.*)'.*" "\\1" torch_version "${line}")
endif()

set(TCGEMM_TORCH_TARGET 2.10)  # the oldest torch that can load the libraries
add_library(tcgemm_torch INTERFACE)
target_include_directories(tcgemm_torch SYSTEM INTERFACE ${torch_dir}/include)
target_compile_definitions(tcgemm_torch INTERFACE TORCH_TARGET_VERSION=0x020a000000000000)
target_link_libraries(tcgemm_torch INTERFACE ${torch_dir}/lib/libtorch_cpu.so)

add_library(tcgemm_torch_cuda INTERFACE)
target_compile_definitions(tcgemm_torch_cuda INTERFACE USE_CUDA)  # declares the shim's stream functions
target_link_libraries(tcgemm_torch_cuda INTERFACE ${torch_dir}/lib/libtorch_cuda.so)
