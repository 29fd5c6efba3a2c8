//! What a page links to, and what can be linked to.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page, read.
#[derive(Default)]
pub struct Markdown {
    /// Where its links and pictures lead.
    pub links: Vec<String>,
    /// The names of its headings.
    pub headings: Vec<String>,
    /// Words in the type of code.
    pub spans: Vec<String>,
    /// Blocks of code, with their language.
    pub blocks: Vec<(String, String)>,
    /// Files that it includes.
    pub includes: Vec<String>,
}

impl Markdown {
    pub fn of(text: &str) -> Markdown {
        let mut read = Markdown::default();
        let mut heading: Option<String> = None;
        let mut block: Option<(String, String)> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    read.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    read.headings.extend(heading.take().map(|name| id(&name)));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    block = Some((language, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => read.blocks.extend(block.take()),
                Event::Text(words) => {
                    for text in heading
                        .iter_mut()
                        .chain(block.iter_mut().map(|(_, code)| code))
                    {
                        *text += &words;
                    }
                }
                Event::Code(words) => {
                    heading.iter_mut().for_each(|name| *name += &words);
                    read.spans.push(words.into_string());
                }
                _ => {}
            }
        }
        let includes = text.split("{{#include ").skip(1);
        let names = includes.filter_map(|rest| rest.split_once("}}"));
        read.includes = names.map(|(name, _)| name.trim().to_owned()).collect();
        read
    }
}

/// The name of a heading in a link, as mdBook and GitHub make it.
fn id(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.collect::<String>()
        .trim()
        .to_lowercase()
        .replace(' ', "-")
}

#[test]
fn a_page_is_read() {
    let text = "# The `key` of it\n[one](a.md#b) `src/x` {{#include c}}\n```sh\nls\n```\n";
    let read = Markdown::of(text);
    assert_eq!(read.headings, ["the-key-of-it"]);
    assert_eq!(read.links, ["a.md#b"]);
    assert_eq!(read.spans, ["key", "src/x"]);
    assert_eq!(read.blocks, [("sh".to_owned(), "ls\n".to_owned())]);
    assert_eq!(read.includes, ["c"]);
}
