//! The tree stays within what CONTRIBUTING allows: lines of each folder, how many files are long, and no setting that
//! nothing reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// A file with more lines is long: a room that has grown too big.
const LONG: usize = 500;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust files below `folder` with their numbers of lines, build folders and hidden ones left out.
fn lines_below(folder: &Path, found: &mut BTreeMap<PathBuf, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_symlink() || name == "target" || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            lines_below(&path, found);
        } else if name.ends_with(".rs") {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            found.insert(path.strip_prefix(top()).unwrap().to_owned(), lines);
        }
    }
}

fn all_lines() -> BTreeMap<PathBuf, usize> {
    let mut found = BTreeMap::new();
    lines_below(&top(), &mut found);
    found
}

/// The rows of the table below "## Budgets": what stands in backquotes, and the first number.
fn budgets() -> Vec<(Vec<String>, usize)> {
    let text = fs::read_to_string(top().join("CONTRIBUTING.md")).unwrap();
    let (_, section) = text
        .split_once("\n## Budgets\n")
        .expect("a section Budgets");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let names = cells[0].split('`').skip(1).step_by(2);
        let number = cells[1].trim().replace(',', "");
        let lines = number
            .parse()
            .unwrap_or_else(|_| panic!("no number of lines: {row}"));
        (names.map(str::to_owned).collect(), lines)
    })
    .collect()
}

/// What outgrew its row, what is in no row or in two; and how many files are long.
fn faults(
    files: &BTreeMap<PathBuf, usize>,
    budgets: &[(Vec<String>, usize)],
    long_allowed: usize,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (folders, budget) in budgets {
        let lines: usize = files
            .iter()
            .filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)))
            .map(|(_, lines)| lines)
            .sum();
        if lines > *budget {
            faults.push(format!(
                "{}: {lines} lines, the budget is {budget}: delete something, or say in the commit why it is raised",
                folders.join(", ")
            ));
        }
    }
    for path in files.keys() {
        let rows = budgets
            .iter()
            .filter(|(folders, _)| folders.iter().any(|folder| path.starts_with(folder)))
            .count();
        if rows != 1 {
            faults.push(format!("{} is in {rows} rows", path.display()));
        }
    }
    let long = files.values().filter(|lines| **lines > LONG).count();
    if long > long_allowed {
        faults.push(format!(
            "{long} files have over {LONG} lines, {long_allowed} are allowed"
        ));
    }
    faults
}

/// Long files there may be: this number gets smaller, never larger.
const LONG_FILES: usize = 27;

#[test]
fn every_folder_keeps_to_its_budget_of_lines() {
    let budgets = budgets();
    assert!(budgets.len() > 5, "the table was not found");
    assert_eq!(faults(&all_lines(), &budgets, LONG_FILES), [""; 0]);
}

#[test]
fn what_outgrows_its_budget_or_has_none_is_named() {
    let files = BTreeMap::from([
        (PathBuf::from("src/a/lib.rs"), 501),
        (PathBuf::from("src/b/lib.rs"), 3),
    ]);
    let row = |lines| vec![(vec!["src/a".to_owned()], lines)];
    let found = faults(&files, &row(500), 0);
    assert!(found[0].starts_with("src/a: 501 lines"), "{found:?}");
    assert_eq!(found[1], "src/b/lib.rs is in 0 rows");
    assert!(found[2].starts_with("1 files have over 500 lines"));
    assert_eq!(faults(&files, &row(501), 1), ["src/b/lib.rs is in 0 rows"]);
}

/// Where the settings have their fields, and what reads them for others.
const FIELDS: &str = "src/core/src/settings/fields.rs";

/// What code reads: fields of something called `settings`, or, inside the methods of the settings, of `self`.
#[derive(Default)]
struct Reads {
    /// Where `self` is the settings: the method that is looked at.
    method: Option<String>,
    of_settings: BTreeSet<String>,
    /// By method the fields that it reads.
    of_self: BTreeMap<String, BTreeSet<String>>,
    calls: BTreeSet<String>,
}

