//! `network` of an agent in a tree file: what it grants, and what is refused with its place.

use spinney::TreeFile;
use spinney::tree_file::Severity;
use spinney_kernel::definition::Network;

fn file(lead: &str, helper: &str) -> String {
    format!(
        "name: net\ngoal: Go.\nmodels: {{ m: {{ provider: scripted, script: none }} }}\nagents:\n  lead: {{ model: m, tools: [spawn_agent]{lead} }}\n  helper: {{ model: m{helper} }}\nentry: lead\n"
    )
}

fn errors(lead: &str) -> Vec<String> {
    let parsed = TreeFile::parse("tree.yaml", &file(lead, ""));
    parsed.err().iter().map(ToString::to_string).collect()
}

/// G26 (what a file says): a list of hosts, and none where there is no list, whatever the parent has.
#[test]
fn g26_agents_have_the_hosts_that_their_own_list_names() {
    let text = file(", network: ['*.example.org', 'DB.example.net:5432', '[2001:db8::1]:443']", "");
    let definition = TreeFile::parse("tree.yaml", &text).unwrap().definition;
    let network = |role: &str| definition.roles.get(role).unwrap().caps.network.to_string();
    assert_eq!(network("lead"), "`db.example.net:5432`, `[2001:db8::1]:443`, `*.example.org`");
    assert_eq!(network("helper"), "no host");
    assert_eq!(definition.roles.get("helper").unwrap().caps.network, Network::Denied);
}

/// G26 (what a file says): what is not a host, listed twice, covered or too much is refused where it is.
#[test]
fn g26_lists_of_hosts_are_checked_where_they_are() {
    assert!(errors(", network: []").is_empty());
    let many: Vec<String> = (0..65).map(|at| format!("a{at}.example.org")).collect();
    for (list, says) in [
        ("['https://a.org']".to_owned(), "a host such as `api.example.org`"),
        ("['*']".to_owned(), "a host such as `api.example.org`"),
        ("[a.org, b.org, A.org]".to_owned(), "`a.org` is listed twice"),
        ("['*.a.org', 'b.a.org:80']".to_owned(), "`b.a.org:80` is already covered by `*.a.org`"),
        (format!("[{}]", many.join(", ")), "65 hosts are more than 64"),
    ] {
        let errors = errors(&format!(", network: {list}"));
        assert!(errors.len() == 1 && errors[0].contains(says), "{list}: {errors:?}");
        assert!(errors[0].starts_with("tree.yaml:5:"), "{errors:?}");
    }
}

/// G26 (what a file says): a child with hosts that its parent lacks could never start, and `check` says so.
#[test]
fn g26_a_child_beyond_its_parents_hosts_is_found_before_a_start() {
    let found = |lead: &str, helper: &str| {
        let file = TreeFile::parse("tree.yaml", &file(lead, helper)).unwrap();
        let problems = file.check(&file.definition);
        let about = problems.into_iter().filter(|problem| problem.severity != Severity::Note);
        about.map(|problem| problem.what.to_string()).collect::<Vec<_>>()
    };
    assert!(found(", network: ['*.a.org']", ", network: ['b.a.org:443']").is_empty());
    let beyond = found(", network: [a.org]", ", network: [a.org, b.org]").join("\n");
    assert!(beyond.contains("`lead` may not connect to `b.org`"), "{beyond}");
}
