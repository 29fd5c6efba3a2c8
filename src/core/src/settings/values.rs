//! Single values of settings: `None` for what they cannot take.

use std::time::Duration;

use super::fields::SummaryTo;
use crate::variant::{Family, Size, VariantName};

pub(super) fn name(value: &toml::Value) -> Option<String> {
    let plain = |text: &&str| {
        !text.is_empty()
            && text.len() <= 64
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match value {
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => value.as_str().filter(plain).map(str::to_owned),
    }
}

/// The longest pattern: as long as a path may be.
const PATTERN_BYTES_MAX: usize = 4096;

pub(super) fn pattern(value: &toml::Value) -> Option<String> {
    let text = value.as_str()?;
    let is_one = !text.is_empty() && text.len() <= PATTERN_BYTES_MAX;
    is_one.then(|| text.to_owned())
}

/// Errors: a sentence that names the item of the list.
pub(super) fn variant_names(list: &[toml::Value]) -> Result<Vec<String>, String> {
    let read = |item: &toml::Value| {
        let text = item
            .as_str()
            .ok_or_else(|| format!("{item} is not the name of a variant"))?;
        let variant = text
            .parse::<VariantName>()
            .map_err(|error| error.to_string())?;
        if variant == VariantName::default_choice() {
            return Err(
                "\"default\" cannot be excluded: it is what remains when nothing else applies"
                    .to_owned(),
            );
        }
        Ok(variant.to_string())
    };
    list.iter().map(read).collect()
}

/// Sorted, each once. An empty list is allowed: then nothing but `default` is drawn.
pub(super) fn families(list: &[toml::Value], known: &[Family]) -> Option<Vec<Family>> {
    let read = |item: &toml::Value| {
        let named = |family: &Family| item.as_str() == Some(family.name());
        known.iter().copied().find(named)
    };
    let mut families = list.iter().map(read).collect::<Option<Vec<_>>>()?;
    families.sort_unstable();
    families.dedup();
    Some(families)
}

pub(super) fn whole(value: &toml::Value) -> Option<u64> {
    u64::try_from(value.as_integer()?).ok()
}

pub(super) fn number(value: &toml::Value) -> Option<f64> {
    let whole = || value.as_integer().map(|number| number as f64);
    value.as_float().or_else(whole)
}

/// Where a summary goes: yes and no, as files and as variables say it, or a file.
pub(super) fn summary(value: &toml::Value) -> Option<SummaryTo> {
    match value {
        toml::Value::Boolean(true) | toml::Value::Integer(1) => Some(SummaryTo::Stderr),
        toml::Value::Boolean(false) | toml::Value::Integer(0) => Some(SummaryTo::Nobody),
        toml::Value::String(text) => match text.as_str() {
            "" => None,
            "true" => Some(SummaryTo::Stderr),
            "false" => Some(SummaryTo::Nobody),
            file => Some(SummaryTo::File(file.to_owned())),
        },
        _ => None,
    }
}

/// A number of bytes, with a unit or without.
pub(super) fn bytes(value: &toml::Value) -> Option<u64> {
    let sized = || Some(value.as_str()?.parse::<Size>().ok()?.0);
    whole(value).or_else(sized)
}

/// Reads a length of time such as `10s`, `500ms`, `1h`, or a number of seconds.
///
/// Errors: a sentence that names the value and what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let value = text.parse().map_or_else(
        |_| toml::Value::String(text.to_owned()),
        toml::Value::Integer,
    );
    duration(&value)
        .ok_or_else(|| format!("{value} is not a time such as \"10s\", \"500ms\", \"1h\""))
}

pub(super) fn duration(value: &toml::Value) -> Option<Duration> {
    let units = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
    ];
    let read = |text: &str| {
        units.iter().find_map(|&(unit, ms)| {
            let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            number.checked_mul(ms).map(Duration::from_millis)
        })
    };
    whole(value)
        .map(Duration::from_secs)
        .or_else(|| value.as_str().and_then(read))
}

/// A length of time; the inner `None` is "inf", for ever.
pub(super) fn age(value: &toml::Value) -> Option<Option<Duration>> {
    match value.as_str() {
        Some("inf") => Some(None),
        Some("0") => Some(Some(Duration::ZERO)),
        _ => duration(value).map(Some),
    }
}
