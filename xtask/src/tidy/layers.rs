//! The modules of a crate are layers, as a table: none imports from one above or beside it, so there is no cycle.
//!
//! Names count by the module that they come from: `crate::Tree` is an import from `tree` if the root re-exports it from
//! there, and `super::` leads where the compiler would go.

use std::collections::BTreeMap;

use super::Finding;
use crate::workspace::{Import, Source, Workspace, imports};

/// The layers of a crate, or of one of its folders.
struct Table {
    folder: &'static str,
    /// The module that the folder is; empty for a whole crate.
    module: &'static [&'static str],
    /// From the bottom to the top. The modules of one row are strangers to each other.
    rows: &'static [&'static [&'static str]],
}

const TABLES: [Table; 7] = [
    Table {
        folder: "crates/kernel/src/",
        module: &[],
        rows: &[
            &["primitives"],
            &["budget"],
            &["definition"],
            &["record"],
            &["window"],
            &["context"],
            &["world"],
            &["port"],
            &["rules"],
        ],
    },
    Table {
        folder: "crates/runtime/src/",
        module: &[],
        rows: &[
            &[
                "block_on",
                "clock",
                "definition",
                "id",
                "model",
                "output_schema",
                "record",
                "redaction",
                "request",
                "rng",
                "sync",
                "tool",
            ],
            &[
                "breaker",
                "checked_arguments",
                "drivers",
                "function_model",
                "function_tool",
                "hooks",
                "names",
                "tree_file",
            ],
            &["budget", "bus", "call_limits", "first_call"],
            &["tree"],
            &["home"],
            &["prelude"],
        ],
    },
    Table {
        folder: "crates/drivers/src/",
        module: &[],
        rows: &[
            &["folders", "network", "off_worker", "prices", "processes", "tokens", "wire", "workspace"],
            &["http", "sandbox", "scripted"],
            &["working_copies"],
            &["commands", "fetch", "files", "providers"],
            &["packages"],
            &["mcp"],
        ],
    },
    Table {
        folder: "crates/host/src/",
        module: &[],
        rows: &[
            &[
                "caller_trace",
                "error_text",
                "following",
                "off_workers",
                "own_drivers",
                "price_list",
                "secrets",
                "shell_word",
                "system",
            ],
            &["attachments", "detached", "side_folders", "text_file"],
            &["inside", "listed_heads"],
            &["user"],
            &["project"],
            &["defaults"],
            &["exec", "tree_file"],
            &["redaction"],
            &["approved_drivers", "home"],
            &["trust"],
            &["control", "notify", "prepared", "removal", "server_packages", "verification"],
            &["check", "doctor", "explain", "host", "server_trial", "transfer", "tree_list"],
            &["followed_list", "home_costs", "open_home"],
            &["checkpoints", "prelude"],
            &["continuing"],
        ],
    },
    Table {
        folder: "crates/server/src/gateway/",
        module: &["gateway"],
        rows: &[
            &["wire"],
            &[
                "budget_line",
                "client",
                "definition",
                "halted_call",
                "kept_response",
                "key",
                "models",
                "unauthenticated",
                "notice",
                "pending_calls",
                "permissions",
                "refusals",
                "request_body",
                "upstream",
            ],
            &["agents", "counter", "driver", "retries", "settings"],
            &["run"],
            &["events", "wait"],
            &["call"],
            &["listen"],
            &["running_gateway"],
        ],
    },
    Table {
        folder: "crates/terminal/src/",
        module: &[],
        rows: &[
            &["inert", "mode", "money", "reader", "unwritten"],
            &["key_reader", "paint", "relay"],
            &["keyboard", "keys", "reflow", "region"],
            &["out"],
            &["question", "table"],
        ],
    },
    Table {
        folder: "crates/cli/src/",
        module: &[],
        rows: &[
            &["caller_trace", "hint", "huge_pages", "state_ink"],
            &["args", "error_text", "events", "exit", "log", "notify", "question_lines"],
            &["completion", "explain", "interrupt", "permission", "result"],
            &["chat", "live"],
            &["display"],
            &["prompts", "exec"],
            &["follow"],
            &["command"],
        ],
    },
];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    TABLES.iter().flat_map(|table| table.check(workspace)).collect()
}

