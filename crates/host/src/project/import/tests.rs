//! Projects become tree files, hostile ones among them.

use std::fs;

use super::*;

/// A folder with these files, imported into a tree file in it.
fn import(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Import, ProjectImportError>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let import = Import::read(folder.path(), &folder.path().join("tree.yaml"));
    (folder, import)
}

fn left_out(import: &Import) -> Vec<String> {
    import.left_out.iter().map(|left| format!("{}: {}", left.from, left.what)).collect()
}

const REVIEWER: &str = "---\nname: reviewer\ndescription: Reviews: changes\ntools: Read, Grep, Bash(git diff:*), WebSearch, mcp__notes__search, mcp__far__find, mcp__gone__x\nmodel: opus\ncolor: red\nhooks: x\n---\nYou review.\n\n  - indented\n";

/// G10 is about accounts; this is what gets people there: agents, instructions and servers become a tree file that says for
/// each line where it came from, and what is not in it.
#[test]
fn agents_instructions_and_servers_become_a_tree_file() {
    let servers = r#"{ "mcpServers": {
        "notes": { "command": "python3", "args": ["./notes.py", "--x y"], "env": { "A": "${A}", "B": "secret" } },
        "lost": { "command": "./lost.sh" },
        "far": { "type": "http", "url": "https://example.org/mcp", "headers": { "Authorization": "Bearer ${FAR}", "X-Team": "secret" } },
        "old": { "type": "sse", "url": "https://example.org/sse" },
        "keyed": { "url": "https://example.org/mcp?key=secret" }
    } }"#;
    let codex =
        "model = \"no-such-model\"\napproval_policy = \"never\"\n[mcp_servers.more]\ncommand = \"more\"\n";
    let (_folder, import) = import(&[
        (".claude/agents/reviewer.md", REVIEWER),
        (".claude/agents/writer.md", "You write: \"well\".\n"),
        (".mcp.json", servers),
        ("notes.py", ""),
        (".codex/config.toml", codex),
        ("AGENTS.md", "# Rules\nUse tabs.\n"),
        ("CLAUDE.md", "@AGENTS.md\n@docs/more.md\nBe kind.\n"),
    ]);
    let import = import.unwrap();
    assert_eq!((import.agents, import.servers), (2, 3));
    let file = TreeFile::parse("tree.yaml", &import.tree).unwrap();
    let definition = &file.definition;
    let names: Vec<&str> = definition.roles.keys().map(|name| name.as_str()).collect();
    assert_eq!((names, definition.entry.as_str()), (vec!["lead", "reviewer", "writer"], "lead"));
    for line in [
        "      - search_files # .claude/agents/reviewer.md:4",
        "      - notes__search # .claude/agents/reviewer.md:4",
        "      - far__find # .claude/agents/reviewer.md:4",
        "    url: \"https://example.org/mcp\"",
        "    auth: { key_env: FAR }",
        "    network: [\"example.org:443\"] # the hosts of its servers",
        "  notes: # .mcp.json: mcpServers.notes",
        "    args: [\"./notes.py\", \"--x y\"]",
        "    env: [\"A\", \"B\"]",
        "    # AGENTS.md, CLAUDE.md",
        "      - reviewer: Reviews: changes",
        "      Use tabs.",
    ] {
        assert!(import.tree.lines().any(|written| written == line), "{line}\n{}", import.tree);
    }
    assert!(import.tree.contains("claude-opus") && !import.tree.contains("secret"), "{}", import.tree);
    let left = left_out(&import);
    for part in [
        "reviewer.md:4: that Bash is for `git diff:*` only",
        "reviewer.md:4: tool WebSearch",
        "reviewer.md:4: tool gone__x: its server",
        "reviewer.md:7: hooks",
        "CLAUDE.md:2: the text of docs/more.md",
        "mcpServers.notes: the value of B",
        "mcpServers.far: the header X-Team",
        "mcpServers.old: it speaks over server-sent events alone",
        "mcpServers.keyed: its URL has a part that may be a key",
        "mcpServers.lost: the server: ./lost.sh is not there",
        "config.toml: approval_policy",
        "config.toml: model: model no-such-model",
    ] {
        assert_eq!(left.iter().filter(|line| line.contains(part)).count(), 1, "{part}: {left:#?}");
    }
}

