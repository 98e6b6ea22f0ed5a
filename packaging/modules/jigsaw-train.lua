-- Environment module (Lmod). Copy to a folder of MODULEPATH as jigsaw-train/0.1.0.lua and set `root`.
help([[jigsaw-train: trains models on samples too large for one processor, cut over MPI ranks.
Configurations: $JIGSAW_TRAIN_SHARE/configs, batch scripts: $JIGSAW_TRAIN_SHARE/slurm.]])
whatis("Name: jigsaw-train")
whatis("Version: 0.1.0")
local root = "/opt/jigsaw-train/0.1.0"
-- The MPI, HDF5 and NetCDF that it was built with, for example:
-- depends_on("openmpi/4.1", "hdf5/1.14", "netcdf-c/4.9")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("FPATH", pathJoin(root, "share/zsh/site-functions"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
setenv("JIGSAW_TRAIN_SHARE", pathJoin(root, "share/jigsaw-train"))
