//! What to write instead, in the format of the file. Hints are YAML, in backticks; for a TOML file they become TOML.

/// A hint about this file.
pub(super) fn for_file(file: &str, hint: &str) -> String {
    if !file.to_ascii_lowercase().ends_with(".toml") {
        return hint.to_owned();
    }
    let quoted = hint.split('`').enumerate().map(|(at, part)| match at % 2 {
        1 => toml(part).unwrap_or_else(|| part.to_owned()),
        _ => part.to_owned(),
    });
    quoted.collect::<Vec<_>>().join("`")
}

/// A key with its value, or a map, in TOML. Everything else is not YAML alone, such as the name of a key.
fn toml(yaml: &str) -> Option<String> {
    if yaml.starts_with('{') { value(yaml) } else { entry(yaml) }
}

fn entry(yaml: &str) -> Option<String> {
    let (key, written) = yaml.split_once(": ")?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let written = value(written.trim())?;
    is_key.then(|| format!("{key} = {written}"))
}

fn value(yaml: &str) -> Option<String> {
    if let Some(map) = yaml.strip_prefix('{') {
        let entries: Option<Vec<String>> = items(map.strip_suffix('}')?).map(entry).collect();
        return Some(format!("{{ {} }}", entries?.join(", ")));
    }
    if let Some(list) = yaml.strip_prefix('[') {
        let values: Option<Vec<String>> = items(list.strip_suffix(']')?).map(value).collect();
        return Some(format!("[{}]", values?.join(", ")));
    }
    let is_plain =
        matches!(yaml, "…" | "true" | "false") || yaml.starts_with('"') || yaml.parse::<f64>().is_ok();
    Some(if is_plain { yaml.to_owned() } else { format!("\"{yaml}\"") })
}

/// The parts between commas that are not inside brackets.
fn items(inside: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = inside.split(move |c| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toml_file_gets_its_hints_in_toml() {
        for (yaml, toml) in [
            ("write `model: …`", "write `model = …`"),
            ("write `{ fork: … }`", "write `{ fork = … }`"),
            ("write `limits: { agents: 12 }` or more", "write `limits = { agents = 12 }` or more"),
            (
                "give it a `price`, or set `unpriced: allow`",
                "give it a `price`, or set `unpriced = \"allow\"`",
            ),
            ("`a: [x, { b: true, c: [1.5, y] }]`", "`a = [\"x\", { b = true, c = [1.5, \"y\"] }]`"),
            ("one of `a`, `b`: take `c`", "one of `a`, `b`: take `c`"),
            ("type `export KEY=…` first", "type `export KEY=…` first"),
        ] {
            assert_eq!(for_file("tree.toml", yaml), toml);
            assert_eq!(for_file("tree.yaml", yaml), yaml);
        }
    }
}
