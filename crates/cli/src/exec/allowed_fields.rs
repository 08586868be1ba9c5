//! The names that the user allows a program to send although their cost has no bound: asking for one at the terminal, if
//! this process has it, and saving a yes in the user's configuration.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use spinney_host::user::draft::Saved;
use spinney_host::user::settings::Setting;
use spinney_server::gateway::AskPerson;
use spinney_server::gateway::wire::RefusedName;
use spinney_terminal::out;
use spinney_terminal::question::{self, YesOrNo};

/// Asks at the terminal, if the program does not use it, and saves a yes for this program.
pub(crate) fn asked_at_terminal(program: &str, has_terminal: bool) -> Option<AskPerson> {
    if !has_terminal || !io::stdin().is_terminal() {
        return None;
    }
    let program = program.to_owned();
    Some(Arc::new(move |refused| {
        let program = program.clone();
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || ask(&program, &refused)).await;
            asked.unwrap_or(false)
        })
    }))
}

fn ask(program: &str, RefusedName { name, why }: &RefusedName) -> bool {
    out::note(&format!("spinney: {program} sends `{name}`: {why}."));
    let is_yes = question::ask(&format!(
        "spinney: allow `{name}` for {program} from now on? The budget does not bound its cost."
    )) == YesOrNo::Yes;
    if is_yes {
        match Setting::AllowField.add(&[program.to_owned(), name.to_string()]) {
            Ok(Saved { path, .. }) => out::note(&format!("spinney: saved in {}", path.display())),
            Err(error) => out::note(&format!("spinney: allowed for this run; {error:#}")),
        }
    }
    is_yes
}
