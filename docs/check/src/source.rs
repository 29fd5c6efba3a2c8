//! What the sources say of a type or a constant, so that the book need not repeat it by hand.

use quote::ToTokens;
use syn::{Attribute, Expr, Fields, Item, Lit, Meta};

use crate::top;

fn text(file: &str) -> String {
    let read = std::fs::read_to_string(top().join(file));
    read.unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn parsed(file: &str) -> syn::File {
    syn::parse_file(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The drawing in the documentation of a module: its first block of a language.
pub fn drawing(file: &str, language: &str) -> String {
    let doc = doc(&parsed(file).attrs);
    let fence = format!("```{language}\n");
    let drawing = doc
        .split_once(&fence)
        .and_then(|(_, behind)| behind.split_once("```"));
    let (drawing, _) = drawing.unwrap_or_else(|| panic!("{file} draws nothing in {language}"));
    format!("{fence}{}```\n", linkless(drawing))
}

/// The fields of a struct as a table: name, type, what its documentation says.
pub fn fields(file: &str, name: &str) -> String {
    let found = parsed(file).items.into_iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == name => Some(item.fields),
        _ => None,
    });
    let Some(Fields::Named(fields)) = found else {
        panic!("{file} has no struct {name} with names")
    };
    let rows = fields.named.iter().map(|field| {
        let kind = field.ty.to_token_stream().to_string().replace(' ', "");
        let kind = format!("`{}`", kind.replace(',', ", "));
        let name = field.ident.as_ref().expect("it has a name").to_string();
        row(&name, &kind, &plain(&doc(&field.attrs)))
    });
    table(["field", "type", "what it is"], rows)
}

/// What an enum's documentation says of each of its variants, as a table.
pub fn variants(file: &str, name: &str) -> String {
    let found = parsed(file).items.into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == name => Some(item.variants),
        _ => None,
    });
    let variants = found.unwrap_or_else(|| panic!("{file} has no enum {name}"));
    let rows = variants.iter().map(|variant| {
        let (name, doc) = (variant.ident.to_string(), plain(&doc(&variant.attrs)));
        assert!(!doc.is_empty(), "{file} says nothing of {name}");
        format!("| `{}` | {doc} |\n", name.to_lowercase())
    });
    format!(
        "| rule | what it is |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// The documentation of an item, in its lines.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let Meta::NameValue(meta) = &attribute.meta else {
            return None;
        };
        let Expr::Lit(value) = &meta.value else {
            return None;
        };
        let Lit::Str(line) = &value.lit else {
            return None;
        };
        let line = line.value();
        let line = line.strip_prefix(' ').unwrap_or(&line).to_owned();
        meta.path.is_ident("doc").then_some(line + "\n")
    });
    lines.collect()
}

/// Documentation as it stands in a table, in one line.
fn plain(doc: &str) -> String {
    linkless(&doc.trim().replace('\n', " ").replace('|', "\\|"))
}

/// Names of code stand where links to code were.
fn linkless(doc: &str) -> String {
    doc.replace("[`", "`").replace("`]", "`")
}

/// The first whole number that a file gives a field or key of this name.
pub fn literal(file: &str, name: &str) -> String {
    let text = text(file);
    let value = text.lines().find_map(|line| {
        let (_, behind) = line.split_once(name)?;
        let digits = behind.trim_start_matches(['"', ':', ' ']).chars();
        let digits: String = digits.take_while(char::is_ascii_digit).collect();
        (!digits.is_empty()).then_some(digits)
    });
    value.unwrap_or_else(|| panic!("{file} gives {name} no number"))
}

pub fn row(name: &str, kind: &str, what: &str) -> String {
    format!("| `{name}` | {kind} | {what} |\n")
}

pub fn table(head: [&str; 3], rows: impl IntoIterator<Item = String>) -> String {
    let rows: String = rows.into_iter().collect();
    format!("| {} |\n|---|---|---|\n{rows}", head.join(" | "))
}

/// The value of a whole number, or of bytes, that a file calls by this name.
pub fn constant(file: &str, name: &str) -> String {
    let declares = format!("const {name}: ");
    let text = text(file);
    let value = text.lines().find_map(|line| {
        let (_, behind) = line.split_once(&declares)?;
        let (_, value) = behind.split_once("= ")?;
        value.strip_suffix(';')
    });
    let value = value.unwrap_or_else(|| panic!("{file} has no constant {name}"));
    value.trim_start_matches("*b").trim_matches('"').to_owned()
}