impl Table {
    fn check(&self, workspace: &Workspace) -> Vec<Finding> {
        let inside = || {
            let sources = workspace.sources.iter();
            sources.filter_map(|source| Some((source.path.strip_prefix(self.folder)?, source)))
        };
        let is_root = |place: &str| matches!(place, "lib.rs" | "main.rs" | "mod.rs");
        let mut shortcuts = BTreeMap::new();
        for (_, root) in inside().filter(|(place, _)| is_root(place)) {
            shortcuts.extend(self.shortcuts(root));
        }
        let others = inside().filter(|(place, _)| !is_root(place));
        others.flat_map(|(place, source)| self.check_source(place, source, &shortcuts)).collect()
    }

    /// The names that the root has from a layer, and the layer.
    fn shortcuts(&self, root: &Source) -> BTreeMap<String, String> {
        let lines = root.syntax.items.iter().filter_map(|item| match item {
            syn::Item::Use(line) => Some(line),
            _ => None,
        });
        let shortcut = |Import { path, alias, .. }: Import| {
            let path = path.strip_prefix("self::").or(path.strip_prefix("crate::")).unwrap_or(&path);
            let layer = path.split("::").next()?;
            self.rank(layer)?;
            Some((alias?, layer.to_owned()))
        };
        lines.flat_map(imports).filter_map(shortcut).collect()
    }

    fn check_source(
        &self,
        place: &str,
        source: &Source,
        shortcuts: &BTreeMap<String, String>,
    ) -> Vec<Finding> {
        let parts: Vec<&str> =
            place.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").collect();
        let Some(own) = parts.first() else { return Vec::new() };
        let Some(own_rank) = self.rank(own) else { return vec![self.without_layer(source, own)] };
        let here: Vec<&str> = self.module.iter().copied().chain(parts.iter().copied()).collect();
        let imported = source.scan.mentions.iter().filter_map(|mention| {
            let path = absolute(&here, &mention.path)?;
            let name = *path.strip_prefix(self.module)?.first()?;
            let layer = shortcuts.get(name).map_or(name, String::as_str);
            let rank = self.rank(layer).filter(|rank| *rank >= own_rank && layer != *own)?;
            let place = if rank == own_rank { "beside" } else { "above" };
            Some(Finding {
                path: source.path.clone(),
                line: mention.line,
                rule: "layers",
                item: mention.path.clone(),
                what: format!("`{own}` imports `{}` from `{layer}`, which is {place} it", mention.path),
                remedy: "move what both need to the lower layer, or pass it in from above",
            })
        });
        imported.collect()
    }

    fn rank(&self, layer: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.contains(&layer))
    }

    fn without_layer(&self, source: &Source, item: &str) -> Finding {
        Finding {
            path: source.path.clone(),
            line: 1,
            rule: "layers",
            item: item.to_owned(),
            what: format!("`{item}` is in no layer of {}", self.folder),
            remedy: "move it into one, or add it to TABLES in xtask/src/tidy/layers.rs and to ARCHITECTURE.md",
        }
    }
}

/// A path from the crate's root, if it begins at a place that is known: `crate`, `self` or `super`.
fn absolute<'a>(here: &[&'a str], path: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = path.split("::").peekable();
    let mut module = match *parts.peek()? {
        "crate" => Vec::new(),
        "self" | "super" => here.to_vec(),
        _ => return None,
    };
    while let Some(step) = parts.next_if(|part| matches!(*part, "crate" | "self" | "super")) {
        if step == "super" {
            module.pop()?;
        }
    }
    module.extend(parts);
    Some(module)
}
