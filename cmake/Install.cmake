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
# Permissions are not those of the source tree, which may be its owner's alone.
set(everyone_reads OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(everyone_enters ${everyone_reads} OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/jigsaw-train
  FILE_PERMISSIONS ${everyone_reads} DIRECTORY_PERMISSIONS ${everyone_enters})
install(DIRECTORY scripts/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/jigsaw-train
  FILE_PERMISSIONS ${everyone_enters} DIRECTORY_PERMISSIONS ${everyone_enters})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILE_PERMISSIONS ${everyone_reads} DIRECTORY_PERMISSIONS ${everyone_enters})
install(FILES README.md CHANGELOG.md LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# `cpack -G DEB` in a build folder makes a Debian package of the same, whose dependencies are looked up (dpkg-dev).
set(CPACK_PACKAGE_CONTACT "the authors of jigsaw-train")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains models on samples too large for one processor, cut over MPI ranks")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_PACKAGE_VENDOR "the authors of jigsaw-train")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_RESOURCE_FILE_README ${CMAKE_SOURCE_DIR}/README.md)
set(CPACK_SOURCE_IGNORE_FILES "/\\.git/" "/build/" "/runs/" "/__pycache__/")
# The launcher; the library is looked up.
if(MPI_C_LIBRARIES MATCHES "mpich")
  set(CPACK_DEBIAN_PACKAGE_DEPENDS mpich)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
include(CPack)
