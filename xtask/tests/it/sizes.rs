//! Rules `file-lines`, `function-lines`, `struct-fields`, `parameters` and `nesting`.

use super::{NOTHING, found};

const PATH: &str = "crates/store/src/journal.rs";

fn found_in(rule: &str, text: &str) -> Vec<String> {
    found(rule, &[(PATH, text)])
}

#[test]
fn a_long_file_is_found() {
    let text = "// line\n".repeat(501);
    assert_eq!(
        found_in("file-lines", &text),
        ["crates/store/src/journal.rs:1: file-lines: `journal.rs` has 501 lines, at most 500; find the \
          second idea in it and give it a file of its own"]
    );
}

#[test]
fn tests_do_not_lengthen_a_file() {
    let code = "// line\n".repeat(500);
    let tests = "// line\n".repeat(100);
    assert_eq!(found_in("file-lines", &format!("{code}#[cfg(test)]\nmod tests {{\n{tests}}}\n")), NOTHING);
    let long = code + &tests;
    for path in [
        "crates/store/tests/it/journal.rs",
        "crates/store/src/journal/tests.rs",
        "crates/store/src/journal_tests.rs",
        "crates/store/benches/append.rs",
    ] {
        assert_eq!(found("file-lines", &[(path, &long)]), NOTHING);
    }
}

#[test]
fn code_that_only_tests_leave_out_counts() {
    let code = "// line\n".repeat(500);
    let text = format!("#[cfg(not(test))]\nmod live {{\n{code}}}\n");
    assert_eq!(found_in("file-lines", &text).len(), 1);
}

#[test]
fn a_long_function_is_found() {
    let function = |lines| format!("/// Opens.\nfn open() {{\n{}}}\n", "    step();\n".repeat(lines));
    assert_eq!(
        found_in("function-lines", &function(69)),
        ["crates/store/src/journal.rs:2: function-lines: `open` has 71 lines, at most 70; give its steps \
          names and functions of their own"]
    );
    assert_eq!(found_in("function-lines", &function(68)), NOTHING);
}

#[test]
fn a_wide_struct_is_found() {
    let wide = |fields| format!("struct Head({});\n", "u8,".repeat(fields));
    assert_eq!(
        found_in("struct-fields", &wide(13)),
        ["crates/store/src/journal.rs:1: struct-fields: `Head` has 13 fields, at most 12; find the \
          fields that change together and make them a struct"]
    );
    assert_eq!(found_in("struct-fields", &wide(12)), NOTHING);
}

#[test]
fn a_sixth_parameter_is_found() {
    let six = "impl Journal { fn append(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {} }";
    assert_eq!(
        found_in("parameters", six),
        ["crates/store/src/journal.rs:1: parameters: `append` has 6 parameters, at most 5; group those \
          that travel together into a struct"]
    );
    let five = "impl Journal { fn append(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} }";
    assert_eq!(found_in("parameters", five), NOTHING);
    let of_a_trait = "impl Port for Journal { fn append(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {} }";
    assert_eq!(found_in("parameters", of_a_trait), NOTHING);
}

#[test]
fn a_fifth_level_of_nesting_is_found() {
    let text = "fn walk() {
        for a in b {
            while c {
                match d {
                    _ => loop {
                        steps.map(|step| {
                            step
                        })
                    },
                }
            }
        }
    }";
    assert_eq!(
        found_in("nesting", text),
        ["crates/store/src/journal.rs:6: nesting: `walk` has 5 levels of nesting, at most 4; return \
          early, or move the inner part to a function"]
    );
}

#[test]
fn chains_and_short_closures_and_inner_functions_do_not_nest() {
    let text = "fn walk() {
        for a in b {
            for c in d {
                for e in f {
                    if a { one() } else if c { two() } else if e { three() } else { each(|x| x + 1) }
                    fn inner() { loop {} }
                }
            }
        }
    }";
    assert_eq!(found_in("nesting", text), NOTHING);
}
