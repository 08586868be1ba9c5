//! `spinney resume`: resumes a stored tree where it stopped and follows it, or prints its result if it has ended.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use spinney::ResumeError;
use spinney::tree::{Stopped, Stored, stored};
use spinney_host::control::steering::does_run;
use spinney_host::following::unpause_all;
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, find, name};
use spinney_host::home::tree_copies::ResumeSource;
use spinney_host::home::{tree_copies, workspaces};
use spinney_host::notify::Notifier;
use spinney_host::redaction::{RedactedJournal, redactor_of};
use spinney_host::tree_file::folders::given_grants;
use spinney_host::trust::allowed_hosts::AllowedHosts;
use spinney_host::trust::boxes::{AllowedBoxes, BoxNeeds};
use spinney_host::trust::egress::{self, Egress, InputValues};
use spinney_host::trust::foreign_home::{self, OldTree, OldTreeTrust};
use spinney_host::user::configuration::Configuration;
use spinney_host::user::variables::Variables;
use spinney_journal::{Journal, seal_of};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_terminal::{Terminal, out};
use spinney_view::TreeBeginning;
use spinney_view::boxes::WeakBox;
use spinney_view::continued::is_kept;
use spinney_view::wording::{counted, one_line, short_id};

use super::resume_elsewhere::{Elsewhere, Followed};
use super::run::{head, listen, note_boxes, open_home};
use crate::args;
use crate::args::HomeTrust;
use crate::display::Display;
use crate::error_text::in_words_of;
use crate::events::screen::{Screen, Style};
use crate::exit::Exit;
use crate::follow::{Follow, follow};
use crate::hint::{ContinuedBy, about, next_step};
use crate::interrupt::Interrupts;
use crate::permission::{agree_to_boxes, agree_to_egress, ask_about_changes, trust_home};
use crate::result::{Outcome, failed_unseen};

/// How often a tree is taken up because the process that ran it for this one ended. One that ends slowly counts again every
/// few seconds.
const TAKE_UPS_MAX: u32 = 1_000;

/// A tree that has ended prints its result again.
pub(super) async fn resume(path: &Path, args: &args::Resume, terminal: Terminal) -> Result<Exit> {
    let style = if args.json { Style::Json } else { Style::Lines };
    let display = Display::for_terminal(terminal, style, args.plain)
        .with_text(args.text)
        .as_chat(args.is_chat)
        .silent(args.is_silent);
    let (mut tree, mut left) = (None, None);
    for _ in 0..TAKE_UPS_MAX {
        let resumed = match take_up(path, args, style, display, &mut tree, left).await {
            Ok(Resumed::Runs(runs)) => return follow(*runs).await,
            Ok(Resumed::Elsewhere(followed)) => match followed.follow().await {
                Ok(Followed::Exit(exit)) => return Ok(exit),
                // The process that ran it is gone, so it continues here.
                Ok(Followed::OwnerGone(interrupts)) => {
                    left = Some(interrupts);
                    continue;
                }
                Err(error) => Err(error),
            },
            Ok(Resumed::HadEnded(exit)) => Ok(exit),
            Err(error) => Err(error),
        };
        return match resumed {
            Ok(exit) => Ok(exit),
            Err(error) => Err(failed_unseen(style, path, tree, error).await),
        };
    }
    bail!("the processes that had the journal open ended {TAKE_UPS_MAX} times, and it was never free")
}

enum Resumed {
    Runs(Box<Follow>),
    /// The process that has its journal open runs it.
    Elsewhere(Box<Elsewhere>),
    /// Its result was printed.
    HadEnded(Exit),
}

