-- Environment module (Lmod). Copy to a folder of MODULEPATH as jigsaw-train/0.1.0.lua and set `root`.
help([[jigsaw-train: trains models on samples too large for one processor, cut over MPI ranks.
Configurations: $JIGSAW_TRAIN_SHARE/configs, batch scripts: $JIGSAW_TRAIN_SHARE/slurm.
zsh completes with fpath+=($JIGSAW_TRAIN_SHARE/../zsh/site-functions) before compinit.]])
whatis("Name: jigsaw-train")
whatis("Version: 0.1.0")
local root = "/opt/jigsaw-train/0.1.0"
-- The MPI, HDF5 and NetCDF that it was built with, for example:
-- depends_on("openmpi/4.1", "hdf5/1.14", "netcdf-c/4.9")
prepend_path("PATH", pathJoin(root, "bin"))
-- Where a variable was not set it meant a default, which it must name once it is set: the empty element of MANPATH stands
-- for the system's manual pages, and XDG_DATA_DIRS is where bash looks for completions.
local function prepend(variable, folder, default)
  local was_set = (os.getenv(variable) or "") ~= ""
  prepend_path(variable, folder)
  if not was_set then append_path(variable, default) end
end
prepend("MANPATH", pathJoin(root, "share/man"), "")
prepend("XDG_DATA_DIRS", pathJoin(root, "share"), "/usr/local/share:/usr/share")
setenv("JIGSAW_TRAIN_SHARE", pathJoin(root, "share/jigsaw-train"))
