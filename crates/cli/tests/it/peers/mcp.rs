//! Servers of tools in another language.

use std::path::Path;

use serde_json::json;

use crate::test_folder::TestFolder;

const PAGE: &str = include_str!("../../../../../docs/tools.md");

/// A file of the page.
fn block(name: &str) -> String {
    let (_, rest) =
        PAGE.split_once(&format!(" {name}\n")).unwrap_or_else(|| panic!("the page has no {name}"));
    rest.split_once("\n```").unwrap_or_else(|| panic!("{name} has no end")).0.to_owned() + "\n"
}

/// L38 (as an MCP server): a server in Python, as the page has it, serves a tree.
#[test]
fn l38_a_server_in_python_is_a_tool() {
    let stage = TestFolder::new();
    for name in ["notes_server.py", "notes.txt", "shopping.yaml", "shopping.script.yaml"] {
        stage.file(name, &block(name));
    }
    let (file, folder) = (stage.folder().join("shopping.yaml"), stage.folder().canonicalize().unwrap());
    let server = format!("mcp:python3 {}", folder.join("notes_server.py").display());
    let folder = folder.display().to_string();
    let file: &Path = &file;
    let allowed = ["--read", &folder, "--allow-box", &server];
    let ended = stage.spinney(&[&["run", file.to_str().unwrap(), "--json"], &allowed[..]].concat());
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(ended.result()["output"], json!("Bread and milk."));
    assert!(ended.out.contains("buy bread\\nbuy milk"), "{}", ended.out);
}