/// What a stranger may have put there: names and texts that look like YAML, keys, links out of the folder, files beyond
/// every bound. What comes out is a tree file, or an error.
#[test]
fn hostile_projects_become_tree_files_without_what_is_hostile() {
    let yaml = "---\nname: \"a\\n  entry: x\"\ndescription: \"]}{[ # !!binary &a *a\"\ntools: Read\nmodel: \"opus # x\"\n---\n---\nname: b\n...\n%YAML 9\n\u{feff}\u{2028}entry: evil\n\tbox: none\r\n\u{1b}[31m\u{85}{{ inputs.x }}\n";
    let indented = "---\nname: lead\n---\n    indented\nbox: none\n";
    let key = "---\nname: key\n---\nUse sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\n";
    let long = format!("---\nname: long\n---\n{}", "ü x ".repeat(40_000));
    let servers = r#"{ "mcpServers": { "x\n  y": { "command": "a" }, "z": { "command": "b\nbox: none" }, "w": { "command": "c", "args": [1] },
        "ok": { "command": "d #: \"'", "env": { "A B": "x", "C": 7 }, "trust\u0000": true } } }"#;
    let files = [
        (".claude/agents/a.md", yaml),
        (".claude/agents/b.md", indented),
        (".claude/agents/c.md", key),
        (".claude/agents/d.md", long.as_str()),
        (".claude/agents/e.md", "---\nname: empty\n---\n \n"),
        (".mcp.json", servers),
        (".codex/config.toml", "a = [[[["),
    ];
    let (folder, import) = import(&files);
    let import = import.unwrap();
    let file = TreeFile::parse("tree.yaml", &import.tree).unwrap();
    assert_eq!(file.definition.entry.as_str(), "lead-2");
    assert_eq!(file.definition.servers.len(), 1);
    assert!(!import.tree.contains("sk-ant") && !import.tree.contains('\u{1b}'), "{}", import.tree);
    assert!(import.tree.lines().all(|line| !line.starts_with("box:") && !line.starts_with("entry: evil")));
    let left = left_out(&import);
    assert!(left.iter().any(|line| line.contains("c.md") && line.contains("key")), "{left:#?}");
    assert!(left.iter().all(|line| !line.contains(char::is_control)), "{left:#?}");

    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("passwd"), "stolen").unwrap();
    std::os::unix::fs::symlink(outside.path().join("passwd"), folder.path().join("AGENTS.md")).unwrap();
    fs::write(folder.path().join("CLAUDE.md"), vec![b'x'; 2 * 1024 * 1024]).unwrap();
    for number in 0..100 {
        fs::write(folder.path().join(format!(".claude/agents/n{number}.md")), "You work.").unwrap();
    }
    let import = Import::read(folder.path(), &folder.path().join("tree.yaml")).unwrap();
    assert!(!import.tree.contains("stolen"));
    let left = left_out(&import);
    for part in ["AGENTS.md: it is a link", "CLAUDE.md: the whole file", "all but the first 64 files"] {
        assert!(left.iter().any(|line| line.contains(part)), "{part}: {left:#?}");
    }
    assert!(import.left_out.len() <= LEFT_OUT_MAX);
}

#[test]
fn a_folder_with_nothing_known_is_refused() {
    let (folder, none) = import(&[("README.md", "hello"), ("CLAUDE.md", "\n")]);
    assert!(matches!(none, Err(ProjectImportError::Nothing { .. })), "{none:?}");
    let missing = Import::read(&folder.path().join("none"), Path::new("tree.yaml"));
    assert!(matches!(missing, Err(ProjectImportError::Folder { .. })), "{missing:?}");
}
