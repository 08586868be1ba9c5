//! Tools in another language: a script, and a server.

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

const SCRIPT: &str = r#"import json, sys
call = json.load(sys.stdin)
print(sys.argv[1:], call["text"].upper())
"#;

/// L38 (as a command tool): a script in Python is a tool of a tree.
#[test]
fn l38_a_script_in_python_is_a_tool() {
    let stage = TestFolder::new();
    stage.file("shout.py", SCRIPT);
    let call = json!({ "tool": "shout", "args": { "text": "so; echo $HOME `id`" } });
    let rules =
        format!("rules:\n  - {{ when: {{ turn: 1 }}, call: [{call}] }}\n  - {{ say: '{{{{ last }}}}' }}\n");
    stage.file("script.yaml", &rules);
    let tree = "name: test
goal: Try it.
budget: { cost_usd: 1 }
read: [.]
models:
  fast: { provider: scripted, script: script.yaml, context: 8000, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } }
tools:
  shout:
    description: Says a text in capitals.
    args: { type: object, properties: { text: { type: string } }, required: [text] }
    command: [python3, ./shout.py, \"{{ text }}\"]
agents:
  lead: { model: fast, tools: [shout] }
";
    let tree = stage.file("tree.yaml", tree);
    let folder = stage.folder().display().to_string();
    let ended = stage.spinney(&["run", &tree, "--json", "--read", &folder]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let expected = "exit code 0\n[stdout]\n['so; echo $HOME `id`'] SO; ECHO $HOME `ID`";
    assert_eq!(ended.result()["output"], json!(expected));
}
