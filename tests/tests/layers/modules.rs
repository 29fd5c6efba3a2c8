//! The modules of a crate, as its sources declare them, and where the names in them come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta, UseTree, Visibility};

/// A module: a file, or a part of one in braces.
pub struct Module {
    pub file: usize,
    pub items: Vec<Item>,
    parent: usize,
    children: BTreeMap<String, Vec<usize>>,
    defined: BTreeSet<String>,
    imports: Vec<Import>,
}

/// One name that a `use` brings into a module.
#[derive(Clone)]
pub struct Import {
    /// `*` for all names of what stands before.
    name: String,
    pub path: Vec<String>,
    pub kind: ImportKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    /// For the module's own use.
    Private,
    /// To be found here by others.
    ReExport,
}

/// A crate.
pub struct Crate {
    pub files: Vec<PathBuf>,
    pub modules: Vec<Module>,
    /// `macro_rules!` by name: the files that define them.
    pub macros: BTreeMap<String, usize>,
}

/// No path has more names, with all that imports put before it.
const SEGMENTS_MAX: usize = 12;

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    Item { file: usize },
}

impl Crate {
    /// Reads the crate whose root is this file.
    ///
    /// Panics where a file is missing or is no Rust.
    pub fn read(root: &Path) -> Crate {
        let mut all = Crate {
            files: Vec::new(),
            modules: Vec::new(),
            macros: BTreeMap::new(),
        };
        let folder = root.parent().expect("a file stands in a folder");
        all.read_file(root, folder, 0);
        all
    }

    /// Reads one file, whose own modules stand in `folder`; gives the number of its module.
    fn read_file(&mut self, path: &Path, folder: &Path, parent: usize) -> usize {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("failed to read {}: {error}", path.display()));
        let file = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("failed to parse {}: {error}", path.display()));
        self.files.push(path.to_owned());
        self.add(self.files.len() - 1, file.items, folder, parent)
    }

    fn add(&mut self, file: usize, items: Vec<Item>, folder: &Path, parent: usize) -> usize {
        let number = self.modules.len();
        self.modules.push(Module {
            file,
            items: Vec::new(),
            parent,
            children: BTreeMap::new(),
            defined: BTreeSet::new(),
            imports: Vec::new(),
        });
        for item in items {
            if is_of_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = folder.join(&name);
                    let child = match inner.content {
                        Some((_, items)) => self.add(file, items, &below, number),
                        None => {
                            let elsewhere = path_of(&inner.attrs).map(|path| {
                                let here = self.files[file].parent();
                                here.expect("a file stands in a folder").join(path)
                            });
                            let usual = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
                            let mut files = elsewhere.into_iter().chain(usual);
                            let found = files.find(|file| file.is_file());
                            let found = found.unwrap_or_else(|| panic!("no file of mod {name}"));
                            self.read_file(&found, &below, number)
                        }
                    };
                    let children = &mut self.modules[number].children;
                    children.entry(name).or_default().push(child);
                }
                Item::Use(inner) => {
                    let kind = match inner.vis {
                        Visibility::Inherited => ImportKind::Private,
                        Visibility::Public(_) | Visibility::Restricted(_) => ImportKind::ReExport,
                    };
                    self.modules[number]
                        .imports
                        .extend(imports(&inner.tree, kind));
                }
                item => {
                    if let Item::Macro(rules) = &item {
                        let name = rules.ident.iter().map(|name| (name.to_string(), file));
                        self.macros.extend(name);
                    }
                    let module = &mut self.modules[number];
                    module.defined.extend(name_of(&item));
                    module.items.push(item);
                }
            }
        }
        number
    }

    /// The files that define what a path names, seen from a module; none for other crates' names, and for a path
    /// that ends at a module.
    pub fn definitions(&self, module: usize, path: &[String]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        self.resolve(module, path, &mut BTreeSet::new(), &mut found);
        found
            .into_iter()
            .filter_map(|target| match target {
                Target::Item { file } => Some(file),
                Target::Module(_) => None,
            })
            .collect()
    }

    /// The imports of a module, for its own use or as re-exports.
    pub fn imports(&self, module: usize) -> &[Import] {
        &self.modules[module].imports
    }

    fn resolve(
        &self,
        module: usize,
        path: &[String],
        seen: &mut BTreeSet<(usize, Vec<String>)>,
        found: &mut BTreeSet<Target>,
    ) {
        let Some((first, rest)) = path.split_first() else {
            found.insert(Target::Module(module));
            return;
        };
        // Of `use circle::circle` each name stands behind the other.
        if path.len() > SEGMENTS_MAX || !seen.insert((module, path.to_vec())) {
            return;
        }
        let here = &self.modules[module];
        match first.as_str() {
            "crate" => return self.resolve(0, rest, seen, found),
            "self" => return self.resolve(module, rest, seen, found),
            "super" => return self.resolve(here.parent, rest, seen, found),
            _ => {}
        }
        for child in here.children.get(first).into_iter().flatten() {
            self.resolve(*child, rest, seen, found);
        }
        if here.defined.contains(first) {
            found.insert(Target::Item { file: here.file });
            return;
        }
        let named = |import: &&Import| import.name == *first;
        let explicit: Vec<_> = here.imports.iter().filter(named).collect();
        for import in &explicit {
            let whole: Vec<_> = import.path.iter().chain(rest).cloned().collect();
            self.resolve(module, &whole, seen, found);
        }
        if explicit.is_empty() && !here.children.contains_key(first) {
            for import in here.imports.iter().filter(|import| import.name == "*") {
                let whole: Vec<_> = import.path.iter().chain(path).cloned().collect();
                self.resolve(module, &whole, seen, found);
            }
        }
    }
}

/// The names that a `use` brings in.
pub fn imports(tree: &UseTree, kind: ImportKind) -> Vec<Import> {
    let mut all = Vec::new();
    collect(tree, &mut Vec::new(), kind, &mut all);
    all
}

fn collect(tree: &UseTree, path: &mut Vec<String>, kind: ImportKind, all: &mut Vec<Import>) {
    let mut one = |name: String, path: Vec<String>| all.push(Import { name, path, kind });
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            collect(&inner.tree, path, kind, all);
            path.pop();
        }
        UseTree::Group(inner) => {
            for tree in &inner.items {
                collect(tree, path, kind, all);
            }
        }
        UseTree::Glob(_) => one("*".to_owned(), path.clone()),
        UseTree::Name(inner) if inner.ident == "self" => {
            let name = path.last().cloned().unwrap_or_default();
            one(name, path.clone());
        }
        UseTree::Name(inner) => {
            let name = inner.ident.to_string();
            let whole = path.iter().cloned().chain([name.clone()]).collect();
            one(name, whole);
        }
        UseTree::Rename(inner) => {
            let last = inner.ident.to_string();
            let last = (last != "self").then_some(last);
            let whole = path.iter().cloned().chain(last).collect();
            one(inner.rename.to_string(), whole);
        }
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// What `#[path = ".."]` says.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

/// Whether an item is there in tests alone: these may look at anything.
pub fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            text == "test" || (text.starts_with("all") && text.contains("test"))
        }
        _ => false,
    })
}