/// Whether an expression is the settings by its name, as in `terms.settings` and `db.settings()?`.
fn is_settings(base: &syn::Expr) -> bool {
    match base {
        syn::Expr::Path(path) => {
            (path.path.segments.last()).is_some_and(|one| one.ident == "settings")
        }
        syn::Expr::Field(field) => {
            matches!(&field.member, syn::Member::Named(name) if name == "settings")
        }
        syn::Expr::MethodCall(call) => call.method == "settings" || is_settings(&call.receiver),
        syn::Expr::Try(inner) => is_settings(&inner.expr),
        syn::Expr::Paren(inner) => is_settings(&inner.expr),
        syn::Expr::Reference(inner) => is_settings(&inner.expr),
        _ => false,
    }
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    let is_test =
        |list: &syn::MetaList| list.path.is_ident("cfg") && list.tokens.to_string() == "test";
    let mut lists = attributes
        .iter()
        .filter_map(|one| one.meta.require_list().ok());
    lists.any(is_test)
}

impl<'ast> Visit<'ast> for Reads {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_of_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.method = Some(function.sig.ident.to_string());
        visit::visit_impl_item_fn(self, function);
        self.method = None;
    }

    fn visit_expr_assign(&mut self, assign: &'ast syn::ExprAssign) {
        // What is written is not read.
        if !matches!(&*assign.left, syn::Expr::Field(_)) {
            self.visit_expr(&assign.left);
        }
        self.visit_expr(&assign.right);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.calls.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let syn::Member::Named(name) = &field.member {
            let is_self =
                matches!(&*field.base, syn::Expr::Path(path) if path.path.is_ident("self"));
            match &self.method {
                Some(method) if is_self => {
                    let of_method = self.of_self.entry(method.clone()).or_default();
                    of_method.insert(name.to_string());
                }
                _ if is_settings(&field.base) => {
                    self.of_settings.insert(name.to_string());
                }
                _ => {}
            }
        }
        visit::visit_expr_field(self, field);
    }
}

/// The fields of `Settings`.
fn settings_fields(file: &syn::File) -> Vec<String> {
    let settings = file.items.iter().find_map(|item| match item {
        syn::Item::Struct(one) if one.ident == "Settings" => Some(one),
        _ => None,
    });
    let fields = settings.expect("the settings are a struct").fields.iter();
    fields
        .map(|field| field.ident.as_ref().expect("a name").to_string())
        .collect()
}

/// Those of the fields that no code reads: not by `settings.FIELD`, nor by a method of the settings that code calls.
fn unread(fields: &[String], methods: &Reads, readers: &[Reads]) -> Vec<String> {
    let reads = |field: &String| {
        let by_method = methods
            .of_self
            .iter()
            .filter(|(_, read)| read.contains(field));
        let mut by_method = by_method.map(|(method, _)| method);
        readers.iter().any(|one| one.of_settings.contains(field))
            || by_method.any(|method| readers.iter().any(|one| one.calls.contains(method)))
    };
    let unread = fields.iter().filter(|field| !reads(field));
    unread.cloned().collect()
}

#[test]
fn every_setting_is_read_by_something() {
    let parsed = |path: &Path| {
        let text = fs::read_to_string(top().join(path)).unwrap();
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let reads = |file: &syn::File| {
        let mut reads = Reads::default();
        reads.visit_file(file);
        reads
    };
    let is_product = |path: &Path| {
        let text = path.to_string_lossy();
        !text.contains("tests")
            && !text.contains("/bench")
            && !text.starts_with("src/core/src/settings")
    };
    let files = all_lines();
    let product = files.keys().filter(|path| is_product(path));
    let readers: Vec<Reads> = product.map(|path| reads(&parsed(path))).collect();
    let file = parsed(Path::new(FIELDS));
    let (mut fields, methods) = (settings_fields(&file), reads(&file));
    assert!(fields.len() > 20, "{fields:?}");
    let found = unread(&fields, &methods, &readers);
    assert!(
        found.is_empty(),
        "settings that nothing reads: {}. Let code decide by them, or delete them ({FIELDS}, keys.rs)",
        found.join(", ")
    );
    fields.push("made_up_percent".to_owned());
    assert_eq!(unread(&fields, &methods, &readers), ["made_up_percent"]);
}
