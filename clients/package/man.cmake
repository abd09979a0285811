# Pages of the manual, from what programs say of themselves (--help), where Debian's help2man is installed and programs
# can be run.
find_program(HELP2MAN help2man)
if(HELP2MAN AND NOT CMAKE_CROSSCOMPILING AND NOT SINEW_SANITIZE AND NOT SINEW_PYTHON)
  set(_man ${CMAKE_BINARY_DIR}/share/man/man1)
  set(_pages)
  foreach(page "sinewd=plans for bodies that are moved by muscles" "sinewctl=asks a sinewd, from a shell"
      "sinew-plant=the body that sinewd plans for, played by MuJoCo" "sinew-import=makes a model of MJCF"
      "sinew-check=compares the engine with MuJoCo" "sinew-bench=measures steps, gradients and planners"
      "sinew-load=asks a sinewd for plans by the clock")
    string(REGEX MATCH "^[^=]+" _program ${page})
    string(REGEX REPLACE "^[^=]+=" "" _text ${page})
    if(TARGET ${_program})
      add_custom_command(OUTPUT ${_man}/${_program}.1
        COMMAND ${CMAKE_COMMAND} -E make_directory ${_man}
        COMMAND ${HELP2MAN} --no-info --no-discard-stderr --version-string=${PROJECT_VERSION} --name=${_text}
          --output=${_man}/${_program}.1 $<TARGET_FILE:${_program}>
        DEPENDS ${_program} VERBATIM)
      list(APPEND _pages ${_man}/${_program}.1)
    endif()
  endforeach()
  add_custom_target(sinew_man ALL DEPENDS ${_pages})
  install(FILES ${_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
