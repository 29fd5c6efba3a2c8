//! Single values of settings; each error is a sentence that names the value and what is allowed.

use std::time::Duration;

use super::FAMILIES;
use crate::variant::{Family, VariantName};

pub(super) fn name(value: &toml::Value) -> Result<String, String> {
    let plain = |text: &&str| {
        !text.is_empty()
            && text.len() <= 64
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match value {
        toml::Value::Integer(number) => Ok(number.to_string()),
        _ => value
            .as_str()
            .filter(plain)
            .map(str::to_owned)
            .ok_or_else(|| {
                format!("{value} is not a name of 1 to 64 letters, digits, '-', '_' or '.'")
            }),
    }
}

pub(super) fn variant_names(value: &toml::Value) -> Result<Vec<String>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("{value} is not a list such as [\"native:linear\"]"))?;
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
        Ok(text.to_owned())
    };
    list.iter().map(read).collect()
}

/// Sorted, each once. An empty list is allowed: then nothing but `default` is drawn.
pub(super) fn families(value: &toml::Value) -> Result<Vec<Family>, String> {
    let known = || {
        FAMILIES
            .map(|family| format!("{:?}", family.name()))
            .join(", ")
    };
    let list = value
        .as_array()
        .ok_or_else(|| format!("{value} is not a list such as [\"native\", \"p2p\"]"))?;
    let read = |item: &toml::Value| {
        let named = |family: &Family| item.as_str() == Some(family.name());
        FAMILIES
            .into_iter()
            .find(named)
            .ok_or_else(|| format!("{item} is not one of {}", known()))
    };
    let mut families = list.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    families.sort_unstable();
    families.dedup();
    Ok(families)
}

pub(super) fn whole(value: &toml::Value, least: u64, most: u64) -> Result<u64, String> {
    let number = value
        .as_integer()
        .and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("{value} is not a whole number from {least} to {most}"))
}

fn number(value: &toml::Value) -> Option<f64> {
    let whole = || value.as_integer().map(|number| number as f64);
    value.as_float().or_else(whole)
}

pub(super) fn share(value: &toml::Value) -> Result<f64, String> {
    number(value)
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| format!("{value} is not a share from 0 to 1"))
}

pub(super) fn factor(value: &toml::Value) -> Result<f64, String> {
    number(value)
        .filter(|number| *number > 1.0)
        .ok_or_else(|| format!("{value} is not a factor above 1"))
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
}

pub(super) fn duration(value: &toml::Value) -> Result<Duration, String> {
    if let Some(seconds) = value
        .as_integer()
        .and_then(|number| u64::try_from(number).ok())
    {
        return Ok(Duration::from_secs(seconds));
    }
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
    value
        .as_str()
        .and_then(read)
        .ok_or_else(|| format!("{value} is not a time such as \"10s\", \"500ms\", \"1h\""))
}
