//! `program` of an agent in a tree file: what it makes of the role, and what is refused with its place.

use spinney::TreeFile;
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Allow, BoxWalls, KnownProgram, OnLow, ProgramCommand, WrapUp};

fn file(coder: &str) -> String {
    format!(
        "name: team\ngoal: Go.\nmodels: {{ m: {{ provider: scripted, script: none }} }}\nagents:\n  coder: {{ {coder} }}\n  lead: {{ model: m, tools: [spawn_agent] }}\nentry: lead\n"
    )
}

fn errors(coder: &str) -> Vec<String> {
    let parsed = TreeFile::parse("tree.yaml", &file(coder));
    let errors = parsed.err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    errors.lines().filter(|line| line.starts_with("tree.yaml")).map(str::to_owned).collect()
}

/// G29 (what a file says): a program is a role without turns, with the box, the ceilings and the waiting of its keys.
#[test]
fn g29_a_program_is_a_role_without_turns() {
    let text = file(
        "program: claude, prompt: Write., network: [a.org], box: { processes: 64 }, limits: { max_output_files: 3 }, budget: { cost_usd: 0.5, timeout: 5m, halt_wait: 20s }",
    );
    let definition = TreeFile::parse("tree.yaml", &text).unwrap().definition;
    let role = definition.roles.get("coder").unwrap();
    let program = role.program.as_deref().unwrap();
    assert_eq!(program.command, ProgramCommand::Known(KnownProgram::Claude));
    assert_eq!((program.prompt.as_str(), program.halt_wait_ms()), ("Write.", 20_000));
    assert_eq!((role.sandbox().processes, role.sandbox().walls), (Some(64), BoxWalls::Whole));
    assert_eq!(role.outputs().files_max, 3);
    assert!(role.turns.is_none());
    assert_eq!(role.caps.spawn, Allow::only(["coder".parse().unwrap()]));
    assert_eq!(role.caps.tools, Allow::only([]));
    assert_eq!(role.caps.network.to_string(), "`a.org`");
    let budget = &role.budget;
    assert_eq!((budget.limit.get(Resource::Cost), budget.timeout_ms), (Some(500_000_000), Some(300_000)));
    assert_eq!((budget.on_low.clone(), budget.wrap_up), (Some(OnLow::Shrink), Some(WrapUp::Off)));
    let text = file("program: [agent, --task, '{{ goal }}']");
    let definition = TreeFile::parse("tree.yaml", &text).unwrap().definition;
    let program = definition.roles.get("coder").unwrap().program.clone().unwrap();
    assert_eq!(program.command.shown(), "agent --task {{ goal }}");
    assert_eq!(program.halt_wait_ms(), 600_000);
}

/// What a user allows is one command: words are never read as other words.
#[test]
fn programs_with_other_words_look_different() {
    let shown = |words: &str| {
        let text = file(&format!("program: {words}"));
        let definition = TreeFile::parse("tree.yaml", &text).unwrap().definition;
        definition.roles.get("coder").unwrap().program.clone().unwrap().command.shown()
    };
    assert_eq!(shown("[/bin/agent, 'a b', '{{ goal }}']"), "/bin/agent 'a b' {{ goal }}");
    assert_eq!(shown("[/bin/agent, a, b, '{{ goal }}']"), "/bin/agent a b {{ goal }}");
    assert_eq!(shown(r#"[/bin/agent, "it's", "", '{{goal}}']"#), r"/bin/agent 'it'\''s' '' {{ goal }}");
}

/// G29 (what a file says): a task fills one word, and what only agents with turns have is refused where it is.
#[test]
fn g29_what_is_no_program_is_refused_where_it_is() {
    assert_eq!(errors("program: codex"), [""; 0]);
    for (keys, says) in [
        ("program: cluade", "unknown program `cluade`"),
        ("program: [agent]", "no word of the command is `{{ goal }}`"),
        ("program: [agent, '--task={{ goal }}']", "`{{ goal }}` fills exactly one word, alone"),
        ("program: [sh, -c, '{{ goal }}']", "a shell would run"),
        ("program: [agent, '{{ goal }}', '{{ key }}']", "`{{ key }}` has no value here"),
        ("program: 5", "the name of a program, or a list with `{{ goal }}`"),
        ("program: claude, model: m", "an agent that is a program has no `model`"),
        ("program: claude, tools: [read_file]", "an agent that is a program has no `tools`"),
        (
            "program: claude, limits: { timeout: 5m }",
            "has no `limits.timeout`: write `budget: { timeout: … }`",
        ),
        ("program: claude, budget: { on_low: { downgrade: m } }", "a program chooses its own models"),
        ("model: m, budget: { halt_wait: 5m }", "only an agent that is a program waits at its ceiling"),
        ("prompt: Go.", "`model` is missing: write the name of a model, or a `program`"),
    ] {
        let errors = errors(keys);
        assert!(errors.len() == 1 && errors[0].contains(says), "{keys}: {errors:?}");
        assert!(errors[0].starts_with("tree.yaml:5:"), "{errors:?}");
    }
}

/// Names of the file's models cannot be those that programs call, whose prices are another's.
#[test]
fn models_beside_a_program_do_not_begin_like_those_that_it_calls() {
    let text = file("program: claude")
        .replace("models: { m:", "models: { anthropic/m: { provider: scripted, script: none }, m:");
    let error = TreeFile::parse("tree.yaml", &text).unwrap_err().to_string();
    assert!(error.contains("names of models cannot begin like those that it calls"), "{error}");
}
