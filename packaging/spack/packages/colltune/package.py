"""In a checkout: spack repo add packaging/spack && spack dev-build --test=root colltune@0.2.0"""

from spack.package import *


class Colltune(MakefilePackage):
    """Tunes MPI collectives inside unmodified programs: a preloaded library
    runs them by different algorithms, times them, and learns which is fast."""

    # From a source archive or a checkout (dev-build): the project publishes no address.
    manual_download = True

    license("MIT")

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")
    depends_on("mpi")
    # For `predictor = "xgboost"`, loaded when it is asked for.
    variant("xgboost", default=False, description="Predict by XGBoost where the settings say so")
    depends_on("xgboost@1.4:", when="+xgboost", type="run")

    def build(self, spec, prefix):
        make("build", f"MPICC={spec['mpi'].mpicc}")

    def install(self, spec, prefix):
        make("install", f"MPICC={spec['mpi'].mpicc}", f"PREFIX={prefix}")

    def setup_run_environment(self, env):
        if "+xgboost" in self.spec:
            env.set("COLLTUNE_XGBOOST", join_path(self.spec["xgboost"].libs.directories[0], "libxgboost.so"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        self.test_version()

    def test_version(self):
        """the command starts and is of this version"""
        out = which(self.prefix.bin.colltune)("--version", output=str.split, error=str.split)
        assert str(self.spec.version) in out

    def test_job(self):
        """a job of two ranks is recorded and learned from"""
        mpirun = which(join_path(self.spec["mpi"].prefix.bin, "mpirun"))
        if mpirun is None:
            raise SkipTest("the MPI library has no mpirun")
        colltune = which(self.prefix.bin.colltune)
        helpers = find(self.prefix.lib.colltune, "colltune-mpibench")
        colltune("run", "--db", "db", "--", mpirun.path, "-n", "2", helpers[0], "mix")
        colltune("train", "--db", "db")
        assert "generation" in colltune("status", "--db", "db", output=str.split, error=str.split)
