//! Which file of a crate uses which, and the circles among them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemUse, Macro};

use crate::modules::{Crate, ImportKind, imports};

/// For each file those that define what it names.
pub type Graph = BTreeMap<usize, BTreeSet<usize>>;

/// Reads what the files of a crate name.
pub fn graph(all: &Crate) -> Graph {
    let mut graph: Graph = (0..all.files.len())
        .map(|file| (file, BTreeSet::new()))
        .collect();
    for (number, module) in all.modules.iter().enumerate() {
        let mut names = Names {
            all,
            module: number,
            files: BTreeSet::new(),
        };
        let own = all.imports(number).iter();
        for import in own.filter(|import| import.kind == ImportKind::Private) {
            names.path(&import.path);
        }
        for item in &module.items {
            names.visit_item(item);
        }
        let files = names.files;
        let used = graph.entry(module.file).or_default();
        used.extend(files.into_iter().filter(|file| *file != module.file));
    }
    graph
}

/// Gathers the files that define what a module names.
struct Names<'a> {
    all: &'a Crate,
    module: usize,
    files: BTreeSet<usize>,
}

impl Names<'_> {
    fn path(&mut self, path: &[String]) {
        self.files.extend(self.all.definitions(self.module, path));
    }

    /// Paths among the tokens of a macro, whose grammar only the macro knows. A name alone counts where it
    /// is a type's or a call.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut after_dot = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.finish(&mut path, false);
                    }
                    if !after_dot {
                        path.push(name.to_string());
                    }
                    (colons, after_dot) = (0, false);
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Punct(mark) => {
                    self.finish(&mut path, false);
                    (colons, after_dot) = (0, mark.as_char() == '.');
                }
                TokenTree::Group(group) => {
                    self.finish(&mut path, true);
                    (colons, after_dot) = (0, false);
                    self.tokens(group.stream());
                }
                TokenTree::Literal(_) => {
                    self.finish(&mut path, false);
                    (colons, after_dot) = (0, false);
                }
            }
        }
        self.finish(&mut path, false);
    }

    fn finish(&mut self, path: &mut Vec<String>, called: bool) {
        let path = std::mem::take(path);
        let is_type = |name: &String| name.starts_with(char::is_uppercase);
        if path.len() > 1 || called || path.first().is_some_and(is_type) {
            self.path(&path);
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<_> = path
                .segments
                .iter()
                .map(|part| part.ident.to_string())
                .collect();
            self.path(&names);
        }
        visit::visit_path(self, path);
    }

    /// One in a function.
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for import in imports(&item.tree, ImportKind::Private) {
            self.path(&import.path);
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let name = call.path.get_ident().map(ToString::to_string);
        let defined = name.and_then(|name| self.all.macros.get(&name));
        self.files.extend(defined);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// The largest sets of files each of which uses every other one, if by way of others.
pub fn circles(graph: &Graph) -> Vec<BTreeSet<usize>> {
    let reached: BTreeMap<usize, BTreeSet<usize>> = graph
        .keys()
        .map(|&file| (file, reach(graph, file)))
        .collect();
    let mut circles: Vec<BTreeSet<usize>> = Vec::new();
    for (&file, from_here) in &reached {
        if !from_here.contains(&file) || circles.iter().any(|circle| circle.contains(&file)) {
            continue;
        }
        let back = |other: &&usize| reached[other].contains(&file);
        circles.push(from_here.iter().filter(back).copied().collect());
    }
    circles
}

/// What a file uses, and what that uses, and so on.
fn reach(graph: &Graph, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        next.extend(graph[&file].iter().filter(|&&used| reached.insert(used)));
    }
    reached
}

/// A shortest way round in a circle.
pub fn way_round(graph: &Graph, circle: &BTreeSet<usize>) -> Vec<usize> {
    let ways = circle.iter().map(|&start| way_back(graph, start));
    ways.min_by_key(Vec::len).unwrap_or_default()
}

/// A shortest way from a file of a circle back to it: files in order, the first one last, too.
fn way_back(graph: &Graph, start: usize) -> Vec<usize> {
    let mut before = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for &used in &graph[&file] {
            if before.contains_key(&used) {
                continue;
            }
            before.insert(used, file);
            queue.push_back(used);
        }
    }
    let mut way = vec![start];
    let mut file = before[&start];
    while file != start {
        way.push(file);
        file = before[&file];
    }
    way.push(start);
    way.reverse();
    way
}