/// Finds a tree and runs it; `tree` is set as soon as it is known.
async fn take_up(
    path: &Path,
    args: &args::Resume,
    style: Style,
    display: Display,
    tree: &mut Option<TreeId>,
    left: Option<Interrupts>,
) -> Result<Resumed> {
    let journal = home::open_read_only(path)?;
    let known = find(path, &journal, args.tree.text()).await?;
    *tree = Some(known.tree);
    if known.state.is_over() {
        // Printing a result needs no write access; repairing its workspaces does.
        match home::open_writable_if_free(path).await {
            Ok(Some(owned)) => workspaces::mend(path, Arc::new(owned), known.tree).await,
            Ok(None) => {}
            Err(error) => {
                out::complain(&format!("the step files could not be checked: {}", in_words_of(&error)));
            }
        }
        return tell_end(path, &journal, known.tree, style).await.map(Resumed::HadEnded);
    }
    if let Some(kind) = seal_of(&journal, &known).await? {
        let next = next_step(path, known.tree, known.state).await;
        bail!("{}; {next}", Refusal::Sealed { kind });
    }
    if let by @ ContinuedBy::Exec = ContinuedBy::find(path).await {
        let resume = by.command(path, known.tree, known.state);
        bail!("this tree was started by `exec`: continue it with `{resume}`");
    }
    if args.is_chat && !is_kept(&journal, known.tree).await? {
        let resume = about(path, "resume", known.tree, &[]);
        bail!("this tree does not wait for you after its answers: continue it with `{resume}`");
    }
    let configuration = Configuration::read()?;
    let user = Variables::read(&configuration)?;
    let kept = tree_copies::read(path, &journal, known.tree).await?;
    let needs = BoxNeeds::of_stored(&journal, known.tree).await?;
    if kept.called.is_some() || !needs.is_empty() {
        let allowed = AllowedHosts::new(&args.allowed.allow_host, &configuration, &user);
        let tree = OldTree { home: path, journal: &journal, head: &known, source: kept.source.clone() };
        let allowed = agree(&tree, &kept, &needs, allowed, args.trusted.trust()).await?;
        let given = given_grants(&args.folders.given(), path)?;
        let boxes = AllowedBoxes::new(&args.boxes.allow_box, &configuration)
            .with_folders(&given)
            .with_hosts(&allowed);
        agree_to_boxes(&kept.text, &needs, &boxes)?;
    }
    drop(journal);
    let Some(journal) = home::open_writable_if_free(path).await? else {
        let place = TreeInHome { home: path, tree: known.tree };
        return elsewhere(place, args, style, display, left).await;
    };
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let listening = listen(path)?;
    let past = journal.head(known.tree).await?.map_or(Seq(0), |head| head.seq);
    let name = name(journal.as_ref(), known.tree).await?;
    let scripted = kept.scripted.clone();
    note_weak_boxes(journal.as_ref(), known.tree).await?;
    let boxes = AllowedBoxes::new(&args.boxes.allow_box, &configuration);
    kept.boxed.prepare(path, needs.permissions(&user, &boxes));
    ask_about_changes(&kept.boxed.servers);
    let drivers = kept.drivers(&user)?;
    let open = open_home(path, Arc::clone(&journal), display);
    // Before anything is called: from then on an interrupt stops cleanly.
    let interrupts = match left {
        Some(interrupts) => interrupts.stopping(Arc::clone(open.home())),
        None => Interrupts::listen(Arc::clone(open.home()), path, known.tree)?,
    };
    let tree = match open.resume_own(known.tree, drivers).await {
        Ok(tree) => tree,
        // Another process finished it meanwhile.
        Err(ResumeError::Ended { .. }) => {
            return tell_end(path, journal.as_ref(), known.tree, style).await.map(Resumed::HadEnded);
        }
        Err(ResumeError::Journal(fault)) => return Err(fault.into()),
        Err(ResumeError::Shutdown) => return Err(Stopped::Shutdown.into()),
        Err(error) => return Err(error.into()),
    };
    if args.unpause {
        unpause_all(&tree).await;
    }
    let what =
        format!("{} · tree {} · resumed at event {}", one_line(&name, 60), short_id(known.tree), past.0);
    // The tree runs: if the output has no reader, the follower notices and stops the tree cleanly.
    let _ = head(style, display, &what, &scripted);
    let notifier = Notifier::watch(args.told.or(configuration.notify()).as_ref(), &tree, past, &name, path);
    let path = path.to_owned();
    let stays = false;
    let follow = Follow { open, path, tree, style, past, listening, interrupts, display, notifier, stays };
    Ok(Resumed::Runs(Box::new(follow)))
}

/// Says which commands of a stored tree run in a weaker box, or in none.
pub(super) async fn note_weak_boxes(journal: &dyn Journal, tree: TreeId) -> Result<()> {
    let beginning = TreeBeginning::read(journal, tree).await?;
    note_boxes(&beginning.definition.as_deref().map(WeakBox::all).unwrap_or_default());
    Ok(())
}

/// Asks before a tree sends keys again, or runs commands in weaker boxes.
async fn agree(
    tree: &OldTree<'_>,
    kept: &ResumeSource,
    needs: &BoxNeeds,
    mut allowed: AllowedHosts,
    trust: HomeTrust,
) -> Result<AllowedHosts> {
    let egress = kept.called.as_ref();
    let egress = egress.map(|called| Egress::all(&called.file, &called.models, InputValues::Known));
    let egress = egress.unwrap_or_default();
    let does: Vec<String> = egress::sent(&egress).into_iter().chain(needs.lines()).collect();
    let mark = match does.is_empty() {
        true => foreign_home::mark_of(tree).await?,
        false => match foreign_home::for_old_tree(tree, &does).await? {
            OldTreeTrust::AsLeft(mark) => mark,
            OldTreeTrust::Ask(question) => trust_home(*question, trust)?,
        },
    };
    allowed.add_remembered(mark.as_ref());
    agree_to_egress(&kept.text, &egress, &allowed)?;
    Ok(allowed)
}

/// Lets the process that has the journal open run the tree.
async fn elsewhere(
    place: TreeInHome<'_>,
    args: &args::Resume,
    style: Style,
    display: Display,
    left: Option<Interrupts>,
) -> Result<Resumed> {
    let TreeInHome { home, tree } = place;
    if does_run(place).await
        && let Err(locked) = home::open_writable(home).await
    {
        let attach = about(home, "attach", tree, &[]);
        let context = format!("tree {} is running; `{attach}` follows it", short_id(tree));
        return Err(anyhow::Error::new(locked).context(context));
    }
    let elsewhere = Elsewhere::ask(place, args, style, display, left).await?;
    Ok(Resumed::Elsewhere(Box::new(elsewhere)))
}

/// Prints the result of an ended tree, as the process that ended it did or would have.
async fn tell_end(path: &Path, journal: &dyn Journal, tree: TreeId, style: Style) -> Result<Exit> {
    let journal = &RedactedJournal::over(journal, redactor_of(journal, tree).await?);
    // No event is printed, but they give the duration.
    let mut screen = Screen::new(tree, style).from(Seq(u64::MAX));
    screen.show_stored(journal).await?;
    let Stored { snapshot, hash } = stored(journal, tree).await?;
    let outcome = Outcome::read(&snapshot, Some(hash), journal, TreeInHome { home: path, tree }).await;
    let outcome = outcome.took(screen.elapsed_ms());
    match style {
        Style::Json => outcome.write_json()?,
        Style::Lines | Style::Log => {
            let (name, events) =
                (one_line(&name(journal, tree).await?, 60), counted(snapshot.seq.0, "event"));
            out::line(&format!("{name} · tree {} · already ended after {events}\n", short_id(tree)))?;
            outcome.write_plain()?;
        }
    }
    Ok(outcome.exit())
}
