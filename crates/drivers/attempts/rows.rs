use crate::scene::Scene;
use std::process::ExitCode;
pub(crate) const STOPPED: i32 = 7;
#[derive(Debug)]
pub(crate) enum Stop { X }
impl Stop { pub(crate) fn explains(&self, _: &str) -> bool { true } }
pub(crate) struct Row { pub(crate) name: String }
impl Row { pub(crate) fn stop(&self, _: bool) -> Stop { Stop::X } }
pub(crate) fn all() -> Vec<Row> { vec![] }
pub(crate) fn attempt(_: &str, _: &Scene) -> ExitCode { ExitCode::SUCCESS }
pub(crate) fn bomb(_: &str) -> ExitCode { ExitCode::SUCCESS }
