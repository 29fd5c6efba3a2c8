//! What people open our files with, each skipped where there is none: a browser, a validator of HTML, and the two
//! viewers of time lines.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::skip::skip;

/// What scripts exit with that cannot install what they need.
const CANNOT_INSTALL: i32 = 77;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a script prints; `None`, counted as skipped, where it has not what it needs.
fn script(name: &str, file: &Path) -> Option<String> {
    let output = Command::new(root().join("scripts").join(name))
        .arg(file)
        .output();
    let output = output.expect("the script starts");
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    if output.status.code() == Some(CANNOT_INSTALL) {
        return skip(err.trim());
    }
    assert!(output.status.success(), "{}: {out}{err}", file.display());
    Some(out.into_owned())
}

/// Whether a validator finds the page valid.
pub fn is_valid_html(page: &Path) {
    script("html-validate", page);
}

/// What Perfetto and the Firefox profiler see in a time line, as `scripts/trace-viewers` says it.
pub fn seen_in_viewers(trace: &Path) -> Option<Value> {
    let said = script("trace-viewers", trace)?;
    Some(serde_json::from_str(&said).expect("JSON"))
}

fn chromium(scheme: &str, page: &str) -> Output {
    let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
    let options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"];
    let mut command = Command::new("timeout");
    command.args(["120", "chromium", &scheme]).args(options);
    // The page is looked at from another file, and its console is read.
    command.args(["--allow-file-access-from-files", "--enable-logging=stderr"]);
    command.arg(page).output().expect("timeout starts")
}

/// Opens a page in headless Chromium at three widths, light and dark: nothing is wider than the window, no words of a
/// picture are cut, lie on each other or are too faint to read, no picture or table is empty, and the console says
/// nothing.
pub fn is_readable_in_a_browser(page: &Path) {
    const WIDTHS: [u64; 3] = [400, 900, 1600];
    const DARK_AND_LIGHT: [&str; 2] = ["0", "1"];
    let viewer = root().join("tests/viewers/widths.html");
    let viewer = viewer.canonicalize().expect("it is there");
    let page = page.canonicalize().expect("it is there");
    let widths = WIDTHS.map(|width| width.to_string()).join(",");
    let (viewer, shown) = (viewer.display(), page.display());
    let url = format!("file://{viewer}?page={shown}&widths={widths}");
    for scheme in DARK_AND_LIGHT {
        let output = chromium(scheme, &url);
        if output.status.code() == Some(127) {
            return skip("needs chromium").unwrap_or(());
        }
        assert!(output.status.success(), "{output:?}");
        let console = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!console.contains("CONSOLE"), "{console}");
        let seen = String::from_utf8_lossy(&output.stdout);
        let found = seen.split_once("<pre id=\"found\">");
        let found = found.and_then(|(_, rest)| rest.split_once("</pre>"));
        let (found, _) = found.expect("what was found");
        let found = found.replace("&lt;", "<").replace("&gt;", ">");
        let found = found.replace("&amp;", "&");
        let found: Vec<Value> = serde_json::from_str(&found).expect("JSON");
        assert_eq!(found.len(), WIDTHS.len());
        for (one, width) in found.iter().zip(WIDTHS) {
            let page_width = one["page_width"].as_u64().expect("a width");
            assert!(page_width <= width, "scrolls sideways: {one}");
            let elements = one["elements"].as_u64().expect("a number");
            assert!(elements > 50, "the page was not shown: {one}");
            for nothing in ["pictures_empty", "unreadable", "faint"] {
                assert_eq!(one[nothing], serde_json::json!([]), "{nothing}: {one}");
            }
            assert_eq!(one["tables_empty"], 0, "{one}");
        }
    }
}
