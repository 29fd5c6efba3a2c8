//! Golden files: what was written once must be written again. `COLLTUNE_BLESS=1` rewrites them.

/// Compares `text` with `tests/golden/NAME` of the workspace.
pub fn check(name: &str, text: &str) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(name);
    if std::env::var_os("COLLTUNE_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let golden = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(
        golden == text,
        "{} differs from what is written now:\n{text}",
        file.display()
    );
}
