# `cmake --install BUILD --prefix PREFIX`: the executable, what shells complete, the manual page, batch scripts,
# configurations and documents. Nothing of it names PREFIX: the tree may be moved.
include(GNUInstallDirs)
set(pages ${CMAKE_BINARY_DIR}/pages)
install(CODE "
  foreach(page IN ITEMS \"manual;jigsaw-train.1\" \"completion;bash;jigsaw-train\" \"completion;zsh;_jigsaw-train\")
    list(POP_BACK page file)
    execute_process(COMMAND \"$<TARGET_FILE:jigsaw-train>\" \${page} OUTPUT_FILE \"${pages}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
")
file(MAKE_DIRECTORY ${pages})
install(FILES ${pages}/jigsaw-train.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages}/jigsaw-train DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${pages}/_jigsaw-train DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(DIRECTORY configs scripts/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/jigsaw-train USE_SOURCE_PERMISSIONS)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# `cpack -G DEB` in a build folder makes a Debian package of the same, whose dependencies are looked up (dpkg-dev).
set(CPACK_PACKAGE_CONTACT "the authors of jigsaw-train")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains models on samples too large for one processor, cut over MPI ranks")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
include(CPack)
