//! Servers of tools, as `.mcp.json` and other programs' settings name them. Values of variables stay where they are: a tree
//! file has names only.

use serde_json::{Map, Value};
use spinney_kernel::definition::HttpAddress;

use super::source_files::SourceFolder;
use super::{Found, ImportedKey, ImportedPlace, ImportedServer, ProjectImportError, SERVERS_MAX};

const FILE: &str = ".mcp.json";
const ARGS_MAX: usize = 64;
const WORD_BYTES_MAX: usize = 4 * 1024;
const VARIABLES_MAX: usize = 32;

pub(super) fn read(source: &SourceFolder, found: &mut Found) -> Result<(), ProjectImportError> {
    let Some(file) = source.read(FILE, found)? else { return Ok(()) };
    match serde_json::from_str::<Value>(&file.text) {
        Ok(json) => take(json.get("mcpServers").unwrap_or(&Value::Null), FILE, "mcpServers", found),
        Err(error) => found.leave_out(
            FILE,
            format!("the whole file: it is not JSON (line {}, column {})", error.line(), error.column()),
        ),
    }
    Ok(())
}

/// Takes the servers of an object.
pub(super) fn take(all: &Value, file: &str, key: &str, found: &mut Found) {
    for (name, server) in all.as_object().into_iter().flatten() {
        let from = format!("{file}: {key}.{name}");
        if found.servers.len() >= SERVERS_MAX {
            found.leave_out(from, format!("more than {SERVERS_MAX} servers"));
            return;
        }
        if found.servers.iter().any(|known| known.name == *name) {
            continue;
        }
        let server = server.as_object().map(|server| read_server(name, server, &from, found));
        match server {
            Some(Ok(server)) => found.servers.push(server),
            Some(Err(why)) => found.leave_out(from, why),
            None => found.leave_out(from, "it is not an object"),
        }
    }
}

fn read_server(
    name: &str,
    server: &Map<String, Value>,
    from: &str,
    found: &mut Found,
) -> Result<ImportedServer, String> {
    let is_name = (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !is_name {
        return Err(
            "its name has other characters than letters, digits, `_` and `-`, or more than 32".to_owned()
        );
    }
    let word = |value: &Value| {
        let word =
            value.as_str().filter(|word| word.len() <= WORD_BYTES_MAX && !word.contains(char::is_control));
        word.map(str::to_owned)
    };
    if server.contains_key("url") || server.contains_key("serverUrl") {
        let place = read_url(server, from, found)?;
        return Ok(ImportedServer { name: name.to_owned(), from: from.to_owned(), place });
    }
    let Some(command) = server.get("command").and_then(word).filter(|command| !command.is_empty()) else {
        return Err("it has no command".to_owned());
    };
    let args = match server.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(args)) if args.len() <= ARGS_MAX => {
            args.iter().map(word).collect::<Option<_>>().ok_or("an argument is not a plain text")?
        }
        Some(_) => return Err(format!("`args` is not a list of at most {ARGS_MAX}")),
    };
    let mut env = Vec::new();
    for (variable, value) in
        server.get("env").and_then(Value::as_object).into_iter().flatten().take(VARIABLES_MAX)
    {
        if !is_variable(variable) {
            found.leave_out(from, "a variable without a plain name");
            continue;
        }
        if value.as_str() != Some(&format!("${{{variable}}}"))
            && value.as_str() != Some(&format!("${variable}"))
        {
            found.leave_out(from, format!("the value of {variable}: set it in your environment"));
        }
        env.push(variable.clone());
    }
    for key in server.keys() {
        if !matches!(key.as_str(), "command" | "args" | "env" | "type") {
            found.leave_out(from, format!("{}: there is nothing like it", key.escape_debug()));
        }
    }
    if matches!(command.as_str(), "npx" | "uvx" | "bunx") {
        let what = format!(
            "that {command} downloads it when it starts: a box has no network for that, so it is installed before, at one version"
        );
        found.leave_out(from, what);
    }
    let place = ImportedPlace::Command { command, args, env };
    Ok(ImportedServer { name: name.to_owned(), from: from.to_owned(), place })
}

/// A server elsewhere. Its key is taken by the name of the variable that has it, never by its value.
fn read_url(server: &Map<String, Value>, from: &str, found: &mut Found) -> Result<ImportedPlace, String> {
    let url = server.get("url").or(server.get("serverUrl")).and_then(Value::as_str).unwrap_or_default();
    if server.get("type").and_then(Value::as_str) == Some("sse") {
        return Err(
            "it speaks over server-sent events alone, which was the way before streamable HTTP".to_owned()
        );
    }
    if url.contains('?') || url.contains("${") {
        return Err(
            "its URL has a part that may be a key: write it without, and name the key in `auth`".to_owned()
        );
    }
    let address = HttpAddress { url: url.to_owned(), auth: None };
    let host = address.check().map_err(|why| format!("its URL: {why}"))?.to_string();
    let mut auth = server
        .get("bearer_token_env_var")
        .and_then(Value::as_str)
        .filter(|variable| is_variable(variable))
        .map(|variable| ImportedKey { variable: variable.to_owned(), header: None });
    let headers = server.get("headers").or(server.get("http_headers")).and_then(Value::as_object);
    for (header, value) in headers.into_iter().flatten().take(VARIABLES_MAX) {
        let key = value.as_str().and_then(|value| key_of(header, value));
        if auth.is_none() && key.is_some() {
            auth = key;
        } else {
            found.leave_out(
                from,
                format!("the header {}: name the variable of a key in `auth`", header.escape_debug()),
            );
        }
    }
    for key in server.keys() {
        let is_read = matches!(
            key.as_str(),
            "url" | "serverUrl" | "type" | "headers" | "http_headers" | "bearer_token_env_var"
        );
        if !is_read {
            found.leave_out(from, format!("{}: there is nothing like it", key.escape_debug()));
        }
    }
    Ok(ImportedPlace::Url { url: url.to_owned(), host, auth })
}

/// The variable in the value of a header, if there is nothing else in it.
fn key_of(header: &str, value: &str) -> Option<ImportedKey> {
    let is_header = !header.is_empty()
        && header.len() <= 64
        && header.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_usual = header.eq_ignore_ascii_case("authorization") && value.starts_with("Bearer ");
    let word = if is_usual { &value["Bearer ".len()..] } else { value };
    let variable = word.trim().strip_prefix("${")?.strip_suffix('}')?;
    let header = (!is_usual).then(|| header.to_owned());
    (is_header && is_variable(variable)).then(|| ImportedKey { variable: variable.to_owned(), header })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
}
