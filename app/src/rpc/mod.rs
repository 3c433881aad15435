//! Server functions: who asks, through the portal, to what a page shows. They only read; what changes something goes
//! through the API or a plain form post, both with a key.

#![cfg_attr(
    feature = "ssr",
    expect(
        clippy::unused_async,
        reason = "a server function is async, whether or not its answer is at hand"
    )
)]

pub mod duplicates;
pub mod form;
pub mod hooks;
pub mod lists;
pub mod notifications;
pub mod orphans;
pub mod requests;
pub mod shell;
pub mod team;

use domain::problem::{Problem, ProblemKind};
use leptos::server_fn::{
    codec::JsonEncoding,
    error::{FromServerFnError, ServerFnErrorErr},
};
use serde::{Deserialize, Serialize};

/// Why a page cannot show what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The portal said no.
    Problem(Problem),
    /// No answer came, or none that can be read.
    NoAnswer,
}

/// What a server function answers.
pub type Answer<T> = Result<T, Refusal>;

impl FromServerFnError for Refusal {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(_: ServerFnErrorErr) -> Self {
        Self::NoAnswer
    }
}

impl Refusal {
    /// Whether somebody has to log in first.
    #[must_use]
    pub fn asks_for_login(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.slug() == ProblemKind::NotAuthenticated.slug())
    }

    /// A title and a sentence for people.
    #[must_use]
    pub fn words(&self) -> (String, String) {
        match self {
            Self::Problem(problem) => (problem.title.clone(), problem.detail.clone()),
            Self::NoAnswer => (
                "The portal did not answer".to_owned(),
                "The connection was lost or the answer could not be read. Load the page again.".to_owned(),
            ),
        }
    }
}

#[cfg(feature = "ssr")]
pub(crate) mod asked {
    //! From a page's context to the portal, and from its errors to what a page shows.

    use super::{Answer, Refusal};
    use crate::context::{Asking, FORM_OWNER, FormState};
    use domain::problem::ProblemKind;
    use leptos::prelude::{expect_context, use_context};
    use leptos_axum::ResponseOptions;
    use portal::{Caller, Error};

    /// Who asks, and of whom. The server puts it into the context of every page and server function.
    pub(crate) fn asking() -> Asking {
        expect_context()
    }

    /// The asking and the one who asks; nobody is a problem.
    pub(crate) fn caller() -> Answer<(Asking, Caller)> {
        let asking = asking();
        match asking.caller.clone() {
            Some(caller) => Ok((asking, caller)),
            None => Err(refusal(Error::new(ProblemKind::NotAuthenticated, "Log in to see this page."))),
        }
    }

    /// A form that is shown to this caller: as it was sent, or with nothing in it, with its ID and who opens it.
    pub(crate) fn form(asking: &Asking, caller: &Caller) -> Answer<FormState> {
        let mut state = use_context::<FormState>().unwrap_or_default();
        if state.request_id.is_empty() {
            state.request_id = asking.portal.new_submission_key();
        }
        let owner = asking.portal.seal(FORM_OWNER, caller.id.0.as_bytes()).map_err(refusal)?;
        state.sealed = owner.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        Ok(state)
    }

    /// What a page shows of the portal's error, answered with the problem's own status.
    pub(crate) fn refusal(error: Error) -> Refusal {
        let problem = (asking().problem)(error);
        if let Some(response) = use_context::<ResponseOptions>()
            && let Ok(status) = problem.status.try_into()
        {
            response.set_status(status);
        }
        Refusal::Problem(problem)
    }
}
