//! Texts that are not scripts: each is refused with its place and what to do.

use proptest::prelude::*;
use spinney_drivers::scripted::{MARKS_MAX, SCRIPT_BYTES_MAX, Script, ScriptError};
use spinney_kernel::port::model::Model;

fn refused(text: &str) -> String {
    Script::parse("x.script.yaml", text).unwrap_err().to_string()
}

#[test]
fn unknown_keys_are_named_with_their_place() {
    let table = [
        (
            "rules:\n  - when: { turn: 1 }\n    sya: hi",
            "3:5: unknown key `sya`: write one of `when`, `think_ms`, `chunk_ms`, `think`, `say`, `call`, `usage`, `fail`, `hang`, `cut`",
        ),
        ("rulez: []", "1:1: unknown key `rulez`: write one of `lost`, `rules`, `tools`"),
        (
            "rules: [{ when: { trun: 1 }, say: hi }]",
            "1:19: unknown key `trun`: write one of `agent`, `turn`, `goal_contains`, `last_contains`, `tool_result_contains`, `depth`, `summary`, `of_tool`, `wrap_up`",
        ),
        ("rules: [{ say: hi, usage: { in: 1 } }]", "1:29: unknown key `in`: write one of `input`, `output`"),
        (
            "rules: [{ fail: { kind: server, time: 1 } }]",
            "1:33: unknown key `time`: write one of `kind`, `times`, `retry_after_ms`",
        ),
        (
            "rules: [{ call: [{ tool: t, arg: {} }] }]",
            "1:29: unknown key `arg`: write one of `tool`, `args`, `id`",
        ),
        (
            "tools:\n  t: { say: hi, repeat: true }",
            "2:17: unknown key `repeat`: write one of `description`, `repeatable`, `think_ms`, `say`, `error`, `fail`, `hang`",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(refused(text), format!("x.script.yaml:{expected}"), "{text}");
    }
}

#[test]
fn wrong_values_are_named_with_their_place() {
    let table = [
        ("", "1:1: the script is empty: give it `rules` or `tools`"),
        ("rules: []", "1:1: the script is empty: give it `rules` or `tools`"),
        ("rules: {}", "1:8: expected a list"),
        ("rules: [hi]", "1:9: expected keys with values"),
        ("rules: [{ say: [hi] }]", "1:16: expected a text"),
        ("rules: [{ say: hi, think_ms: soon }]", "1:30: expected a whole number, 0 or more"),
        ("rules: [{ say: hi, think_ms: -1 }]", "1:30: expected a whole number, 0 or more"),
        (
            "rules: [{ say: hi, think_ms: 99999999999999 }]",
            "1:9: rule 1: `think_ms` is 99999999999999, at most 31536000000",
        ),
        ("rules: [{ say: hi, hang: maybe }]", "1:26: invalid boolean (true or false expected)"),
        (
            "rules: [{ fail: { kind: flood } }]",
            "1:25: unknown value `flood`: write one of `rate_limit`, `server`, `overloaded`, `timeout`, `auth`, `out_of_credit`, `invalid`, `context_too_long`, `content_filter`, `declined`, `cut`",
        ),
        ("rules: [{ fail: { times: 2 } }]", "1:19: the key `kind` is missing"),
        ("rules: [{ call: [{ args: {} }] }]", "1:20: the key `tool` is missing"),
        (
            "rules: [{ say: hi, usage: { input: 9999999999999999 } }]",
            "1:9: rule 1: `usage`: tokens of 9999999999999999 is above the largest amount 1000000000000000: check the unit (cost is in nano-USD)",
        ),
        (
            "rules: [{ when: { agent: The Lead }, say: hi }]",
            "1:26: `The Lead` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit",
        ),
        (
            "lost: maybe\nrules: [{ say: hi }]",
            "1:7: unknown value `maybe`: write one of `presumed`, `repeatable`",
        ),
        (
            "tools: { a b: { say: hi } }",
            "1:10: `a b` is not a valid tool name: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit",
        ),
        ("tools:\n  t: { say: hi }\n  t: { say: ho }", "3:3: duplicate key `t`"),
        ("rules: [{ say: hi }", "1:8: unclosed bracket '['"),
        ("rules: [{ say: *nobody }]", "1:16: reference to unknown value"),
    ];
    for (text, expected) in table {
        assert_eq!(refused(text), format!("x.script.yaml:{expected}"), "{text}");
    }
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let table = [
        (
            "rules:\n  - say: hi\n  - think_ms: 5",
            "3:5: rule 2: the rule answers nothing: give it `say`, `call` or `hang`",
        ),
        (
            "rules: [{ fail: { kind: server, times: 1 } }]",
            "1:9: rule 1: the rule answers nothing: give it `say`, `call` or `hang`",
        ),
        (
            "rules: [{ fail: { kind: server }, hang: true }]",
            "1:9: rule 1: the rule always fails and never hangs: say how many `times` it fails, or drop `hang`",
        ),
        (
            "rules: [{ hang: true, call: [{ tool: t }] }]",
            "1:9: rule 1: a rule that hangs never calls: drop `hang` or `call`",
        ),
        ("tools: { t: {} }", "1:13: tool `t`: the tool answers nothing: give it `say`, `error` or `hang`"),
        (
            "tools: { t: { fail: { kind: server, times: 1 } } }",
            "1:13: tool `t`: the tool answers nothing: give it `say`, `error` or `hang`",
        ),
        (
            "tools: { t: { say: a, error: b } }",
            "1:13: tool `t`: the tool answers twice: keep one of `say`, `error` and `hang`",
        ),
        (
            "tools: { t: { say: a, hang: true } }",
            "1:13: tool `t`: the tool answers twice: keep one of `say`, `error` and `hang`",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(refused(text), format!("x.script.yaml:{expected}"), "{text}");
    }
}

#[test]
fn bad_templates_are_named_with_their_rule() {
    let table = [
        (
            "rules:\n  - say: fine\n  - say: '{{ goal'",
            "3:10: rule 2: `say`: syntax error: unexpected end of input, expected end of variable block",
        ),
        (
            "rules: [{ say: '{{ gaol }}' }]",
            "1:16: rule 1: `say`: unknown name `gaol`: a template knows `agent`, `goal`, `turn`, `path`, `last`, `remaining`",
        ),
        ("rules: [{ say: '{% if %}' }]", "1:16: rule 1: `say`: syntax error: unexpected end of block"),
        (
            "rules:\n  - call:\n      - { tool: t }\n      - { tool: t, args: { a: ['{{ args }}'] } }",
            "2:5: rule 1: `call` 2: unknown name `args`: a template knows `agent`, `goal`, `turn`, `path`, `last`, `remaining`",
        ),
        (
            "rules: [{ call: [{ tool: t, args: '{{' }] }]",
            "1:9: rule 1: `call` 1: syntax error: unexpected end of input, expected expression",
        ),
        (
            "tools: { t: { say: '{{ goal }}' } }",
            "1:20: tool `t`: `say`: unknown name `goal`: a template knows `args`, `agent`, `attempt`, `key`",
        ),
        (
            "tools: { t: { error: '{{ ' } }",
            "1:22: tool `t`: `error`: syntax error: unexpected end of input, expected expression",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(refused(text), format!("x.script.yaml:{expected}"), "{text}");
    }
}

/// What could build a value much larger than its parts is refused before anything is built, with its place.
#[test]
fn templates_that_multiply_sizes_are_refused_when_they_are_read() {
    let side_by_side = "write the parts side by side, as in `{{ a }}{{ b }}`";
    let only = "is not part of the scripts' language: use `if`, `for` and expressions";
    let table = [
        (
            "{{ [[1]*100000000]*100000000 }}",
            "1 column 4 of the template: `*` is not part of the scripts' language: it repeats texts and lists; write the number".to_owned(),
        ),
        (
            "a\n{{ 'a' * 1000000000 }}",
            "2 column 4 of the template: `*` is not part of the scripts' language: it repeats texts and lists; write the number".to_owned(),
        ),
        ("{{ 10 ** 9 }}", "1 column 4 of the template: `**` is not part of the scripts' language: write the number".to_owned()),
        ("{{ goal ~ goal }}", format!("1 column 4 of the template: `~` is not part of the scripts' language: {side_by_side}")),
        (
            "{{ goal + goal }}",
            format!("1 column 4 of the template: `+` needs a number written on one side, as in `turn + 1`; for texts {side_by_side}"),
        ),
        ("{% set x = 1 %}", format!("1 column 4 of the template: `set` {only}")),
        ("{% set x %}{{ goal }}{% endset %}", format!("1 column 4 of the template: `set` {only}")),
        ("{% with x = [goal, goal] %}{{ x }}{% endwith %}", format!("1 column 4 of the template: `with` {only}")),
        ("{% filter upper %}{{ goal }}{% endfilter %}", format!("1 column 4 of the template: `filter` {only}")),
        ("{% autoescape 'json' %}{% endautoescape %}", format!("1 column 4 of the template: `autoescape` {only}")),
        (
            "{{ range(100000) }}",
            "1 column 4 of the template: nothing can be called, except `range` in a loop".to_owned(),
        ),
        (
            "{% for a in [[goal, goal]] %}{% for b in [[a, a]] %}{% endfor %}{% endfor %}",
            "1 column 13 of the template: a loop iterates over `range(…)`, a value, or a list of constants".to_owned(),
        ),
        ("{{ {'a': 1} }}", "1 column 4 of the template: maps are not part of the scripts' language: write JSON as text".to_owned()),
        ("{{ (1, 2) }}", "1 column 4 of the template: tuples are not part of the scripts' language: write a list".to_owned()),
        (
            "{{ goal|indent(1000000) }}",
            "1 column 9 of the template: unknown filter `indent`: a script knows `abs`, `count`, `d`, `default`, `first`, `int`, `join`, `last`, `length`, `lower`, `replace`, `string`, `tojson`, `trim`, `upper`".to_owned(),
        ),
        (
            "{{ goal is divisibleby(0) }}",
            "1 column 12 of the template: unknown test `divisibleby`: a script knows `boolean`, `defined`, `endingwith`, `even`, `false`, `integer`, `mapping`, `none`, `number`, `odd`, `sequence`, `startingwith`, `string`, `true`, `undefined`".to_owned(),
        ),
        ("{{ goal|replace(*[goal]) }}", "1 column 18 of the template: arguments cannot be spread: write them one by one".to_owned()),
    ];
    let mut wrong = Vec::new();
    for (template, expected) in table {
        let quoted = template.replace('\n', "\\n").replace('"', "\\\"");
        let error = refused(&format!("rules: [{{ say: \"{quoted}\" }}]"));
        wrong.extend(
            (error != format!("x.script.yaml:1:16: rule 1: `say`: line {expected}")).then_some(error),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn sizes_and_depths_are_bounded() {
    let long = format!("rules: [{{ say: {} }}]", "x".repeat(SCRIPT_BYTES_MAX));
    let bytes = long.len();
    let error = Script::parse("x.script.yaml", &long).unwrap_err();
    assert_eq!(error, ScriptError::TooLarge { name: "x.script.yaml".to_owned(), bytes });
    assert_eq!(error.to_string(), format!("x.script.yaml: the script has {bytes} bytes, at most 1048576"));

    let deep = format!("rules: [{{ call: [{{ tool: t, args: {}{} }}] }}]", "[".repeat(200), "]".repeat(200));
    assert_eq!(refused(&deep), "x.script.yaml:1:94: the script is nested more than 64 deep");
    let mut bomb = "rules:\n  - call:\n      - tool: t\n        args:\n          - &a0 [x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 8].join(", ");
        bomb.push_str(&format!("          - &a{level} [{aliases}]\n"));
    }
    assert_eq!(refused(&bomb), "x.script.yaml:9:38: aliases stand for more than 10000 values");
}

#[test]
fn no_template_is_deep_enough_to_break_its_compiler() {
    let many = 100_000;
    let chains = [
        format!("{{{{ 1{} }}}}", "+1".repeat(many)),
        format!("{{{{ 1{} }}}}", "|abs".repeat(many)),
        format!("{{{{ goal{} }}}}", ".a".repeat(many)),
        format!("{{{{ {}1 }}}}", "not ".repeat(many)),
        format!("{{{{ {}1 }}}}", "-".repeat(many)),
        format!("{{{{ {}1{} }}}}", "(".repeat(many), ")".repeat(many)),
        format!("{{{{ 1{} }}}}", "and 1".repeat(many)),
        format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(many / 2)),
        format!("{{% if turn %}}{}{{% endif %}}", "{% elif turn %}".repeat(many / 2)),
        format!("{{{{ '}}}}'{} }}}}", "~1".repeat(many)),
    ];
    for chain in chains {
        let error = refused(&format!("rules: [{{ say: \"{chain}\" }}]"));
        assert!(error.ends_with("operators and other marks, at most 500"), "{error}");
    }
    let most = format!("rules: [{{ say: '{{{{ goal{} }}}}' }}]", ".a".repeat(MARKS_MAX - 4));
    assert!(Script::parse("x", &most).is_ok());
    let prose = format!("rules: [{{ say: '{}' }}]", "Many a mark; no markup. ".repeat(1_000));
    assert!(Script::parse("x", &prose).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        drop(Script::parse("x", &text));
    }

    #[test]
    fn no_likely_text_makes_the_parser_panic(words in proptest::collection::vec(word(), 0..40)) {
        drop(Script::parse("x", &words.concat()));
    }

    #[test]
    fn no_rule_makes_the_parser_panic(say in "[{}%# a-z|()'\"+*/~.\\-\\[\\]]{0,40}", key in key()) {
        let quoted = say.replace('\'', "''");
        let text = format!("rules:\n  - {key}: '{quoted}'\n    say: '{quoted}'\n");
        if let Ok(script) = Script::parse("x", &text) {
            prop_assert_eq!(script.model().tokens("four"), 1);
        }
    }
}

/// Pieces that scripts are made of.
fn word() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "rules:",
        "tools:",
        "lost:",
        "when:",
        "say:",
        "call:",
        "fail:",
        "usage:",
        "kind:",
        "args:",
        "tool:",
        "hang:",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        " ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "'",
        "\"",
        "{{ goal }}",
        "{% for a in b %}",
        "&a",
        "*a",
        "<<",
        "|",
        ">",
        "!!binary",
        "? ",
        "#",
        "server",
        "hi",
        "1",
        "-1",
        "1e999",
        "true",
        "~",
        ": ",
        "---\n",
        "\t",
        "é",
        "\u{feff}",
    ])
}

fn key() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["when", "think_ms", "call", "usage", "fail", "hang", "sya"])
}
