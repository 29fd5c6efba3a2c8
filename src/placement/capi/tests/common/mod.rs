//! The libraries that callers link.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the libraries beside this test and tells where they are.
///
/// Cargo does not build a library of these kinds for an integration test by itself.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "colltune-placement-c"]);
        cargo
            .args([
                "--target-dir".as_ref(),
                profile.parent().unwrap().as_os_str(),
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
        // The name that programs ask for; two test programs may be about to make it.
        let asked_for = profile.join("libcolltune_placement.so.0");
        let _ = std::os::unix::fs::symlink("libcolltune_placement.so", asked_for);
        profile.to_owned()
    })
}
